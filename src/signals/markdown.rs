//! The little Markdown that the completion rule needs: what is decoration, what is a quotation, what is
//! code. Works line by line, so that a message of any length needs no more memory than a line.

#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: char,
    length: usize,
    /// It began inside a block quote.
    quoted: bool,
}

/// Follows fenced code blocks from line to line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    open: Option<Fence>,
}

impl Fences {
    /// True when the line belongs to a fenced block, its fences included.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if let Some(Fence { mark, length, quoted }) = self.open {
            // Only the marks that the opening stood behind may be before the closing.
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
            self.open = Some(Fence { mark, length, quoted: is_block_quote(line) });
        }
        opens
    }
}

/// Where a line is, when a marker on it is not the agent's own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Fence,
    /// In indented code, or between `<pre>` and its end.
    Code,
    Comment,
    Quote,
    Diff,
}

impl Place {
    /// Why a marker there does not count.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Fence | Self::Code => "it is in a code block",
            Self::Comment => "it is in an HTML comment",
            Self::Quote => "it is quoted",
            Self::Diff => "it is in a diff",
        }
    }
}

/// Follows all blocks in which words are not the agent's own, from line to line.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "several blocks can be open at once")]
pub(crate) struct Blocks {
    fences: Fences,
    /// The line before was empty, or there was none.
    after_blank: bool,
    indented: bool,
    /// The columns where the texts of the open list items begin, the innermost last.
    list: Vec<usize>,
    /// A paragraph of a quotation is open, so that a line without `>` continues it.
    quote: bool,
    comment: Comment,
    element: Option<Element>,
    diff: bool,
}

/// HTML elements whose words are code or a quotation.
const ELEMENTS: [&str; 6] = ["pre", "code", "samp", "xmp", "textarea", "blockquote"];

/// An HTML element that is open.
#[derive(Clone, Copy, Debug)]
struct Element {
    name: &'static str,
    /// It began in the middle of a line and ends with the paragraph at the latest: words often mention an element.
    inline: bool,
}

/// The first line of git's diffs.
const DIFF: &str = "diff --git ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comment {
    Closed,
    /// It began in the middle of a line and ends with the paragraph at the latest.
    Inline,
    Block,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            fences: Fences::default(),
            after_blank: true,
            indented: false,
            list: Vec::new(),
            quote: false,
            comment: Comment::Closed,
            element: None,
            diff: false,
        }
    }
}

impl Blocks {
    pub(crate) fn blank(&mut self) {
        self.after_blank = true;
        self.quote = false;
        self.element = self.element.filter(|element| !element.inline);
        if matches!(self.comment, Comment::Inline) {
            self.comment = Comment::Closed;
        }
    }

    /// A line that is not empty.
    pub(crate) fn line(&mut self, line: &str) -> Option<Place> {
        let after_blank = std::mem::replace(&mut self.after_blank, false);
        if self.is_in_plain_text() && is_prose(line) {
            (self.diff, self.indented) = (false, false);
            if after_blank {
                self.list.clear();
            }
            return None;
        }
        self.any_line(line, after_blank)
    }

    fn any_line(&mut self, line: &str, after_blank: bool) -> Option<Place> {
        if self.fences.line(line) {
            (self.quote, self.indented) = (false, false);
            return Some(Place::Fence);
        }
        let diff = self.in_diff(line);
        let html = self.html(line);
        let quote = self.in_quote(line);
        let code = self.in_code(line, after_blank);
        html.or(diff.then_some(Place::Diff)).or(quote.then_some(Place::Quote)).or(code.then_some(Place::Code))
    }

    /// Nothing is open that could continue on the next line.
    const fn is_in_plain_text(&self) -> bool {
        self.fences.open.is_none()
            && !self.quote
            && matches!(self.comment, Comment::Closed)
            && self.element.is_none()
            && !self.diff
    }

    fn in_diff(&mut self, line: &str) -> bool {
        let header = [DIFF, "@@ -", "--- a/", "+++ b/", "--- /dev/null", "+++ /dev/null"];
        let inside = line.starts_with(['+', '-', ' ', '@', '\\'])
            || ["index ", "new file mode ", "deleted file mode "].iter().any(|start| line.starts_with(start));
        self.diff = header.iter().any(|start| line.starts_with(start)) || self.diff && inside;
        self.diff
    }

