//! All keys on one page, and what the signs in the list mean.

use super::super::keys::KEYS;
use super::super::rows::{Row, paragraph};
use super::super::theme::Theme;
use crate::ui::model::IterationState;
use crate::ui::style::{Glyphs, Ink};
use crate::ui::text::width;

pub(crate) fn rows(theme: &Theme, columns: usize) -> Vec<Row> {
    let is_plain = theme.glyphs.gutter != Glyphs::UNICODE.gutter;
    let written = |keys: &str| {
        if !is_plain {
            return keys.to_owned();
        }
        keys.replace("↑ ↓ ", "").replace('…', "-").replace("← →", "left right")
    };
    let widest = if columns >= 60 { 20 } else { 0 };
    let mut rows = Vec::new();
    for (name, keys) in KEYS {
        rows.push(Row::new(Ink::Strong, name));
        for key in *keys {
            let keys = written(key.keys);
            let padding = " ".repeat(widest.max(width(&keys) + 2) - width(&keys));
            let first = Row::new(Ink::Agent, &format!("  {keys}{padding}"));
            let rest = Row::new(Ink::None, &" ".repeat(if widest > 0 { widest + 2 } else { 4 }));
            rows.extend(paragraph(&first, &rest, key.does, Ink::None, columns));
        }
    }
    rows.push(Row::new(Ink::Strong, "Signs in the list"));
    for state in IterationState::ALL {
        let (sign, ink) = state.sign(&theme.glyphs);
        let first = Row::new(ink, &format!("  {sign:<6}"));
        rows.extend(paragraph(&first, &Row::new(Ink::None, &" ".repeat(8)), state.means(), Ink::None, columns));
    }
    rows
}
