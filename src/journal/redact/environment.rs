//! Which environment variables are secrets, and in which forms their values may come out again.

use super::search::SHORTEST;

/// A value that is to be hidden, in one of its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The variable.
    pub name: String,
    /// The form.
    pub bytes: Vec<u8>,
}

/// Shorter values are words of every text.
const SHORTEST_VALUE: usize = 8;
/// Longer ones are files rather than secrets.
const LONGEST_VALUE: usize = 4096;
/// A word of this length is hardly a password that somebody chose by hand.
const LONGEST_WORD: usize = 15;

/// The secrets among variables, in all their forms.
pub fn secrets(variables: impl IntoIterator<Item = (String, String)>) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::new();
    for (name, value) in variables {
        for value in worth_hiding(&name, &value) {
            for bytes in forms(value) {
                if bytes.len() >= SHORTEST && !found.iter().any(|secret| secret.bytes == bytes) {
                    found.push(Secret { name: name.clone(), bytes });
                }
            }
        }
    }
    found
}

/// The parts of a value that are secret.
fn worth_hiding<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    let parts: Vec<&str> = match password(value) {
        Some(password) => vec![password],
        None if is_secret_name(name) => value.lines().map(str::trim).collect(),
        None => Vec::new(),
    };
    parts.into_iter().filter(|part| is_secret_value(part)).collect()
}

/// The password in `scheme://user:password@host`.
fn password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

fn is_secret_name(name: &str) -> bool {
    const SECRET: &[&str] = &[
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "APIKEY",
        "API_KEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
        "AUTH",
        "COOKIE",
        "WEBHOOK",
        "BEARER",
    ];
    const SECRET_ENDS: &[&str] = &["_KEY", "_PAT", "_PASS", "_PWD", "_CREDS", "_DSN"];
    // They say where a secret is, not what it is.
    const PLACES: &[&str] =
        &["_FILE", "_PATH", "_DIR", "_SOCK", "_ID", "_NAME", "_USER", "_HELPER", "_METHOD", "_TYPE"];
    // Who wrote something, and what cuts text into words, is no secret.
    let name = name.to_ascii_uppercase().replace("AUTHOR", "").replace("TOKENIZER", "");
    let secret = SECRET.iter().any(|word| name.contains(word)) || SECRET_ENDS.iter().any(|end| name.ends_with(end));
    secret && !PLACES.iter().any(|end| name.ends_with(end))
}

/// A number, a single word or a path is in every transcript: hiding it would destroy more than it protects.
fn is_secret_value(value: &str) -> bool {
    let number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && value.len() < 16;
    let word = value.bytes().all(|byte| byte.is_ascii_lowercase()) && value.len() <= LONGEST_WORD;
    let path = value.starts_with('/') || value.starts_with("./") || value.starts_with('~');
    let harmless = number || word || path && is_path(value);
    (SHORTEST_VALUE..=LONGEST_VALUE).contains(&value.len()) && !harmless
}

fn is_path(value: &str) -> bool {
    std::path::Path::new(value).exists() || !value.bytes().any(|byte| b"+=".contains(&byte))
}

/// A value as it is, in JSON, in a URL, and inside base64, wherever it begins there.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![value.as_bytes().to_vec()];
    let json = serde_json::to_string(value).unwrap_or_default();
    forms.push(json.trim_matches('"').as_bytes().to_vec());
    forms.push(json.trim_matches('"').replace('/', r"\/").into_bytes());
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let percent = |upper: bool| -> Vec<u8> {
        let escape = |byte| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
        let escaped =
            value.bytes().map(|byte| if unreserved(byte) { char::from(byte).to_string() } else { escape(byte) });
        escaped.collect::<String>().into_bytes()
    };
    forms.extend([percent(true), percent(false)]);
    for alphabet in [STANDARD, URL_SAFE] {
        // Three places in a group of three bytes: what depends on the neighbours is left off.
        for offset in 0..3 {
            let mut bytes = vec![0; offset];
            bytes.extend_from_slice(value.as_bytes());
            let whole = bytes.len() / 3 * 4;
            let first = [0, 2, 3][offset];
            forms.push(base64(&bytes, alphabet)[first..whole].to_vec());
        }
    }
    forms
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// base64 of whole groups; a rest that fills none is left off.
fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> Vec<u8> {
    let groups = bytes.chunks_exact(3).flat_map(|group| {
        let number = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        [18, 12, 6, 0].map(|shift| alphabet[(number >> shift & 63) as usize])
    });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(variables: &[(&str, &str)]) -> Vec<String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut names: Vec<String> = secrets(variables).into_iter().map(|secret| secret.name).collect();
        names.dedup();
        names
    }

    #[test]
    fn secrets_are_known_by_name_and_value() {
        let secret = [
            ("GITHUB_TOKEN", "abcdef0123456789"),
            ("MY_API_KEY", "Zx81-Zx81-Zx81"),
            ("db_password", "correct horse battery"),
            ("DATABASE_URL", "postgres://me:s3cr3t-pass@db/x"),
        ];
        assert_eq!(names(&secret), ["GITHUB_TOKEN", "MY_API_KEY", "db_password", "DATABASE_URL"]);
        let plain = [
            ("PATH", "/usr/bin:/bin"),
            ("MAX_TOKENS", "2000000000"),
            ("POSTGRES_PASSWORD", "postgres"),
            ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"),
            ("GOOGLE_TOKEN_FILE", "some-file-12345"),
            ("HOME_URL", "https://example.com/a/b/c"),
            ("SHORT_TOKEN", "abc123"),
            ("GIT_AUTHOR_EMAIL", "ada@example.com"),
        ];
        assert!(names(&plain).is_empty(), "{:?}", names(&plain));
    }

    #[test]
    fn a_value_is_known_inside_base64_wherever_it_begins() {
        // As `base64` prints them.
        let known = [
            ("hunter2-hunter2", "aHVudGVyMi1odW50ZXIy"),
            ("hunter2-hunter2", "eDpodW50ZXIyLWh1bnRlcjI="),
            ("hunter2-hunter2", "eGh1bnRlcjItaHVudGVyMg=="),
        ];
        for (value, encoded) in known {
            let forms = forms(value);
            let found = forms.iter().any(|form| encoded.contains(std::str::from_utf8(form).unwrap()));
            assert!(found, "{encoded}");
        }
        assert!(forms("a b/c\"defg").contains(&b"a%20b%2Fc%22defg".to_vec()));
        assert!(forms("a b/c\"defg").contains(&br#"a b/c\"defg"#.to_vec()));
    }
}
