//! How a marker is written on a line: alone, decorated, after a sentence, or only nearly. Pure.

use super::markdown::{heading_mark_free, is_emphasis, is_invisible, list_mark_free, trim_end, trim_start};
use super::promise::Rule;

/// What a sentence ends with, so that a marker may follow it on the same line.
const SENTENCE_ENDS: [char; 3] = ['。', '！', '✅'];
/// The same, but these also are inside names and code: a marker that is a word must keep a distance.
const NARROW_ENDS: [char; 2] = ['.', '!'];

/// True when the line ends with the marker, alone or after a finished sentence.
pub(super) fn closes(line: &str, marker: &str, rule: &Rule) -> bool {
    let unescaped = line.replace("\\_", "_");
    [line, &unescaped].iter().any(|line| {
        let Some(mut before) = before_marker(line, marker) else { return false };
        while let Some(earlier) = rule.alike(marker).find_map(|marker| before_marker(before, marker)) {
            before = earlier;
        }
        // What is right before the marker may only decorate it.
        let words = before.trim_end_matches(is_emphasis);
        let sentence = trim_end(words).trim_end_matches(is_emphasis);
        // `- ` and `+ ` are marks of a list; without the blank they are those of a diff.
        if words.ends_with(['+', '-']) {
            return false;
        }
        let narrow = trim_end(words).len() < words.len() || marker.starts_with('<');
        is_only_marks(before)
            || !trim_start(before).starts_with('<')
                && (sentence.ends_with(SENTENCE_ENDS) || sentence.ends_with(NARROW_ENDS) && narrow)
                && sentence.len() > 1
    })
}

/// What is before a marker that closes the line; decoration and one full stop may follow it. Decoration has two
/// sides: a mark on one side only is a character too many.
fn before_marker<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    let mut rest = trim_end(line);
    let mut stop_allowed = true;
    let mut closing = String::new();
    loop {
        if let Some(before) = rest.strip_suffix(marker) {
            let opening = &before[before.trim_end_matches(is_emphasis).len()..];
            let paired =
                closing.chars().all(|mark| before.contains(mark)) && opening.chars().all(|mark| closing.contains(mark));
            return paired.then_some(before);
        }
        let last = rest.chars().next_back()?;
        match last {
            _ if is_emphasis(last) => closing.push(last),
            '.' | '!' if stop_allowed => stop_allowed = false,
            _ => return None,
        }
        rest = trim_end(&rest[..rest.len() - last.len_utf8()]);
    }
}

/// True when nothing but heading marks, list marks and emphasis is left.
fn is_only_marks(text: &str) -> bool {
    let bare = |text: &str| text.trim_matches(|character| is_emphasis(character) || is_invisible(character)).to_owned();
    let mut text = bare(text);
    while !text.is_empty() {
        // The blank after a mark may have been trimmed away with what followed it.
        let rest = bare(heading_mark_free(list_mark_free(&format!("{text} "))));
        if rest.len() >= text.len() {
            return false;
        }
        text = rest;
    }
    true
}

/// True when the line has the marker in it, or something that looks like it.
pub(super) fn resembles(line: &str, marker: &str) -> bool {
    let is_word = |text: &str, at: usize| {
        let joins = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        !joins(text[..at].chars().next_back()) && !joins(text[at + marker.len()..].chars().next())
    };
    let line = line.replace("\\_", "_");
    // A marker that is an ordinary word is only meant where it is exactly.
    if marker.chars().all(|character| character.is_alphanumeric() || character.is_whitespace()) {
        return line.match_indices(marker).any(|(at, _)| is_word(&line, at));
    }
    let fold = |text: &str| -> String {
        text.chars().filter(|c| !is_invisible(*c) && !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
    };
    fold(&line).contains(&fold(marker))
}
