//! The section `sandbox`: the values that only it has, and the options that come of them.

use serde_json::{Value as Json, json};

use super::reading::Reading;
use super::settings::Settings;
use super::value::{SettingValue, words};
use crate::error::UserError;
use crate::sandbox::{self, Backend, Environment, Mode, Network, Options, Tamper};
use crate::yaml::{Node, Value};

/// A word; YAML reads a bare `off` as false.
impl SettingValue for Mode {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let modes = [Self::Off, Self::Workspace, Self::Strict];
        let text = match &node.value {
            Value::Flag(false) => Self::Off.name().to_owned(),
            _ => String::read(reading, node, key)?,
        };
        let wrong = || reading.wrong(node, &format!("`{key}` must be one of off, workspace, strict, found `{text}`"));
        modes.into_iter().find(|mode| mode.name() == text).ok_or_else(wrong)
    }

    fn shown(&self) -> String {
        self.name().to_owned()
    }

    fn written(&self) -> Json {
        json!(self.name())
    }

    fn schema() -> Json {
        json!({"enum": ["off", "workspace", "strict", false]})
    }
}

words! { Backend { "auto" => Auto, "landlock" => Landlock, "bubblewrap" => Bubblewrap } }
words! { Tamper { "warn" => Warn, "stop" => Stop, "restore" => Restore } }

/// A path that may begin with `~`; relative to the file that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub std::path::PathBuf);

impl SettingValue for Place {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let text = String::read(reading, node, key)?;
        let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
        match (text.strip_prefix("~/"), text == "~", home) {
            (Some(rest), _, Some(home)) => Ok(Self(home.join(rest))),
            (None, true, Some(home)) => Ok(Self(home)),
            (Some(_), _, None) | (_, true, None) => {
                Err(reading.wrong(node, &format!("`{key}` begins with `~`, and HOME is not set")))
            }
            _ => Ok(Self(reading.beside(&text))),
        }
    }

    fn shown(&self) -> String {
        self.0.shown()
    }

    fn written(&self) -> Json {
        self.0.written()
    }

    fn schema() -> Json {
        String::schema()
    }
}

/// A number of bytes: `512M`, `8G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl Bytes {
    fn parse(text: &str) -> Option<u64> {
        let text = text.trim().trim_end_matches('B').trim_end_matches('i');
        let unit = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit);
        let shift = match unit.trim() {
            "" => 0,
            "K" | "k" => 10,
            "M" | "m" => 20,
            "G" | "g" => 30,
            "T" | "t" => 40,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
    }
}

impl SettingValue for Bytes {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let text = String::read(reading, node, key)?;
        let wrong = || reading.wrong(node, &format!("`{key}` must be a size such as `512M` or `8G`, found `{text}`"));
        Self::parse(&text).map(Self).ok_or_else(wrong)
    }

    fn shown(&self) -> String {
        let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
        let whole = units.iter().find(|(shift, _)| self.0.is_multiple_of(1 << shift));
        whole.map_or_else(|| self.0.to_string(), |(shift, unit)| format!("{}{unit}", self.0 >> shift))
    }

    fn written(&self) -> Json {
        json!(self.shown())
    }

    fn schema() -> Json {
        json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^[0-9]+ *[KMGTkmgt]?(i?B)?$"}]})
    }
}

impl SettingValue for Network {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match &node.value {
            Value::Text(text) if text == "all" => Ok(Self::All),
            Value::Text(text) if text == "none" => Ok(Self::None),
            Value::List(_) => {
                let hosts = Vec::<String>::read(reading, node, key)?;
                match hosts.iter().find(|host| !sandbox::hosts::is_entry(host)) {
                    None => Ok(Self::Hosts(hosts)),
                    Some(odd) => Err(reading.wrong(
                        node,
                        &format!("`{key}`: `{odd}` is not a host; use `example.com`, `*.example.com`, `host:port` or an address"),
                    )),
                }
            }
            _ => Err(reading.expected(node, key, "`all`, `none` or a list of hosts")),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::None => "none".to_owned(),
            Self::Hosts(hosts) => hosts.shown(),
        }
    }

    fn written(&self) -> Json {
        match self {
            Self::All | Self::None => json!(self.shown()),
            Self::Hosts(hosts) => json!(hosts),
        }
    }

    fn schema() -> Json {
        json!({"anyOf": [{"enum": ["all", "none"]}, Vec::<String>::schema()]})
    }
}

impl SettingValue for Environment {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match &node.value {
            Value::Text(text) if text == "inherit" => Ok(Self::Inherit),
            Value::Text(text) if text == "clean" => Ok(Self::Clean),
            Value::List(_) => Vec::<String>::read(reading, node, key).map(Self::Names),
            _ => Err(reading.expected(node, key, "`inherit`, `clean` or a list of names")),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Inherit => "inherit".to_owned(),
            Self::Clean => "clean".to_owned(),
            Self::Names(names) => names.shown(),
        }
    }

    fn written(&self) -> Json {
        match self {
            Self::Inherit | Self::Clean => json!(self.shown()),
            Self::Names(names) => json!(names),
        }
    }

    fn schema() -> Json {
        json!({"anyOf": [{"enum": ["inherit", "clean"]}, Vec::<String>::schema()]})
    }
}

impl Settings {
    /// What the user wants of the wall.
    pub(crate) fn sandbox(&self) -> Options {
        let places = |places: &[Place]| places.iter().map(|place| place.0.clone()).collect();
        Options {
            mode: self.sandbox_mode.value,
            backend: self.sandbox_backend.value,
            write: places(&self.sandbox_write.value),
            read: places(&self.sandbox_read.value),
            hide: places(&self.sandbox_hide.value),
            network: self.sandbox_network.value.clone(),
            environment: self.sandbox_env.value.clone(),
            memory: self.sandbox_memory.value.map(|bytes| bytes.0),
            processes: self.sandbox_processes.value,
            open_files: self.sandbox_open_files.value,
            tamper: self.sandbox_tamper.value,
            required: self.sandbox_required.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown_as_people_write_them() {
        for (text, bytes) in [("8G", 8 << 30), ("512M", 512 << 20), ("1024", 1024), ("2GiB", 2 << 30), ("3 k", 3 << 10)]
        {
            assert_eq!(Bytes::parse(text), Some(bytes), "{text}");
        }
        for text in ["", "0", "G", "8X", "-1", "99999999999T"] {
            assert_eq!(Bytes::parse(text), None, "{text}");
        }
        assert_eq!(Bytes(8 << 30).shown(), "8G");
    }

    #[test]
    fn one_word_is_the_mode_and_a_section_has_the_rest() {
        let read = |text: &str| super::super::file::read_text(std::path::Path::new("/x/ralph.yml"), text);
        let settings = read("sandbox: strict\n").unwrap().layer.settle().sandbox();
        assert_eq!((settings.mode, settings.required), (Mode::Strict, true));
        let text = "sandbox:\n  mode: workspace\n  write: [../shared]\n  network: [example.com]\n  memory: 1G\n";
        let settings = read(text).unwrap().layer.settle().sandbox();
        assert_eq!(settings.write, [std::path::PathBuf::from("/x/../shared")]);
        assert_eq!(settings.network, Some(Network::Hosts(vec!["example.com".to_owned()])));
        assert_eq!(settings.memory, Some(1 << 30));
        // YAML reads a bare `off` as a word here, and a misspelt key is an error.
        assert_eq!(read("sandbox: off\n").unwrap().layer.settle().sandbox().mode, Mode::Off);
        for wrong in ["sandbox: open\n", "sandbox: {network: [\"a b\"]}\n", "sandbox: {modes: strict}\n"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
