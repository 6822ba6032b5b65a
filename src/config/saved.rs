//! The settings of a run as its directory keeps them, so that it resumes with what it started with.
//!
//! A value with a secret in it is never written: only its key is, and a resumed run reads it again from where it came from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::adapter::{Adapter, SECTION};
use super::file::FileLayer;
use super::settings::{Layer, Settings};
use super::table::Row;
use crate::error::UserError;

/// The settings as they are kept.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Saved {
    settings: BTreeMap<String, Kept>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    adapters: BTreeMap<String, BTreeMap<String, Kept>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// As it is written in a file; left out when it holds a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    origin: String,
}

impl Saved {
    /// What to keep. `is_secret` says whether a text holds a secret.
    pub(crate) fn new(settings: &Settings, adapters: &[(String, Adapter)], is_secret: &dyn Fn(&str) -> bool) -> Self {
        let kept = |rows: Vec<Row<'_>>| -> BTreeMap<String, Kept> {
            let set = rows.into_iter().filter(|row| !row.written.is_null());
            let keep = |row: Row<'_>| {
                let value = Some(row.written).filter(|value| !holds(value, is_secret));
                (row.key.path.to_owned(), Kept { value, origin: row.origin.to_string() })
            };
            set.map(keep).collect()
        };
        let adapters = adapters.iter().map(|(name, adapter)| (name.clone(), kept(adapter.rows()))).collect();
        Self { settings: kept(settings.layer().rows()), adapters }
    }

    /// The settings again. Values that were not kept come from `today`: the environment over the configuration file.
    pub(crate) fn restore(&self, today: &FileLayer) -> Result<FileLayer, UserError> {
        let mut file = FileLayer::default();
        for (path, kept) in &self.settings {
            let restored = match &kept.value {
                Some(value) => file.layer.restore(path, value, &kept.origin),
                None => file.layer.borrow(path, &today.layer),
            };
            if !restored {
                return Err(lost(path, kept));
            }
        }
        for (name, values) in &self.adapters {
            let (mut adapter, now) = (Adapter::default(), today.adapter(name));
            for (path, kept) in values {
                let restored = match &kept.value {
                    Some(value) => adapter.restore(path, value, &kept.origin),
                    None => adapter.borrow(path, &now),
                };
                if !restored {
                    return Err(lost(&format!("{SECTION}.{name}.{path}"), kept));
                }
            }
            file.adapters.push((name.clone(), adapter));
        }
        Ok(file)
    }
}

impl Layer {
    /// What the environment and the configuration file say today.
    pub(crate) fn today(file: FileLayer) -> FileLayer {
        FileLayer { layer: super::environment().over(file.layer.clone()), ..file }
    }
}

fn holds(value: &Json, is_secret: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Json::String(text) => is_secret(text),
        Json::Array(items) => items.iter().any(|item| holds(item, is_secret)),
        Json::Object(object) => object.iter().any(|(key, value)| is_secret(key) || holds(value, is_secret)),
        _ => false,
    }
}

fn lost(path: &str, kept: &Kept) -> UserError {
    let origin = &kept.origin;
    match kept.value {
        None => UserError::usage(format!("`{path}` held a secret, which was not kept (it came from {origin})"))
            .hint("set it in `ralph.yml` again, or start a new run"),
        Some(_) => UserError::usage(format!("this ralph cannot read `{path}` of that run (it came from {origin})"))
            .hint("start a new run"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Origin;
    use crate::config::file::read_text;

    fn file(text: &str) -> FileLayer {
        read_text(Path::new("/project/ralph.yml"), text).unwrap()
    }

    #[test]
    fn settings_come_back_with_their_origin_and_secrets_from_where_they_were() {
        let text = "verify: [cargo test]\nevent_loop: {max_iterations: 7}\nnotify: {webhook: 'http://h/TOKEN'}\n\
                    adapters: {claude: {env: {K: TOKEN}, timeout: 90s}}\n";
        let first = file(text);
        let saved = Saved::new(&first.layer.clone().settle(), &first.adapters, &|text| text.contains("TOKEN"));
        let written = serde_json::to_string(&saved).unwrap();
        assert!(!written.contains("TOKEN"), "{written}");
        let saved: Saved = serde_json::from_str(&written).unwrap();
        let again = saved.restore(&file(text)).unwrap();
        let settings = again.layer.clone().settle();
        assert_eq!(settings.max_iterations.value, 7);
        assert_eq!(settings.max_iterations.origin, Origin::Saved("/project/ralph.yml:2".to_owned()));
        assert_eq!(settings.verify.value.checks[0].command, "cargo test");
        assert_eq!(settings.notify_webhook.value.unwrap().0, "http://h/TOKEN");
        assert_eq!(again.adapter("claude").env.unwrap().value.0, [("K".to_owned(), "TOKEN".to_owned())]);
        let lost = saved.restore(&file("verify: [x]\n")).unwrap_err();
        assert!(lost.message.starts_with("`notify.webhook` held a secret"), "{}", lost.message);
    }
}