    /// Comments and elements of code; a beginning between back-ticks is only mentioned.
    fn html(&mut self, line: &str) -> Option<Place> {
        if self.comment == Comment::Closed && self.element.is_none() && memchr::memchr(b'<', line.as_bytes()).is_none()
        {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        let text = trim_start(&lower);
        let inside = match (self.comment, self.element) {
            (Comment::Inline | Comment::Block, _) => Some(Place::Comment),
            (Comment::Closed, Some(_)) => Some(Place::Code),
            (Comment::Closed, None) => None,
        };
        if self.comment != Comment::Closed && text.contains("-->") {
            self.comment = Comment::Closed;
        }
        self.element = self.element.filter(|element| !text.contains(&format!("</{}", element.name)));
        if self.comment == Comment::Closed && self.element.is_none() {
            match opened(text, "<!--", "-->") {
                Some(0) => self.comment = Comment::Block,
                Some(_) => self.comment = Comment::Inline,
                None => self.element = ELEMENTS.into_iter().find_map(|name| opened_element(text, name)),
            }
        }
        let code = self.element.is_some().then_some(Place::Code);
        inside.or((self.comment != Comment::Closed).then_some(Place::Comment)).or(code)
    }

    fn in_quote(&mut self, line: &str) -> bool {
        if is_block_quote(line) {
            let words = quote_and_list_free(line);
            self.quote = !words.is_empty() && !words.starts_with(['#', '`', '~']);
            return true;
        }
        let text = trim_start(line);
        self.quote &= list_mark_free(text).len() == text.len() && heading_mark_free(text).len() == text.len();
        self.quote
    }

    /// Code is indented by four columns, counted from the text of the list item that it belongs to.
    fn in_code(&mut self, line: &str, after_blank: bool) -> bool {
        let blanks = line.chars().take_while(|letter| matches!(letter, ' ' | '\t'));
        let indent =
            blanks.fold(0_usize, |columns, letter| if letter == '\t' { (columns / 4 + 1) * 4 } else { columns + 1 });
        let text = line.trim_start();
        let words = list_mark_free(text);
        let is_item = words.len() < text.len();
        while (after_blank || is_item) && self.list.last().is_some_and(|begin| indent < *begin) {
            self.list.pop();
        }
        let begin = self.list.last().copied().unwrap_or(0);
        self.indented = indent >= begin + 4 && (after_blank || self.indented);
        if is_item && !self.indented {
            let mark = text.chars().count() - words.chars().count();
            let blanks = words.len() - words.trim_start_matches(' ').len();
            // An item can begin with code.
            self.indented = blanks >= 4;
            self.list.push(indent + mark + if self.indented { 0 } else { blanks });
        }
        self.indented
    }
}

/// True for a line that begins with a word and has no element: most lines. Only a header of a diff begins like that, too.
fn is_prose(line: &str) -> bool {
    let is_word = matches!(line.as_bytes(), [first, second, ..]
        if first.is_ascii_alphabetic() && (second.is_ascii_alphabetic() || *second == b' '));
    is_word && memchr::memchr(b'<', line.as_bytes()).is_none() && !line.starts_with(DIFF)
}

/// Where something begins on a line that does not end on it.
fn opened(text: &str, start: &str, end: &str) -> Option<usize> {
    let at = text.rfind(start).filter(|&at| text[..at].matches('`').count().is_multiple_of(2))?;
    (!text[at..].contains(end)).then_some(at)
}

/// An element of this name that begins on a line and does not end on it.
fn opened_element(text: &str, name: &'static str) -> Option<Element> {
    let start = format!("<{name}");
    let at = opened(text, &start, &format!("</{name}"))?;
    let rest = &text[at + start.len()..];
    let inline = at > 0;
    // A tag can continue in the next line, but not one that words mention.
    let is_tag = rest.starts_with(['>', ' ', '\t', '/']) && rest.contains('>') || rest.is_empty() && !inline;
    (is_tag || !inline && rest.starts_with([' ', '\t'])).then_some(Element { name, inline })
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
pub(crate) fn is_block_quote(line: &str) -> bool {
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
pub(crate) fn list_mark_free(text: &str) -> &str {
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
pub(crate) fn heading_mark_free(text: &str) -> &str {
    let marks = text.bytes().take_while(|&byte| byte == b'#').count();
    match text.as_bytes().get(marks) {
        Some(b' ' | b'\t') | None if (1..=6).contains(&marks) => &text[marks..],
        _ => text,
    }
}

/// Emphasis and code marks, which are on both sides of what they decorate.
pub(crate) const fn is_emphasis(character: char) -> bool {
    matches!(character, '*' | '_' | '`')
}

/// Blanks, and characters that nobody sees.
pub(crate) fn is_invisible(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(character, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Without blanks and invisible characters at the start.
pub(crate) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_invisible)
}

/// Without blanks and invisible characters at the end.
pub(crate) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_invisible)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_short_way_of_a_line_of_words_gives_what_the_long_way_gives(
            lines in proptest::collection::vec("(diff --git |> |- |1\\. |```|<pre>|<!--|    |@@ -|index |~~~)?[a-z]{0,2}[ .<`>-]{0,2}[a-z]{0,3}(-->|</pre>)?", 1..20)
        ) {
            let (mut short, mut long) = (Blocks::default(), Blocks::default());
            for line in &lines {
                if line.trim().is_empty() {
                    short.blank();
                    long.blank();
                    continue;
                }
                let after_blank = std::mem::replace(&mut long.after_blank, false);
                prop_assert_eq!(short.line(line), long.any_line(line, after_blank), "{:?} in {:?}", line, lines);
            }
        }
    }
}
