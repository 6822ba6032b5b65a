//! What a judge said, in words: the verdict, its findings, each criterion.

use super::figures;
use super::style::Ink;
use super::text::harmless;
use crate::journal::{Judgement, Ruling};
use crate::signals::verdict::Answer;

/// The verdict in one line, then what it rests on.
pub(crate) fn lines(judgement: &Judgement, between: &str) -> Vec<(String, Ink)> {
    let Judgement { agent, verdict, reason, duration_ms, usage, cost, .. } = judgement;
    let (said, ink) = match verdict {
        Ruling::Accept => ("accepted".to_owned(), Ink::Good),
        Ruling::Reject => ("rejected".to_owned(), Ink::Bad),
        Ruling::None => (format!("no verdict: {}", harmless(reason)), Ink::Warn),
    };
    let mut parts = vec![format!("judge {}: {said}", harmless(agent)), figures::duration(*duration_ms)];
    parts.extend(figures::usage(usage, *cost).iter().map(|part| harmless(part)));
    let mut lines = vec![(parts.join(between), ink)];
    lines.extend(judgement.criteria.iter().map(|criterion| {
        let (met, ink) = match criterion.verdict {
            Answer::Accept => ("met", Ink::Good),
            Answer::Reject => ("not met", Ink::Bad),
            Answer::Unclear => ("unclear", Ink::Warn),
        };
        (format!("  {met}: {}", harmless(&criterion.text)), ink)
    }));
    lines.extend(judgement.findings.iter().map(|finding| (format!("  finding: {}", harmless(finding)), Ink::Warn)));
    lines.extend(
        judgement.saved.iter().map(|saved| (format!("  what it changed is kept as `{}`", harmless(saved)), Ink::Dim)),
    );
    lines
}

/// How a judge begins.
pub(crate) fn start(agent: &str, model: Option<&str>, attempt: u32) -> String {
    let model = model.map_or_else(String::new, |model| format!(", model {}", harmless(model)));
    let again = if attempt > 1 { ", once more" } else { "" };
    format!("judge {}{model}{again}: looks at the work", harmless(agent))
}
