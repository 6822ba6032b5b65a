//! `ralph serve` for a test: started, asked, and stopped by its id.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

pub struct Server {
    child: Child,
    /// What it prints after the address.
    pub printed: BufReader<ChildStdout>,
    /// The whole address, with its token.
    pub address: String,
    /// `127.0.0.1:PORT`.
    pub host: String,
    pub token: String,
}

impl Server {
    /// Starts a command of ralph that serves, and reads the address it prints first.
    pub fn start(mut ralph: Command, more: &[&str]) -> Self {
        let mut child = ralph
            .args(["serve", "--port", "0"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        printed.read_line(&mut line).unwrap();
        let address = line.trim().to_owned();
        let (host, token) = address.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        Self { host: host.to_owned(), token: token.to_owned(), child, printed, address }
    }

    /// Stops it, and gives what it wrote to standard error.
    pub fn complaints(mut self) -> String {
        let _ = self.child.kill();
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Sends bytes and gives everything that comes back.
    pub fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // The server may refuse before it has read everything.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A request with these headers, closed after the answer.
    pub fn ask(&self, line: &str, headers: &[&str], body: &str) -> String {
        let host = format!("Host: {}", self.host);
        let has_host = headers.iter().any(|header| header.starts_with("Host:"));
        let host = if has_host { Vec::new() } else { vec![host.as_str()] };
        let headers: Vec<&str> = host.into_iter().chain(headers.iter().copied()).collect();
        let headers = headers.join("\r\n");
        let length = body.len();
        let request =
            format!("{line} HTTP/1.1\r\n{headers}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        self.raw(request.as_bytes())
    }

    /// The header with which a page that was visited asks.
    pub fn cookie(&self) -> String {
        let port = self.host.rsplit(':').next().unwrap();
        format!("Cookie: ralph-{port}={}", self.token)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
