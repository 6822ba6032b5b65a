//! The little Markdown that the completion rule needs: what is decoration, what is a quotation, what is
//! code. Works line by line, so that a message of any length needs no more memory than a line.

/// An open code block.
#[derive(Clone, Copy, Debug)]
struct Open {
    mark: char,
    length: usize,
    /// It began inside a block quote.
    quoted: bool,
}

/// Follows fenced code blocks from line to line.
#[derive(Clone, Debug, Default)]
pub struct Fences {
    open: Option<Open>,
}

impl Fences {
    /// True when the line belongs to a fenced block, its fences included.
    pub fn line(&mut self, line: &str) -> bool {
        if let Some(Open { mark, length, quoted }) = self.open {
            // Only the marks that the opening stood behind may stand before the closing.
            let text = line.trim_start();
            let text = if quoted { text.trim_start_matches(['>', ' ']) } else { text };
            let marks = text.chars().take_while(|&character| character == mark).count();
            if marks >= length && text[marks..].trim().is_empty() {
                self.open = None;
            }
            return true;
        }
        let text = quote_and_list_free(line);
        let Some(mark @ ('`' | '~')) = text.chars().next() else { return false };
        let length = text.chars().take_while(|&character| character == mark).count();
        let info = text[length..].trim();
        // Back-ticks in the info string: that is code within a line.
        let opens = length >= 3 && !(mark == '`' && info.contains('`'));
        if opens {
            self.open = Some(Open { mark, length, quoted: is_block_quote(line) });
        }
        opens
    }
}

/// The line without blanks, block-quote and list marks in front: a fence inside them is a fence.
fn quote_and_list_free(line: &str) -> &str {
    let mut text = line.trim_start();
    loop {
        let shorter = list_mark_free(text.strip_prefix('>').unwrap_or(text)).trim_start();
        if shorter.len() == text.len() {
            return text;
        }
        text = shorter;
    }
}

/// True when the line is quoted, also inside a list item.
pub fn is_block_quote(line: &str) -> bool {
    let mut text = trim_start(line);
    loop {
        if text.starts_with('>') {
            return true;
        }
        let shorter = trim_start(list_mark_free(text));
        if shorter.len() == text.len() {
            return false;
        }
        text = shorter;
    }
}

/// The text without one list mark in front.
pub fn list_mark_free(text: &str) -> &str {
    for mark in ["- ", "* ", "+ ", "• "] {
        if let Some(rest) = text.strip_prefix(mark) {
            return rest;
        }
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=9).contains(&digits) {
        let rest = &text[digits..];
        if let Some(rest) = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")) {
            return rest;
        }
    }
    text
}

/// The text without a heading mark in front.
pub fn heading_mark_free(text: &str) -> &str {
    let marks = text.bytes().take_while(|&byte| byte == b'#').count();
    match text.as_bytes().get(marks) {
        Some(b' ' | b'\t') | None if (1..=6).contains(&marks) => &text[marks..],
        _ => text,
    }
}

/// Emphasis and code marks, which stand on both sides of what they decorate.
pub const fn is_emphasis(character: char) -> bool {
    matches!(character, '*' | '_' | '`')
}

/// Blanks, and characters that nobody sees.
pub fn is_invisible(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(character, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Without blanks and invisible characters at the start.
pub fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_invisible)
}

/// Without blanks and invisible characters at the end.
pub fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_invisible)
}
