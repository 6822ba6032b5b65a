//! The head of a request to the proxy. Pure, and strict: what two programs could read differently is refused.

use super::hosts::Target;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// CONNECT: a tunnel.
    Tunnel(Target),
    /// A plain request, with the head that the server gets.
    Plain { target: Target, head: Vec<u8> },
}

/// Headers that are between the client and the proxy, and those that ralph writes itself.
const DROPPED: [&str; 5] = ["host", "connection", "proxy-connection", "proxy-authorization", "keep-alive"];

/// Reads a head, with its empty line.
pub(super) fn parse(head: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(head).ok()?.strip_suffix("\r\n\r\n")?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, asked, version) = (words.next()?, words.next()?, words.next()?);
    let known = ["HTTP/1.1", "HTTP/1.0"].contains(&version) && words.next().is_none();
    let plain = |text: &str| text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    if !known || method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) || !plain(asked) {
        return None;
    }
    let headers: Vec<(&str, &str)> = lines.map(header).collect::<Option<_>>()?;
    if method == "CONNECT" {
        return Target::parse(asked, None).map(Request::Tunnel);
    }
    let rest = asked.strip_prefix("http://")?;
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let target = Target::parse(authority, Some(80))?;
    let count = |wanted: &str| headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).count();
    // Where one program counts bytes and another one reads chunks, a second request hides in the first.
    if count("content-length") + count("transfer-encoding") > 1 || count("host") > 1 {
        return None;
    }
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let host = if target.port == 80 { authority.trim_end_matches(":80").to_owned() } else { target.to_string() };
    let mut sent = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers.iter().filter(|(name, _)| !DROPPED.contains(&name.to_ascii_lowercase().as_str())) {
        sent.extend([*name, ": ", *value, "\r\n"]);
    }
    sent += "\r\n";
    Some(Request::Plain { target, head: sent.into_bytes() })
}

fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let text = |byte: u8| byte == b'\t' || (0x20..0x7f).contains(&byte) || byte >= 0x80;
    (!name.is_empty() && name.bytes().all(token) && value.bytes().all(text)).then(|| (name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(head: &str) -> Option<(String, String)> {
        match parse(head.as_bytes())? {
            Request::Plain { target, head } => Some((target.to_string(), String::from_utf8(head).unwrap())),
            Request::Tunnel(target) => Some((target.to_string(), String::new())),
        }
    }

    #[test]
    fn the_host_is_the_one_that_was_asked_for_whatever_the_header_says() {
        let (target, head) = plain(
            "GET http://good.example/x?y HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: x\r\nA: b\r\n\r\n",
        )
        .unwrap();
        assert_eq!(target, "good.example:80");
        assert_eq!(head, "GET /x?y HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\nA: b\r\n\r\n");
        assert_eq!(plain("CONNECT good.example:443 HTTP/1.1\r\n\r\n").unwrap().0, "good.example:443");
    }

    #[test]
    fn what_two_programs_could_read_differently_is_refused() {
        for head in [
            "CONNECT good.example HTTP/1.1\r\n\r\n",
            "CONNECT good.example:443 extra HTTP/1.1\r\n\r\n",
            "CONNECT good.example:443@evil.example:443 HTTP/1.1\r\n\r\n",
            "CONNECT good.example:443 HTTP/1.1\r\nHost : x\r\n\r\n",
            "CONNECT good.example:443 HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
            "CONNECT good.example:443\nHost: evil HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "GET http://user@good.example/ HTTP/1.1\r\n\r\n",
            "GET http://good.example/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "POST http://good.example/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET https://good.example/ HTTP/1.1\r\n\r\n",
            "GET http://good.example\\@evil.example/ HTTP/1.1\r\n\r\n",
            "get http://good.example/ HTTP/1.1\r\n\r\n",
            "GET http://good.example/ HTTP/2\r\n\r\n",
            "",
        ] {
            assert_eq!(plain(head), None, "{head:?}");
        }
    }
}
