//! Finds secrets in bytes: where they are, and how far the bytes are decided when more may follow.

use super::anchors::{Anchors, rarest};
use super::forms::{Form, forms};
use super::tokens::{End, Fit, Rest, Token, tokens};
use super::{Source, flat, key, values};

/// What every private key is called.
pub(super) const KEY: &str = "private-key";

#[derive(Debug)]
pub(super) struct Known {
    /// Owners are numbered in this order: forms of known values, the beginning of a private key, tokens.
    anchors: Anchors,
    pub(super) forms: Vec<Form>,
    tokens: Vec<Token>,
    /// The owners by the first byte of their bytes, for the end of a stream.
    firsts: Vec<Vec<usize>>,
    /// The two bytes that any of them may begin with.
    pairs: Vec<bool>,
    /// The longest that the end of a stream can be the beginning of.
    longest: usize,
}

/// A secret in the input.
#[derive(Clone, Debug)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) owner: usize,
    /// The token is certain, but may continue behind the input.
    pub(super) rest: Option<Rest>,
}

pub(super) struct Scan {
    /// In order, apart from each other.
    pub(super) found: Vec<Match>,
    pub(super) decided: usize,
    /// Nothing in the input even begins like a secret.
    pub(super) clear: bool,
}

impl Known {
    /// Knows the secrets among these values, and all kinds of tokens.
    pub(super) fn new(values: impl IntoIterator<Item = (Source, String, String)>) -> Self {
        let (mut known, tokens): (Vec<Form>, _) = (Vec::new(), tokens());
        for (source, name, value) in values {
            let secrets = match source {
                Source::Environment => values::secrets(&name, &value),
                Source::Configuration => values::configured(&name, &value),
            };
            for form in secrets.iter().flat_map(|secret| forms(&name, secret)) {
                if !known.iter().any(|other| other.text() == form.text()) {
                    known.push(form);
                }
            }
        }
        let mut anchors = Vec::new();
        let mut firsts = vec![Vec::new(); 256];
        let mut pairs = vec![false; 1 << 16];
        for (owner, form) in known.iter().enumerate() {
            anchors.extend(form.anchors().into_iter().map(|(bytes, offset)| (bytes, owner, offset)));
            form.firsts().for_each(|first| firsts[usize::from(first)].push(owner));
            form.pairs(|first, second| pairs[usize::from(first) << 8 | usize::from(second)] = true);
        }
        let literals = [key::BEGIN].into_iter().chain(tokens.iter().map(|token| &token.literal[..]));
        let mut longest = known.iter().map(|form| form.longest).max().unwrap_or(0);
        for (literal, owner) in literals.zip(known.len()..) {
            anchors.extend(rarest(literal).map(|(offset, window)| (window.to_vec(), owner, offset)));
            firsts[usize::from(literal[0])].push(owner);
            pairs[usize::from(literal[0]) << 8 | usize::from(literal[1])] = true;
            longest = longest.max(literal.len());
        }
        Self { anchors: Anchors::new(anchors), forms: known, tokens, firsts, pairs, longest }
    }

    pub(super) fn name(&self, owner: usize) -> &str {
        match owner.checked_sub(self.forms.len()) {
            None => &self.forms[owner].name,
            Some(0) => KEY,
            Some(token) => self.tokens[token - 1].name,
        }
    }

    pub(super) fn token(&self, owner: usize) -> Option<&Token> {
        self.tokens.get(owner.checked_sub(self.forms.len() + 1)?)
    }

    /// True when nothing in the whole input looks like a part of a secret.
    pub(super) fn is_clear(&self, input: &[u8]) -> bool {
        !self.anchors.is_in(input) && !flat::has_codes(input)
    }

