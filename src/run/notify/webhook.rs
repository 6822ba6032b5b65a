//! A web request with a notice: plain HTTP by itself, everything else by the user's `curl`.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{PATIENCE, run};
use crate::process::{Invocation, Place, PrivateFile, Stdin};

/// The first line of an answer is never longer.
const MOST_READ: usize = 4096;

/// Posts JSON to an address.
pub(crate) async fn post(address: String, body: Arc<[u8]>) -> Result<(), String> {
    let Some(target) = Target::plain(&address) else { return by_curl(&address, &body).await };
    // The rest of an address can be a secret.
    let place = format!("http://{}", target.host);
    match tokio::time::timeout(PATIENCE, target.post(&body)).await {
        Ok(Ok(status)) if (200..300).contains(&status) => Ok(()),
        Ok(Ok(status)) => Err(format!("{place} answers {status}")),
        Ok(Err(error)) => Err(format!("cannot reach {place}: {error}")),
        Err(_) => Err(format!("{place} does not answer within {} s", PATIENCE.as_secs())),
    }
}

/// Where an address without encryption leads.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// As the other side knows itself.
    host: String,
    socket: String,
    path: String,
}

impl Target {
    fn plain(address: &str) -> Option<Self> {
        let rest = address.strip_prefix("http://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let is_clean =
            |text: &str| !text.contains(|character: char| character.is_whitespace() || character.is_control());
        // What names a user needs more than this can do.
        if host.is_empty() || host.contains('@') || !is_clean(rest) {
            return None;
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let socket = if has_port { host.to_owned() } else { format!("{host}:80") };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(Self { host: host.to_owned(), socket, path })
    }

    /// Gives the status of the answer.
    async fn post(&self, body: &[u8]) -> std::io::Result<u16> {
        let Self { host, socket, path } = self;
        let mut stream = TcpStream::connect(socket.as_str()).await?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ralph/{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            env!("CARGO_PKG_VERSION"),
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        while !answer.contains(&b'\n') && answer.len() < MOST_READ {
            if stream.read_buf(&mut answer).await? == 0 {
                break;
            }
        }
        let line = String::from_utf8_lossy(&answer);
        let status = line.split_whitespace().nth(1).and_then(|status| status.parse().ok());
        status.filter(|_| line.starts_with("HTTP/")).ok_or_else(|| std::io::Error::other("the answer is not HTTP"))
    }
}

/// The address and the words go in by standard input: whoever lists processes must not see them.
async fn by_curl(address: &str, body: &[u8]) -> Result<(), String> {
    let mut invocation = Invocation { place: Place::Outside, ..Invocation::new("curl", "/") };
    invocation.args =
        ["--silent", "--show-error", "--fail", "--output", "/dev/null", "--config", "-"].map(Into::into).into();
    // A line of that input cannot be long.
    let file =
        PrivateFile::new(&std::env::temp_dir(), body).map_err(|error| format!("cannot write a file: {error}"))?;
    let config = format!(
        "url = {}\nheader = \"Content-Type: application/json\"\ndata-binary = {}\nmax-time = {}\n",
        quoted(address),
        quoted(&format!("@{}", file.path().display())),
        PATIENCE.as_secs()
    );
    invocation.stdin = Stdin::Bytes(config.into_bytes().into());
    run(invocation, "curl".to_owned()).await
}

/// As curl reads it in a file.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_somewhere_or_to_curl() {
        let target = |address| Target::plain(address).map(|target| (target.socket, target.path));
        let pair = |socket: &str, path: &str| Some((socket.to_owned(), path.to_owned()));
        assert_eq!(target("http://a.example"), pair("a.example:80", "/"));
        assert_eq!(target("http://127.0.0.1:8080/x?y=1#z"), pair("127.0.0.1:8080", "/x?y=1"));
        assert_eq!(target("http://[::1]:9/x"), pair("[::1]:9", "/x"));
        assert_eq!(target("http://a.example?y"), pair("a.example:80", "/?y"));
        for other in ["https://a.example", "http://me@a.example", "http://a.example/x\r\nHost: b", "ftp://x", "http://"]
        {
            assert_eq!(target(other), None, "{other}");
        }
    }

    #[test]
    fn what_curl_reads_has_no_way_out_of_its_quotes() {
        assert_eq!(quoted("a\"\n\\b\turl = x"), r#""a\"\n\\b\turl = x""#);
    }
}
