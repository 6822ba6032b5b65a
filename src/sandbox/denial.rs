//! What a tool's complaint has to do with the wall: one line for people and for the next prompt. Looks at paths only.

use std::path::PathBuf;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use aho_corasick::packed::Searcher;

use super::data;
use super::explain::Answer;
use super::policy::Sandbox;

/// How programs say that they were not allowed something, and where in it the bytes begin that are rarest in other texts.
const SIGNS: [(&str, usize); 6] = [
    ("permission denied", "permissi".len()),
    ("operation not permitted", "operation no".len()),
    ("read-only file system", "read".len()),
    ("eacces", 0),
    ("eperm", 0),
    ("erofs", 0),
];

/// The signs in small and in capital letters, and with one at the beginning of a sentence or of each word.
static SEARCH: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let forms = forms().map(|(form, _)| form);
    AhoCorasick::new(forms).unwrap_or_else(|error| panic!("the signs of a refusal: {error}"))
});

/// Finds the rarest bytes of the signs. It is vectorised, ten times as fast as the search for whole signs; `None` where the
/// processor has no instructions for it.
static RAREST: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let mut rarest: Vec<String> = forms().map(|(form, from)| form[from..].to_owned()).collect();
    rarest.sort_unstable();
    rarest.dedup();
    Searcher::new(rarest)
});

/// Every way a sign is written, each with the place of its rarest bytes.
fn forms() -> impl Iterator<Item = (String, usize)> {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    SIGNS.iter().flat_map(move |&(sign, from)| {
        let title = sign.split(' ').map(capital).collect::<Vec<_>>().join(" ");
        let hyphen = sign.replace("read-only", "Read-Only");
        [sign.to_owned(), sign.to_ascii_uppercase(), capital(sign), title, hyphen].map(|form| (form, from))
    })
}

/// The longest part of an output that is kept for an explanation.
const LONGEST_LINE: usize = 400;

/// The lines of an output that complain of permissions; few, and short.
pub(crate) fn complaints(text: &str) -> impl Iterator<Item = String> + '_ {
    // Nearly every output has none, which one search at memory speed tells.
    let may_be = RAREST.as_ref().is_none_or(|rarest| rarest.find(text).is_some());
    let lines = (may_be && SEARCH.is_match(text)).then(|| text.lines()).into_iter().flatten();
    lines.filter(|line| SEARCH.is_match(*line)).take(5).map(|line| line.chars().take(LONGEST_LINE).collect())
}

impl Sandbox {
    /// The path that a line complains about, and why the wall refused it; none when it did not.
    pub(crate) fn explain_complaint(&self, line: &str) -> Option<(String, String)> {
        let edge = |letter: char| letter.is_whitespace() || "'\"`()[]<>,;=|‘’“”".contains(letter);
        let words = line.split(edge).map(|word| word.trim_end_matches([':', '.', '!', '?']));
        let paths = words.filter(|word| word.contains('/') && word.len() > 1 && !word.contains("//"));
        let paths = paths.filter_map(|word| {
            let absolute = word.starts_with(['/', '~']).then(|| data::path(word, self.home.as_deref(), &|_| None));
            absolute.unwrap_or_else(|| Some(self.workspace.join(word)))
        });
        let paths: Vec<PathBuf> = paths.collect();
        let answers = paths.iter().map(|path| (path, self.path(path)));
        let refused = answers.filter_map(|(path, answer)| match answer {
            Answer { read: Err(why), .. } => Some((path, "read", "read", why)),
            Answer { write: Err(why), .. } => Some((path, "change", "write", why)),
            Answer { .. } => None,
        });
        // A shell names its script first, and what it could not do last.
        let (path, verb, key, why) = refused.last()?;
        let allow = match key {
            // What is kept read-only in the workspace is not opened by a setting.
            "write" if path.starts_with(&self.workspace) => String::new(),
            key => format!("; `sandbox.{key}` would allow it"),
        };
        let path = path.display().to_string();
        Some((path.clone(), format!("the sandbox does not let the agent {verb} `{path}` ({why}){allow}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_about_permissions_are_complaints() {
        let text =
            "ok\ntouch: cannot touch '/etc/x': Permission denied\nError: EROFS: read-only file system, open\nfine";
        assert_eq!(complaints(text).count(), 2);
        assert_eq!(complaints("all tests passed").count(), 0);
        for (form, _) in forms() {
            assert_eq!(complaints(&format!("a: {form}")).count(), 1, "{form}");
            assert_eq!(complaints(&form).count(), 1, "{form}");
        }
    }
}
