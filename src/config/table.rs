//! The one place where a key is declared: from a line of a table come its reading, its layers, its row for people, its
//! schema and its line in the documents.

use serde_json::Value as Json;

use super::origin::Origin;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Its sections and its name: `event_loop.max_iterations`.
    pub path: &'static str,
    doc: &'static str,
    /// What is allowed there.
    pub schema: fn() -> Json,
    /// The default; null when there is none.
    pub default: fn() -> Json,
}

impl Key {
    /// A key as the table declares it.
    pub(crate) const fn new(
        path: &'static str,
        doc: &'static str,
        schema: fn() -> Json,
        default: fn() -> Json,
    ) -> Self {
        Self { path, doc, schema, default }
    }

    /// What it is for, in one sentence.
    pub(crate) fn doc(&self) -> &'static str {
        self.doc.trim_start()
    }
}

/// A key with what it is set to.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    pub key: &'static Key,
    pub shown: String,
    /// As it is in a file; null when it is not set.
    pub written: Json,
    pub origin: &'a Origin,
}

/// Declares what one source can say: for each key its doc line, its place in the file, its field, its type and its
/// default.
macro_rules! layer {
    (
        $(#[$of_layer:meta])*
        $layer:ident { $($(#[doc = $doc:literal])* $path:literal $field:ident: $type:ty = $default:expr;)* }
    ) => {
        $(#[$of_layer])*
        #[derive(Clone, Debug, Default)]
        pub struct $layer {
            $($(#[doc = $doc])* pub $field: Option<$crate::config::origin::Setting<$type>>,)*
        }

        impl $layer {
            /// Every key, in the order of the table.
            pub(crate) const KEYS: &'static [$crate::config::table::Key] = &[$($crate::config::table::Key::new(
                $path,
                concat!($($doc),*),
                <$type as $crate::config::value::SettingValue>::schema,
                || {
                    let default: $type = $default;
                    $crate::config::value::SettingValue::written(&default)
                },
            ),)*];

            /// Reads the value of a key of this table; `full` is the key as the user wrote it.
            pub(in $crate::config) fn read(
                &mut self,
                path: &str,
                full: &str,
                reading: &mut $crate::config::reading::Reading<'_>,
                node: &$crate::yaml::Node,
            ) -> Result<(), $crate::error::UserError> {
                match path {
                    // An empty value says nothing.
                    _ if matches!(node.value, $crate::yaml::Value::Null) => {}
                    $($path => self.$field = Some(reading.setting(node, full)?),)*
                    _ => {}
                }
                Ok(())
            }

            /// Takes a value that a run has saved, as it was written. False when it can no longer be read.
            pub(in $crate::config) fn restore(&mut self, path: &str, value: &serde_json::Value, origin: &str) -> bool {
                let text = value.to_string();
                let place = std::path::Path::new("");
                let Ok(node) = $crate::yaml::parse("", &text) else { return false };
                if self.read(path, path, &mut $crate::config::reading::Reading::new(place, place, &text), &node).is_err() {
                    return false;
                }
                match path {
                    $($path => if let Some(setting) = &mut self.$field {
                        setting.origin = $crate::config::Origin::Saved(origin.to_owned());
                    },)*
                    _ => return false,
                }
                true
            }

            /// Takes the value of one key from another layer; false when that says nothing.
            pub(in $crate::config) fn borrow(&mut self, path: &str, other: &Self) -> bool {
                match path {
                    $($path => {
                        self.$field.clone_from(&other.$field);
                        self.$field.is_some()
                    })*
                    _ => false,
                }
            }

            /// This layer over a lower one.
            #[must_use]
            #[allow(dead_code, reason = "not every table has layers")]
            pub(crate) fn over(self, lower: Self) -> Self {
                Self { $($field: self.$field.or(lower.$field),)* }
            }

            /// Forgets what no file says.
            #[allow(dead_code, reason = "not every table has layers")]
            pub(crate) fn keep_from_files(&mut self) {
                $(if !self.$field.as_ref().is_some_and(|setting| matches!(setting.origin, $crate::config::Origin::File { .. })) {
                    self.$field = None;
                })*
            }

            /// What is said, key by key.
            pub(crate) fn rows(&self) -> Vec<$crate::config::table::Row<'_>> {
                let rows = [$(self.$field.as_ref().map(|setting| (
                    $crate::config::value::SettingValue::shown(&setting.value),
                    $crate::config::value::SettingValue::written(&setting.value),
                    &setting.origin,
                )),)*];
                let said = rows.into_iter().zip(Self::KEYS).filter_map(|(row, key)| row.map(|row| (row, key)));
                said.map(|((shown, written, origin), key)| $crate::config::table::Row { key, shown, written, origin }).collect()
            }
        }
    };
}

pub(super) use layer;

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