    /// The secrets of the input, and how far it is decided.
    pub(super) fn scan(&self, input: &[u8], before: &[u8], end: End) -> Scan {
        // An escape that is cut may turn out to be nothing, or any character.
        let input = if end == End::Open { &input[..input.len() - cut_escape(input)] } else { input };
        let (found, mut decided, mut clear) = self.look(input, before, end, None);
        let mut found = apart(found);
        if let Some(flat) = flat::flat(input, end == End::Open) {
            clear = false;
            let flat_before = flat::flat(before, false).map(|flat| flat.bytes);
            let before = flat_before.as_deref().unwrap_or(before);
            let (more, flat_decided, _) = self.look(&flat.bytes, before, end, Some(&flat.edges()));
            let place = |found: Match| Match { start: flat.start(found.start), end: flat.end(found.end), ..found };
            found.extend(apart(more).into_iter().map(place));
            decided = decided.min(flat.open.unwrap_or(decided));
            if flat_decided < flat.bytes.len() {
                decided = decided.min(flat.start(flat_decided));
            }
        }
        // A backslash before a secret would escape what is in its place.
        let without_slash = |at: usize| at - input[..at].iter().rev().take_while(|&&byte| byte == b'\\').count() % 2;
        for found in &mut found {
            found.start = without_slash(found.start);
        }
        if end == End::Open {
            decided = without_slash(decided);
        }
        found.retain(|found| found.start < decided);
        found.sort_by_key(|found| (found.start, std::cmp::Reverse(found.end)));
        let mut merged: Vec<Match> = Vec::with_capacity(found.len());
        for found in found {
            match merged.last_mut() {
                Some(last) if found.start < last.end => {
                    if found.end > last.end {
                        (last.end, last.rest) = (found.end, found.rest);
                    }
                }
                _ => merged.push(found),
            }
        }
        let end = merged.last().map_or(0, |last| last.end);
        Scan { found: merged, decided: decided.max(end), clear }
    }

    fn look(&self, input: &[u8], before: &[u8], end: End, edges: Option<&[usize]>) -> (Vec<Match>, usize, bool) {
        let mut decided = match end {
            End::Final => input.len(),
            End::Open => self.begun(input).unwrap_or(input.len()),
        };
        let mut found = Vec::new();
        let mut clear = true;
        for hit in self.anchors.find(input) {
            let (start, fit, rest) = if let Some(form) = self.forms.get(hit.owner) {
                let Some((start, fit)) = form.around(input, hit.at, hit.offset, end) else { continue };
                (start, fit, None)
            } else {
                let Some(start) = hit.at.checked_sub(hit.offset) else { continue };
                let (fit, rest) = match self.token(hit.owner) {
                    None if input[start..].starts_with(key::BEGIN) => (key::header(input, start, end), None),
                    Some(token) if input[start..].starts_with(&token.literal) => {
                        token.fit(input, start, before, edges.unwrap_or_default(), end)
                    }
                    _ => continue,
                };
                (start, fit, rest)
            };
            clear = false;
            match fit {
                Fit::No => {}
                Fit::To(_) if rest.is_some() && edges.is_some() => decided = decided.min(start),
                Fit::To(end) => found.push(Match { start, end, owner: hit.owner, rest }),
                Fit::Unknown => decided = decided.min(start),
            }
        }
        (found, decided, clear)
    }

    /// Where the end of the input may be the beginning of a secret.
    fn begun(&self, input: &[u8]) -> Option<usize> {
        let from = input.len().saturating_sub(self.longest);
        (from..input.len()).find(|&start| {
            let rest = &input[start..];
            // Nearly all places are ruled out by two bytes.
            if let [first, second, ..] = *rest
                && !self.pairs[usize::from(first) << 8 | usize::from(second)]
            {
                return false;
            }
            self.firsts[usize::from(rest[0])].iter().any(|&owner| {
                if let Some(form) = self.forms.get(owner) {
                    return form.fit(input, start, End::Open) == Fit::Unknown;
                }
                let literal = self.literal(owner);
                rest.len() < literal.len() && literal.starts_with(rest)
            })
        })
    }

    fn literal(&self, owner: usize) -> &[u8] {
        self.token(owner).map_or(key::BEGIN, |token| &token.literal)
    }
}

/// Of secrets that overlap, only the first: whether a token continues is not asked twice when it comes in pieces.
fn apart(mut found: Vec<Match>) -> Vec<Match> {
    found.sort_by_key(|found| (found.start, std::cmp::Reverse(found.end)));
    let mut end = 0;
    found.retain(|found| {
        let is_apart = found.start >= end;
        end = end.max(found.end);
        is_apart
    });
    found
}

/// How many bytes at the end of the input are the beginning of an escape: `\`, `\u`, `\u0`.
fn cut_escape(input: &[u8]) -> usize {
    let digits = [&br"\u0"[..], br"\u"].into_iter().find(|cut| input.ends_with(cut)).map_or(0, |cut| cut.len() - 1);
    let slashes = input[..input.len() - digits].iter().rev().take(16).take_while(|&&byte| byte == b'\\').count();
    if slashes == 0 || slashes == 16 { 0 } else { slashes + digits }
}
