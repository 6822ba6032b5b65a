//! One run as one file: the same page with the rows inside. It opens from disk, asks nobody, and cannot steer.

use std::io::{self, Write};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::api::kept_diff;
use super::pages::{self, Newest};
use super::rows::Limits;
use super::{HTML, Place, SCRIPT, STYLE, run};
use crate::ui::history::RunDetails;

/// The end of the page's head, and where its files are named.
const STYLE_LINK: &str = "<link rel=\"stylesheet\" href=\"page.css\">";
const SCRIPT_LINK: &str = "<script src=\"page.js\" defer></script>";

/// Writes the page of a run.
pub(crate) fn export(out: &mut dyn Write, place: &Place, details: &RunDetails) -> io::Result<()> {
    let journal = place.directory.journal();
    // Only this style and this script may run, whatever is in the page.
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    let meta = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    let (head, rest) = HTML.split_once(STYLE_LINK).unwrap_or((HTML, ""));
    let (body, tail) = rest.split_once(SCRIPT_LINK).unwrap_or((rest, ""));
    // The policy comes before anything that it allows.
    let head = head.replacen("<meta charset=\"utf-8\">", &format!("<meta charset=\"utf-8\">\n{meta}"), 1);
    write!(out, "{head}<style>{STYLE}</style>{body}")?;
    let mut header = run::header(details, &place.workspace, &Newest::of(&journal)?);
    header["iterations"] = run::iterations(details, 0).into();
    header["steer"] = false.into();
    data(out, "run", &header)?;
    let mut from = 0;
    while from < details.summary.covers {
        let page = pages::after(&journal, from, details.summary.covers, Limits::FILE)?;
        let next = page["to"].as_u64().unwrap_or(from);
        if next == from {
            break;
        }
        data(out, "rows", &page)?;
        from = next;
    }
    let numbers: Vec<u32> = details.summary.iterations.iter().map(|tried| tried.iteration).collect();
    for iteration in std::iter::once(None).chain(numbers.into_iter().map(Some)) {
        if let Some(text) = kept_diff(place, iteration).filter(|text| !text.is_empty()) {
            data(out, "diff", &json!({ "iteration": iteration, "text": text }))?;
        }
    }
    write!(out, "<script>{SCRIPT}</script>{tail}")?;
    out.flush()
}

/// Data that the script reads. No text can end the element: `<` is never written as such.
fn data(out: &mut dyn Write, kind: &str, value: &Value) -> io::Result<()> {
    let text = value.to_string().replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" data-kind=\"{kind}\">{text}</script>")
}

/// As a policy names a hash: SHA-256 in base 64.
fn hash(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = Sha256::digest(text.as_bytes());
    let mut encoded = String::new();
    for group in digest.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            encoded.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_written_as_browsers_expect_it() {
        assert_eq!(hash("alert('Hello, world.');"), "qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
    }

    #[test]
    fn the_page_is_small_and_has_the_places_that_an_export_replaces() {
        assert!(HTML.contains(STYLE_LINK) && HTML.contains(SCRIPT_LINK) && HTML.contains("<meta charset=\"utf-8\">"));
        assert!(HTML.len() + STYLE.len() + SCRIPT.len() < 150 * 1024);
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }

    #[test]
    fn no_text_ends_the_element_that_holds_it() {
        let mut out = Vec::new();
        data(&mut out, "rows", &json!({ "text": "</script><script>alert(1)</script><!--" })).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!((text.matches("</script").count(), text.matches("<!--").count()), (1, 0), "{text}");
    }
}
