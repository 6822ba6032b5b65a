//! Which values are secret: those of variables with a telling name, passwords in addresses, and values that look like keys.

use super::tokens::entropy;

/// Shorter values are words of every text.
const SHORTEST_VALUE: usize = 8;
/// Longer ones are files rather than secrets.
const LONGEST_VALUE: usize = 16 * 1024;
/// A lower-case word up to this length is no password that protects anything.
const LONGEST_WORD: usize = 15;
/// A value of this length may be a key whatever its name is.
const SHORTEST_KEY: usize = 20;

/// The parts of a variable's value that are secret.
pub(super) fn secrets(name: &str, value: &str) -> Vec<String> {
    let named = is_secret_name(name);
    let mut parts: Vec<String> = Vec::new();
    if let Ok(json @ (serde_json::Value::Object(_) | serde_json::Value::Array(_))) = serde_json::from_str(value) {
        // Only the strings in it: what holds them together is not a secret, and taking it out would break the JSON around it.
        leaves(&json, &mut |leaf| parts.extend(leaf.lines().filter(|line| is_key(line)).map(str::to_owned)));
    } else if let Some(password) = password(value) {
        parts.extend([password.to_owned(), decoded(password)]);
        parts.extend(value.split(['/', '?', '&', '=']).filter(|part| is_key(part)).map(str::to_owned));
    } else if named && value.contains("://") {
        // Of an address only what is not public: its path and its query, and what in them is no plain word.
        let path = value.splitn(4, '/').nth(3).unwrap_or_default();
        parts.push(path.to_owned());
        let pieces =
            path.split(['/', '?', '&', '=', '#']).filter(|piece| piece.bytes().any(|byte| byte.is_ascii_digit()));
        parts.extend(pieces.flat_map(|piece| [piece.to_owned(), decoded(piece)]));
    } else if named {
        parts.extend(value.lines().map(|line| line.trim().to_owned()));
        parts.extend(connection(value));
    } else {
        parts.extend(Some(value.trim()).filter(|value| is_key(value)).map(str::to_owned));
    }
    parts.retain(|part| is_secret_value(part));
    parts.dedup();
    parts
}

/// Variables that name a thing which is shown everywhere.
const PLAIN_NAMES: &[&str] =
    &["MODEL", "REGION", "ZONE", "VERSION", "ENDPOINT", "HOST", "URL", "PATH", "DIR", "PROFILE", "LANG", "TZ", "NAME"];

/// The same for a value that the user's configuration hands to a child: nobody configures what every transcript has, but for
/// plain words such as the name of a model.
pub(super) fn configured(name: &str, value: &str) -> Vec<String> {
    let mut parts = secrets(name, value);
    let mixed = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        part.len() >= 6 && digits > 0 && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    // A pass phrase such as `purple-horse-battery-9931`; names of models and places look alike and are no secret.
    let upper = name.to_ascii_uppercase();
    let is_plain = PLAIN_NAMES.iter().any(|plain| upper.contains(plain));
    let is_phrase = value.len() >= 16
        && mixed(value)
        && !is_plain
        && value.chars().all(|letter| letter.is_ascii_graphic() && letter != '/');
    let is_mixed = is_phrase || value.split(|character: char| !character.is_ascii_alphanumeric()).any(mixed);
    if parts.is_empty() && is_mixed && !value.contains("://") && is_secret_value(value) {
        parts.push(value.to_owned());
    }
    parts
}

fn leaves(value: &serde_json::Value, each: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => each(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| leaves(item, each)),
        serde_json::Value::Object(object) => object.values().for_each(|item| leaves(item, each)),
        _ => {}
    }
}

/// The password in `scheme://user:password@host`, or the only word before the host.
fn password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user.split_once(':').map_or(user, |(_, password)| password)).filter(|password| !password.is_empty())
}

/// Without percent escapes.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &after[2..]).1,
            None => (bytes.push(*first), rest = after).1,
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// The secret fields of `Server=db;User Id=me;Password=secret`.
fn connection(value: &str) -> Vec<String> {
    let fields = value.split(';').filter_map(|field| field.split_once('='));
    let secret = fields.filter(|(key, _)| is_secret_name(key.trim())).map(|(_, value)| value.trim().to_owned());
    secret.collect()
}

