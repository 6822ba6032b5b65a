//! What a judge answers: one JSON object in its last message, alone or in a fenced block at its end. Anything else is no verdict.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The form of the answer, for the prompt of a judge.
pub(crate) const FORM: &str = r#"{"verdict": "accept" | "reject", "findings": ["…"], "criteria": [{"text": "…", "verdict": "accept" | "reject" | "unclear"}]}"#;

/// The most findings and criteria that are read, and the longest text of one.
const MOST: usize = 100;
const LONGEST: usize = 4000;

/// What a judge says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Verdict {
    pub verdict: Answer,
    #[serde(default)]
    pub findings: Vec<String>,
    #[serde(default)]
    pub criteria: Vec<Criterion>,
}

/// The work holds, or it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It does.
    Accept,
    /// It does not.
    Reject,
    /// The judge cannot tell. Only of a criterion.
    Unclear,
}

/// One acceptance criterion, and whether it is met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// The criterion.
    pub text: String,
    /// Whether it is met.
    pub verdict: Answer,
}

/// Reads the answer in a last message. Every criterion must have a verdict, and the whole must agree with its parts.
pub(crate) fn read(message: &str, criteria: &[String]) -> Result<Verdict, String> {
    let mut verdict = object(message)?;
    let parts = verdict.findings.iter().chain(verdict.criteria.iter().map(|criterion| &criterion.text));
    if verdict.findings.len() > MOST || verdict.criteria.len() > MOST || parts.clone().any(|text| text.len() > LONGEST)
    {
        return Err("its answer is too long".to_owned());
    }
    verdict.findings.retain(|finding| !finding.trim().is_empty());
    verdict.criteria = answered(&verdict.criteria, criteria)?;
    let unmet = verdict.criteria.iter().find(|criterion| criterion.verdict != Answer::Accept);
    match (verdict.verdict, unmet) {
        (Answer::Unclear, _) => Err("its verdict must be `accept` or `reject`".to_owned()),
        (Answer::Accept, Some(unmet)) => Err(format!("it accepts, but not the criterion `{}`", unmet.text)),
        (Answer::Reject, None) if verdict.findings.is_empty() => Err("it rejects without a finding".to_owned()),
        _ => Ok(verdict),
    }
}

/// The one object of a message.
fn object(message: &str) -> Result<Verdict, String> {
    let text = message.trim();
    let (text, is_fenced) = match fenced(text) {
        Some(inside) => (inside.trim(), true),
        None => (text, false),
    };
    let wrong = |error: serde_json::Error| format!("its answer is not the JSON that was asked for: {error}");
    let whole = serde_json::from_str(text);
    if whole.is_ok() || is_fenced {
        return whole.map_err(wrong);
    }
    // Words before it are allowed, words after it are not.
    let mut starts = text.match_indices('\n').map(|(at, _)| at + 1).filter(|at| text[*at..].starts_with('{'));
    starts.find_map(|at| serde_json::from_str(&text[at..]).ok()).ok_or_else(|| match whole {
        Err(error) if text.starts_with('{') => wrong(error),
        _ => "its last message is not the JSON that was asked for".to_owned(),
    })
}

/// The inside of a fenced block that ends the message.
fn fenced(text: &str) -> Option<&str> {
    let before = text.strip_suffix("```")?;
    let start = before.rfind("```")?;
    let (language, inside) = before[start + 3..].split_once('\n')?;
    ["", "json"].contains(&language.trim()).then_some(inside)
}

/// The verdict on each criterion, in the order of the criteria: by its text, or by its place where there are as many.
fn answered(given: &[Criterion], criteria: &[String]) -> Result<Vec<Criterion>, String> {
    let same = |one: &str, other: &str| words(one) == words(other);
    let by_place = given.len() == criteria.len();
    let found = criteria.iter().enumerate().map(|(place, text)| {
        let by_text = given.iter().find(|criterion| same(&criterion.text, text));
        let criterion = by_text.or_else(|| given.get(place).filter(|_| by_place));
        let verdict = criterion.ok_or_else(|| format!("it says nothing of the criterion `{text}`"))?.verdict;
        Ok(Criterion { text: text.clone(), verdict })
    });
    found.collect()
}

/// What a judge rejected, to see whether it rejects the same again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rejection {
    pub findings: Vec<String>,
    /// The criteria that are not met.
    pub unmet: Vec<String>,
}

impl Rejection {
    pub(crate) fn of(findings: &[String], criteria: &[Criterion]) -> Self {
        let unmet = criteria.iter().filter(|criterion| criterion.verdict != Answer::Accept);
        Self { findings: findings.to_vec(), unmet: unmet.map(|criterion| criterion.text.clone()).collect() }
    }

    /// True when another one says the same: the same criteria, and findings with nearly the same words.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let covered = |some: &Self, by: &Self| {
            some.findings.iter().all(|finding| by.findings.iter().any(|known| is_alike(finding, known)))
        };
        self.unmet == other.unmet && covered(self, other) && covered(other, self)
    }

    /// Its first words.
    pub(crate) fn first(&self) -> &str {
        self.findings.first().or_else(|| self.unmet.first()).map_or("", String::as_str)
    }
}

