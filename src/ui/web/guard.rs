//! Who may ask: only whoever has the token, from this page, under a name that cannot be rebound. Every request passes here.

use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

/// Nothing but the page's own files; no inline script, no frames, no forms that lead away.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A token that nobody guesses: 128 random bits.
pub(crate) fn new_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

pub(super) struct Guard {
    /// The hash of the token.
    token: [u8; 32],
    /// The name of the cookie: browsers share cookies between the ports of a host.
    cookie: String,
    /// The machine's own names.
    names: Vec<String>,
}

impl Guard {
    pub(super) fn new(token: &str, address: SocketAddr) -> Self {
        let name = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
        let names = vec!["localhost".to_owned(), format!("{name}.local"), name];
        Self { token: hash(token), cookie: format!("ralph-{}", address.port()), names }
    }

    /// True for the token. All hashes have the same length, and every byte is compared.
    fn is_token(&self, given: &str) -> bool {
        let given = hash(given);
        self.token.iter().zip(given).fold(0, |different, (one, other)| different | (one ^ other)) == 0
    }

    /// A name under which this server may be called. A web site cannot be an address or this machine, so a name that was
    /// rebound to this machine is refused.
    fn is_own_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let address = name.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok() || self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// True when a page of this server asks, or nobody's page.
    fn is_own_origin(method: &Method, headers: &HeaderMap, host: &str) -> bool {
        let own = match text(headers, header::ORIGIN) {
            Some(origin) => origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) == Some(host),
            None => method == Method::GET || method == Method::HEAD,
        };
        // A browser says who asks, except for an address that a person opens.
        let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        let is_visit = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate") && method == Method::GET;
        own && (is_visit || site.is_none_or(|site| matches!(site, "same-origin" | "none")))
    }

    fn cookie<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let cookies = text(headers, header::COOKIE)?.split(';');
        cookies.filter_map(|cookie| cookie.trim().split_once('=')).find(|(name, _)| *name == self.cookie).map(|it| it.1)
    }
}

/// Lets a request through, or refuses it.
pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = text(headers, header::HOST).unwrap_or_default();
    if !guard.is_own_host(host) || !Guard::is_own_origin(request.method(), headers, host) {
        return refused(StatusCode::FORBIDDEN, "refused: wrong host or origin\n");
    }
    let query = request.uri().query().unwrap_or_default();
    let given = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    let is_visit = given.is_some_and(|token| guard.is_token(token));
    if !is_visit && !guard.cookie(headers).is_some_and(|token| guard.is_token(token)) {
        return refused(StatusCode::UNAUTHORIZED, "open the address that `ralph serve` printed\n");
    }
    let cookie = given.filter(|_| is_visit).map(|token| {
        // The token is hexadecimal, or what a person chose and `commands/serve.rs` checked.
        format!("{}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000", guard.cookie)
    });
    let mut response = next.run(request).await;
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    harden(response.headers_mut());
    response
}

fn refused(status: StatusCode, why: &'static str) -> Response {
    let mut response = (status, why).into_response();
    harden(response.headers_mut());
    response
}

fn harden(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new("0123456789abcdef", "127.0.0.1:7331".parse().unwrap())
    }

    #[test]
    fn only_the_token_is_the_token() {
        let guard = guard();
        assert!(guard.is_token("0123456789abcdef"));
        for wrong in ["", "0", "0123456789abcdeg", "0123456789abcdef0", "0123456789ABCDEF"] {
            assert!(!guard.is_token(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_name_that_can_be_rebound_is_refused() {
        let guard = guard();
        for own in ["localhost:7331", "LOCALHOST", "127.0.0.1:7331", "192.168.0.7:80", "[::1]:7331"] {
            assert!(guard.is_own_host(own), "{own}");
        }
        for foreign in ["", "evil.example", "evil.example:7331", "127.0.0.1.evil.example", "localhost.evil.example"] {
            assert!(!guard.is_own_host(foreign), "{foreign}");
        }
    }

    #[test]
    fn only_a_page_of_this_server_may_write() {
        let host = "127.0.0.1:7331";
        let allowed = |method: Method, pairs: &[(&'static str, &'static str)]| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_static(value)));
            Guard::is_own_origin(&method, &headers.collect(), host)
        };
        assert!(allowed(Method::POST, &[("origin", "http://127.0.0.1:7331"), ("sec-fetch-site", "same-origin")]));
        assert!(allowed(Method::GET, &[]), "not a browser");
        assert!(allowed(Method::GET, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]), "a link");
        assert!(!allowed(Method::POST, &[]), "a form says where it comes from");
        assert!(!allowed(Method::POST, &[("origin", "http://127.0.0.1:8000")]));
        assert!(!allowed(Method::POST, &[("origin", "null")]));
        assert!(!allowed(Method::GET, &[("origin", "http://evil.example")]));
        assert!(!allowed(Method::GET, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")]));
    }
}
