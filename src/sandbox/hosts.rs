//! Which hosts a list of hosts means. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a name may be asked for without a port in the list.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// A list of hosts as it was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    /// `localhost`: this machine, and whatever an agent starts on it.
    Local,
    Address(IpAddr),
    Host(String),
    /// `*.host`
    Below(String),
}

/// Someone to connect to: a name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub host: String,
    pub port: u16,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Target {
    /// `host:port`, `[address]:port`, or either without a port. Nothing for what is not exactly that.
    pub(crate) fn parse(text: &str, usual: Option<u16>) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                (address, rest.strip_prefix(':'))
            }
            None if text.parse::<Ipv6Addr>().is_ok() => (text, None),
            None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port > 0)?
            }
            Some(_) => return None,
            None => usual?,
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        (!host.is_empty() && host.len() <= 253 && host.bytes().all(plain)).then_some(Self { host, port })
    }

    /// The address, when it is one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.host.parse::<IpAddr>().ok().map(|address| address.to_canonical())
    }
}

impl Hosts {
    /// The entries of a list; those that cannot be read allow nothing.
    pub(crate) fn new(list: &[String]) -> Self {
        Self(list.iter().filter_map(|text| Entry::parse(text)).collect())
    }

    /// Whether someone may be asked for by this name or address.
    pub(crate) fn allows(&self, target: &Target) -> bool {
        self.0.iter().any(|entry| entry.names(target) && entry.has_port(target.port))
    }

    /// Whether a connection to this address is allowed, for a target that is: what a name leads to must be public, unless
    /// the address itself is listed.
    pub(crate) fn allows_address(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.allows(&Target { host: address.to_string(), port })
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        let written = Target::parse(rest, Some(1))?;
        let has_port = Target::parse(rest, None).is_some();
        let name = match written.address() {
            _ if below => Name::Below(format!(".{}", written.host)),
            Some(address) => Name::Address(address),
            None if written.host == "localhost" => Name::Local,
            None => Name::Host(written.host),
        };
        Some(Self { name, port: has_port.then_some(written.port) })
    }

    fn names(&self, target: &Target) -> bool {
        match &self.name {
            Name::Local => target.host == "localhost" || target.address().is_some_and(|address| address.is_loopback()),
            Name::Address(address) => target.address() == Some(*address),
            Name::Host(host) => target.host == *host,
            Name::Below(end) => target.host.ends_with(end.as_str()),
        }
    }

    fn has_port(&self, port: u16) -> bool {
        match self.port {
            Some(own) => own == port,
            None => self.name == Name::Local || USUAL_PORTS.contains(&port),
        }
    }
}

/// True for an entry that means this machine.
pub(crate) fn is_local(text: &str) -> bool {
    Entry::parse(text).is_some_and(|entry| match entry.name {
        Name::Local => true,
        Name::Address(address) => address.is_loopback(),
        Name::Host(_) | Name::Below(_) => false,
    })
}

/// True when an entry can be read.
pub(crate) fn is_entry(text: &str) -> bool {
    Entry::parse(text).is_some()
}

/// The host and the port of a URL, as an entry of a list.
pub(crate) fn of_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "http" | "ws" => 80,
        "https" | "wss" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Target::parse(authority, Some(usual)).map(|target| target.to_string())
}

/// True for addresses of the internet, and of nobody's house.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_documentation()
                || address.is_multicast()
                || address == Ipv4Addr::UNSPECIFIED
                || first == 0
                || first >= 240
                || first == 100 && (64..128).contains(&second)
                || first == 192 && second == 0 && third == 0
                || first == 198 && (18..20).contains(&second))
        }
        IpAddr::V6(address) => {
            let first = address.segments()[0];
            // Addresses that carry one of version 4 are judged by that.
            let carried = match address.segments() {
                [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some((high, low)),
                _ => None,
            };
            let carried = carried.map(|(high, low)| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || first & 0xfe00 == 0xfc00
                || first & 0xffc0 == 0xfe80
                || first == 0
                || carried.is_some_and(|carried| !is_public(IpAddr::V4(carried))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(list: &[&str], target: &str) -> bool {
        let list: Vec<String> = list.iter().map(|entry| (*entry).to_owned()).collect();
        Target::parse(target, None).is_some_and(|target| Hosts::new(&list).allows(&target))
    }

    #[test]
    fn names_and_ports_are_those_of_the_list() {
        assert!(allows(&["example.com"], "example.com:443") && allows(&["example.com"], "EXAMPLE.com.:80"));
        assert!(!allows(&["example.com"], "example.com:8080") && allows(&["example.com:8080"], "example.com:8080"));
        assert!(!allows(&["example.com:8080"], "example.com:443") && !allows(&["example.com"], "a.example.com:443"));
        assert!(allows(&["*.example.com"], "a.b.example.com:443") && !allows(&["*.example.com"], "badexample.com:443"));
        assert!(allows(&["localhost"], "127.0.0.1:3000") && allows(&["localhost"], "localhost:9"));
        assert!(allows(&["127.0.0.1:8080"], "127.0.0.1:8080") && !allows(&["127.0.0.1:8080"], "127.0.0.1:8081"));
        assert!(allows(&["[::1]:80"], "[::1]:80") && allows(&["127.0.0.1"], "[::ffff:127.0.0.1]:80"));
        for odd in
            ["", ":443", "a b:443", "user@example.com:443", "example.com:0", "example.com:99999", "[::1", "a:b:c"]
        {
            assert!(!allows(&["example.com", "*.com"], odd), "{odd}");
        }
    }

    #[test]
    fn a_name_that_leads_into_the_house_is_refused_unless_the_address_is_listed() {
        let hosts = Hosts::new(&["inner.example".to_owned(), "10.0.0.5".to_owned()]);
        let allows = |address: &str| hosts.allows_address(address.parse().unwrap(), 443);
        assert!(allows("93.184.216.34") && allows("10.0.0.5") && allows("2606:2800:220:1::1"));
        for inner in [
            "10.0.0.6",
            "127.0.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "224.0.0.1",
            "198.18.0.1",
        ] {
            assert!(!allows(inner), "{inner}");
        }
    }

    #[test]
    fn the_host_of_a_url_is_an_entry() {
        assert_eq!(of_url("http://127.0.0.1:4000/v1").as_deref(), Some("127.0.0.1:4000"));
        assert_eq!(of_url("https://user:word@api.example.com/x").as_deref(), Some("api.example.com:443"));
        assert_eq!(of_url("not a url"), None);
        assert!(is_local("127.0.0.1:4000") && is_local("localhost") && !is_local("example.com"));
    }
}