/// More than half of the words are the same.
fn is_alike(one: &str, other: &str) -> bool {
    let (one, other) = (words(one), words(other));
    let (one, other): (BTreeSet<_>, BTreeSet<_>) = (one.iter().collect(), other.iter().collect());
    let all = one.union(&other).count();
    all == 0 || one.intersection(&other).count() * 2 > all
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPT: &str = r#"{"verdict":"accept","findings":[],"criteria":[]}"#;

    #[test]
    fn an_answer_is_one_object_alone_or_at_the_end() {
        for message in [
            ACCEPT.to_owned(),
            format!("\n  {ACCEPT}\n"),
            format!("```json\n{ACCEPT}\n```"),
            format!("I looked at everything.\n\n```\n{ACCEPT}\n```\n"),
            format!("I looked at `everything`.\n{ACCEPT}"),
            "{\n  \"verdict\": \"accept\"\n}".to_owned(),
            format!("The form was:\n```\n{FORM}\n```\nMine:\n```json\n{ACCEPT}\n```"),
        ] {
            assert_eq!(read(&message, &[]).map(|verdict| verdict.verdict), Ok(Answer::Accept), "{message}");
        }
    }

    #[test]
    fn anything_else_is_no_verdict() {
        for message in [
            "",
            "I accept.",
            "accept",
            FORM,
            "{\"verdict\":\"accept\"",
            "{\"verdict\":\"accept\"} That is all.",
            "{\"verdict\":\"accept\"}\n{\"verdict\":\"reject\"}",
            "{\"verdict\":\"Accept\"}",
            "{\"verdict\":\"unclear\",\"findings\":[\"x\"]}",
            "{\"verdict\":\"accept\",\"verdict\":\"reject\"}",
            "{\"verdict\":\"reject\",\"findings\":[\" \"]}",
            "{\"verdict\":\"reject\",\"findings\":\"one\"}",
            "[{\"verdict\":\"accept\"}]",
            "```rust\n{\"verdict\":\"accept\"}\n```",
            "```json\n{\"verdict\":\"accept\"}\n```\nBut I am not sure.",
        ] {
            assert!(read(message, &[]).is_err(), "{message}");
        }
        let long = format!("{{\"verdict\":\"reject\",\"findings\":[\"{}\"]}}", "x".repeat(5000));
        assert_eq!(read(&long, &[]).unwrap_err(), "its answer is too long");
    }

    #[test]
    fn every_criterion_has_a_verdict_and_the_whole_agrees_with_them() {
        let criteria = ["`--json` works".to_owned(), "It is documented".to_owned()];
        let answer = |verdict: &str, given: &str| {
            read(&format!("{{\"verdict\":\"{verdict}\",\"findings\":[],\"criteria\":[{given}]}}"), &criteria)
        };
        let one = |text: &str, verdict: &str| format!("{{\"text\":\"{text}\",\"verdict\":\"{verdict}\"}}");
        let both = format!("{},{}", one("it is documented.", "accept"), one("--json works", "accept"));
        let accepted = answer("accept", &both).unwrap();
        assert_eq!(accepted.criteria[0].text, criteria[0], "in the order and words of the criteria");
        let by_place = format!("{},{}", one("1", "reject"), one("2", "accept"));
        let rejected = answer("reject", &by_place).unwrap();
        assert_eq!(Rejection::of(&[], &rejected.criteria).unmet, [criteria[0].clone()]);
        assert!(answer("accept", &by_place).unwrap_err().contains("but not the criterion"));
        assert!(answer("accept", &one("--json works", "accept")).unwrap_err().contains("says nothing of"));
        let unclear = format!("{},{}", one("1", "accept"), one("2", "unclear"));
        assert!(answer("accept", &unclear).is_err() && answer("reject", &unclear).is_ok());
    }

    #[test]
    fn the_same_rejection_is_known_in_other_words() {
        let rejection = |findings: &[&str], unmet: &[&str]| Rejection {
            findings: findings.iter().map(|&text| text.to_owned()).collect(),
            unmet: unmet.iter().map(|&text| text.to_owned()).collect(),
        };
        let first = rejection(&["The flag `--json` is not documented in README.md"], &[]);
        for (other, same) in [
            (rejection(&["The flag `--json` is not documented in README.md."], &[]), true),
            (rejection(&["`--json` is still not documented in README.md"], &[]), true),
            (rejection(&["The parser crashes on empty input"], &[]), false),
            (rejection(&["The flag `--json` is not documented in README.md", "A test is missing"], &[]), false),
            (rejection(&["The flag `--json` is not documented in README.md"], &["It is documented"]), false),
        ] {
            assert_eq!((first.is_same(&other), other.is_same(&first)), (same, same), "{other:?}");
        }
    }
}
