//! Text for a terminal: made harmless, measured as it is shown, wrapped to the width.

use std::borrow::Cow;
use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

/// How many columns a tab takes here.
const TAB: &str = "    ";

/// The text with everything replaced that a terminal would obey: control characters, escape sequences
/// and characters that change the direction of writing.
pub fn harmless(text: &str) -> String {
    safe(text).into_owned()
}

/// The same without a copy where nothing is to be replaced: most lines of most agents are plain ASCII.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    // In blocks without a way out in the middle: that is many bytes at a time.
    let is_printable = |block: &[u8]| block.iter().fold(true, |all, byte| all & matches!(byte, 0x20..=0x7e));
    if text.as_bytes().chunks(64).all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => safe.push_str(TAB),
            // The pictures of the control characters: they show what was there.
            '\u{0}'..='\u{1f}' => safe.extend(char::from_u32(0x2400 + u32::from(character))),
            '\u{7f}' => safe.push('\u{2421}'),
            obeyed if is_obeyed(obeyed) => safe.push('\u{fffd}'),
            _ => safe.push(character),
        }
    }
    Cow::Owned(safe)
}

/// Characters that a terminal obeys rather than shows: controls, and those that change the direction of writing.
pub(crate) const fn is_obeyed(character: char) -> bool {
    matches!(
        character,
        '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
    )
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// Breaks a harmless line into rows of at most `columns`, between words where it can.
pub fn wrap(line: &str, columns: usize) -> Vec<String> {
    rows(line, columns, columns).into_iter().map(|row| line[row].to_owned()).collect()
}

/// Where the rows of a harmless line are: the first has `first` columns, those after it have `rest`.
pub(crate) fn rows(line: &str, first: usize, rest: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::with_capacity(1);
    let mut start = 0;
    let mut columns = first.max(8);
    loop {
        let left = &line[start..];
        let Some(end) = overflow(left, columns) else {
            rows.push(start..line.len());
            return rows;
        };
        // A row must not lose its indentation as if that were a break between words.
        let words = left.len() - left.trim_start().len();
        // A blank just behind the row is a break between words, too.
        let reach = if left[end..].starts_with(' ') { end + 1 } else { end };
        let cut = match left[..reach].rfind(' ') {
            Some(blank) if blank > words => blank + 1,
            _ => end,
        };
        rows.push(start..start + left[..cut].trim_end().len());
        start += cut;
        columns = rest.max(8);
    }
}

/// Where the text exceeds the columns; `None` when it fits.
fn overflow(text: &str, columns: usize) -> Option<usize> {
    // No character takes more columns than bytes.
    if text.len() <= columns {
        return None;
    }
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += character.width().unwrap_or(0);
        if used > columns {
            return Some(at);
        }
    }
    None
}

/// The text cut to the columns, with an ellipsis when something is missing.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if overflow(text, columns).is_none() {
        return text.to_owned();
    }
    match overflow(text, columns.saturating_sub(1)) {
        Some(end) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let hostile = "\u{1b}]52;c;x\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r\n\u{8}\u{7f}\u{feff}a\tb";
        let safe = harmless(hostile);
        assert!(safe.chars().all(|character| !character.is_control()), "{safe:?}");
        assert!(!safe.contains('\u{202e}'));
        assert!(safe.ends_with("a    b"));
    }

    #[test]
    fn rows_break_between_words_and_count_columns_not_bytes() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("abcdefghijklm", 10), ["abcdefghij", "klm"]);
        assert_eq!(wrap("日本語日本語", 8), ["日本語日", "本語"]);
        assert!(wrap("            indented words", 10).iter().all(|row| width(row) <= 10));
        assert_eq!(cut("the quick brown", 9), "the quic…");
        assert_eq!(cut("short", 9), "short");
    }
}
