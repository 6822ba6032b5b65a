//! Sends a document to a web address, for collectors and webhooks. Plain HTTP only, bounded in time; it follows nothing.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A web address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    path: String,
}

impl Address {
    /// Reads `http://host[:port][/path]`.
    pub fn parse(url: &str) -> Result<Self, String> {
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(format!("`{url}` is no address that begins with `http://`"));
        };
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((host, port)) => (host, port.parse().map_err(|_| format!("`{port}` in `{url}` is no port"))?),
            None => (place, 80),
        };
        if host.is_empty() || url.contains(char::is_whitespace) || url.contains(char::is_control) {
            return Err(format!("`{url}` names no host"));
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { host: host.to_owned(), port, path: path.to_owned() })
    }

    /// The same place, with this path where none was given.
    #[must_use]
    pub fn or_path(mut self, path: &str) -> Self {
        if self.path == "/" {
            path.clone_into(&mut self.path);
        }
        self
    }

    /// Sends JSON and gives the status of the answer.
    pub fn post_json(&self, body: &[u8]) -> io::Result<u16> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
        for address in (host, self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => return self.exchange(stream, body).map_err(in_time),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn exchange(&self, mut stream: TcpStream, body: &[u8]) -> io::Result<u16> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.path,
            self.host,
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut answer = Vec::new();
        stream.take(64).read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
    }
}

/// The system's word for a time limit on a socket says nothing to a person.
fn in_time(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;

    use super::*;

    #[test]
    fn addresses_are_read() {
        let address = Address::parse("http://localhost:4318").unwrap().or_path("/v1/traces");
        assert_eq!(address, Address { host: "localhost".into(), port: 4318, path: "/v1/traces".into() });
        assert_eq!(
            Address::parse("http://[::1]/a?b").unwrap(),
            Address { host: "[::1]".into(), port: 80, path: "/a?b".into() }
        );
        for wrong in ["https://x", "x", "http://", "http://x:y", "http://a b/", "http://a/\r\nX: y"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_document_is_sent_and_the_status_is_told() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let served = std::thread::spawn(move || {
            let mut reader = io::BufReader::new(server.accept().unwrap().0);
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
                head += &line;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            reader.get_mut().write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").unwrap();
            (head, body)
        });
        let address = Address::parse(&format!("http://127.0.0.1:{port}/hook")).unwrap();
        assert_eq!(address.post_json(b"{\"a\":1}").unwrap(), 202);
        let (head, body) = served.join().unwrap();
        assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
        assert_eq!(body, b"{\"a\":1}");
    }
}