fn is_secret_name(name: &str) -> bool {
    const SECRET: &[&str] = &[
        "TOKEN",
        "SECRET",
        "PASS",
        "PWD",
        "CREDENTIAL",
        "APIKEY",
        "AUTH",
        "COOKIE",
        "WEBHOOK",
        "BEARER",
        "MNEMONIC",
        "SEED_PHRASE",
        "CONNECTION_STRING",
        "CONNSTR",
        "SIGNING",
        "JWT",
    ];
    const SECRET_ENDS: &[&str] = &["KEY", "_PAT", "_PW", "_CREDS", "_DSN", "_PIN", "_OTP", "_SALT"];
    // They say where a secret is or what it is called, not what it is.
    const PLACES: &[&str] = &[
        "_FILE",
        "_PATH",
        "_DIR",
        "_SOCK",
        "_ID",
        "_NAME",
        "_USER",
        "_HELPER",
        "_METHOD",
        "_TYPE",
        "_MODE",
        "_ALGORITHM",
    ];
    // Directories, who wrote something, what cuts text into words, and programs that ask for a password are no secrets.
    let mut name = name.to_ascii_uppercase().replace([' ', '-', '.'], "_");
    if matches!(name.as_str(), "PWD" | "OLDPWD" | "SSH_ASKPASS" | "GIT_ASKPASS" | "SUDO_ASKPASS") {
        return false;
    }
    for word in ["AUTHOR", "TOKENIZER", "PASSENGER", "PASSIVE", "BYPASS", "COMPASS", "KEYBOARD", "MONKEY", "TURKEY"] {
        name = name.replace(word, "");
    }
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

/// Whether a value is so random that it must be a key: one long word of letters and digits that is no name, path, version,
/// hash of a commit or id of a session.
fn is_key(value: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/=.~".contains(&byte);
    if value.len() < SHORTEST_KEY || value.len() > LONGEST_VALUE || !value.bytes().all(is_word) || value.contains("..")
    {
        return false;
    }
    // Ids, hashes and times are public, and every transcript is full of them.
    if value.bytes().all(|byte| byte.is_ascii_hexdigit() || b"-_.".contains(&byte)) {
        return false;
    }
    // Of the parts between separators one must be long and mix letters with digits, as no name does.
    let parts = value.split(['-', '_', '.', '/', '+', '=', '~']);
    let random = parts.filter(|part| part.len() >= 12 && is_random(part)).map(str::len).sum::<usize>();
    random * 2 >= value.len() && entropy(value.as_bytes()) >= 3.5
}

/// Letters and digits that change places often.
fn is_random(part: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        _ => 2,
    };
    let changes = part.as_bytes().windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    digits >= 2 && changes * 4 >= part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_pass_phrases_are_secret_and_names_of_models_are_not() {
        assert_eq!(configured("MY_THING", "purple-horse-battery-9931"), ["purple-horse-battery-9931"]);
        for (name, value) in
            [("ANTHROPIC_MODEL", "claude-sonnet-4-5-20250929"), ("NODE_ENV", "production"), ("X", "a/b/c/d/e/f/g/h/1")]
        {
            assert!(configured(name, value).is_empty(), "{name}={value}");
        }
    }

    #[test]
    fn secrets_are_known_by_name_and_value() {
        for (name, value) in [
            ("GITHUB_TOKEN", "abcdef0123456789"),
            ("MY_API_KEY", "Zx81-Zx81-Zx81"),
            ("db_password", "correct horse battery"),
            ("DATABASE_URL", "postgres://me:s3cr3t-pass@db/x"),
            ("REDIS", "redis://:s3cr3t%2Dpass@cache:6379/0"),
            ("DB_PW", "hunter2hunter2"),
            ("SSHPASS", "hunter2-hunter2"),
            ("DOOR_PASSCODE", "open-sesame-1"),
            ("WALLET_MNEMONIC", "abandon ability able about above absent"),
            ("LICENSEKEY", "AAAA-BBBB-1111"),
            ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=x;AccountKey=Zm9vYmFyYmF6cXV4"),
            ("SLACK_WEBHOOK_URL", "https://hooks.example.com/services/T000/B000/XXXXYYYYZZZZ"),
            ("ANYTHING", "q7Hs92LkPz0aXw41Bv8Nt5Rm"),
            ("CONFIG", r#"{"user":"me","key":"q7Hs92LkPz0aXw41Bv8Nt5Rm"}"#),
        ] {
            assert!(!secrets(name, value).is_empty(), "{name}={value}");
        }
        let webhook = "https://hooks.example.com/services/T0AB12CD3/B0XY98ZW7/xKd83jQmNfoePq1SlaMwTz0u";
        for part in ["T0AB12CD3", "B0XY98ZW7", "xKd83jQmNfoePq1SlaMwTz0u"] {
            assert!(secrets("notify.webhook", webhook).contains(&part.to_owned()), "{part}");
        }
        assert_eq!(secrets("DATABASE_URL", "postgres://me:s3cr3t-pass@db/x"), ["s3cr3t-pass"]);
        assert!(
            secrets("X_CONNECTION_STRING", "Server=db;Password=hunter2hunter2").contains(&"hunter2hunter2".to_owned())
        );
    }

    #[test]
    fn what_is_public_is_no_secret() {
        for (name, value) in [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("PWD", "/home/ada/work/project-with-a-long-name-1"),
            ("OLDPWD", "/home/ada/other"),
            ("MAX_TOKENS", "2000000000"),
            ("POSTGRES_PASSWORD", "postgres"),
            ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"),
            ("GOOGLE_TOKEN_FILE", "some-file-12345"),
            ("HOME_URL", "https://example.com/a/b/c"),
            ("SHORT_TOKEN", "abc123"),
            ("GIT_AUTHOR_EMAIL", "ada@example.com"),
            ("RALPH_RUN_ID", "20261116-031200-a1b2c3"),
            ("SESSION", "0199c1f2-7b3a-7c21-9f10-8d2b7f1e6c55"),
            ("GIT_COMMIT", "9fceb02d0ae598e95dc970b74767f19372d61af8"),
            ("TERM", "xterm-256color"),
            ("LS_COLORS", "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35"),
            ("ANTHROPIC_MODEL", "claude-sonnet-4-5-20250929"),
            ("OPENAI_MODEL", "us.anthropic.claude-3-5-sonnet-20241022-v2:0"),
            ("HOSTNAME", "ip-10-0-12-34.eu-central-1.compute.internal"),
            ("XDG_SESSION_ID", "c2"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
            ("RUSTFLAGS", "-Ctarget-cpu=x86-64-v3"),
            ("IMAGE", "registry.example.com/team/app:2026.11.16-build42"),
            ("INVOCATION", "ralph-integration-tests-number-12"),
            ("SSH_ASKPASS", "/usr/lib/ssh/askpass"),
        ] {
            assert_eq!(secrets(name, value), Vec::<String>::new(), "{name}={value}");
        }
    }
}
