//! As much HTTP/1.1 as model clients use: a request with its body, an answer in one piece, an answer in chunks.
//!
//! Every length is bounded: a client cannot make the server hold more than one large request.

use std::io::{self, BufRead, Read, Write};

const LONGEST_HEAD: usize = 64 * 1024;
const LONGEST_BODY: usize = 64 * 1024 * 1024;

/// A request.
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The next request of a connection; none at its end.
pub fn read(stream: &mut (impl BufRead + Write)) -> io::Result<Option<Request>> {
    let mut left = LONGEST_HEAD;
    let first = line(stream, &mut left)?;
    let mut words = first.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let (method, path) = (method.to_owned(), target.split('?').next().unwrap_or_default().to_owned());
    let (mut length, mut chunked) = (0, false);
    loop {
        let header = line(stream, &mut left)?;
        if header.is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "content-encoding" if !value.eq_ignore_ascii_case("identity") => {
                return Err(io::Error::other(format!("a body in `{value}` is not understood")));
            }
            "expect" => stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        while let size @ 1.. = usize::from_str_radix(line(stream, &mut left)?.trim(), 16).map_err(io::Error::other)? {
            take(stream, size, &mut body)?;
            line(stream, &mut left)?;
        }
        line(stream, &mut left)?;
    } else {
        take(stream, length, &mut body)?;
    }
    Ok(Some(Request { method, path, body }))
}

fn line(stream: &mut impl BufRead, left: &mut usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    let read = stream.take(*left as u64).read_until(b'\n', &mut bytes)?;
    *left = left.checked_sub(read.max(1)).ok_or_else(|| io::Error::other("the head of a request is too long"))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned())
}

fn take(stream: &mut impl BufRead, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len() + length > LONGEST_BODY {
        return Err(io::Error::other("the body of a request is too long"));
    }
    let read = stream.take(length as u64).read_to_end(body)?;
    if read < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// An answer in one piece.
pub fn answer(stream: &mut impl Write, status: u16, headers: &[(&str, String)], body: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\n")?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "content-length: {}\r\n\r\n{body}", body.len())?;
    stream.flush()
}

/// The head of an answer that comes as server-sent events.
pub fn begin_events(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    stream.flush()
}

/// One event.
pub fn event(stream: &mut impl Write, name: Option<&str>, data: &str) -> io::Result<()> {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    let text = format!("{name}data: {data}\n\n");
    write!(stream, "{:x}\r\n{text}\r\n", text.len())?;
    stream.flush()
}

/// The end of the events.
pub fn end_events(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()
}
