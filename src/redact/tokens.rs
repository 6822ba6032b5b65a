//! The shapes of well-known tokens, read from `rules.txt`, and how one is matched.
//!
//! A shape fits, does not fit, or needs more input to tell; the automaton's dead state distinguishes the second from the third.

use std::sync::OnceLock;

use regex_automata::Anchored;
use regex_automata::dfa::Automaton as _;
use regex_automata::dfa::dense::{Builder, Config, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::{start, syntax};

/// The rules as data; the file says where they come from.
const RULES: &str = include_str!("rules.txt");

/// A line that was broken at a margin is at least this long.
const NARROWEST: usize = 40;

type Machine = DFA<Vec<u32>>;

#[derive(Debug)]
pub(super) struct Token {
    pub(super) name: &'static str,
    /// How every such token begins.
    pub(super) literal: Vec<u8>,
    /// Fewer bits a byte are a placeholder.
    entropy: Option<f64>,
    pattern: &'static str,
    /// Made when it is first needed: most kinds never are.
    machine: OnceLock<Option<Box<Machine>>>,
}

/// Whether something fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    No,
    To(usize),
    /// More input is needed to tell.
    Unknown,
}

/// Whether more input may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Final,
    Open,
}

/// A token that is certain, and reaches the end of the input: where its rest continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest(StateID);

/// All kinds of the rule file.
pub(super) fn tokens() -> Vec<Token> {
    RULES.lines().filter_map(Token::parse).collect()
}

impl Token {
    /// Reads one line; `None` for an empty line or a comment.
    fn parse(line: &'static str) -> Option<Self> {
        let (name, rest) = line.split_once(' ').filter(|(name, _)| !name.starts_with('#'))?;
        // The shape is the rest of the line: there may be blanks in it.
        let (entropy, pattern) = rest.trim().split_once(' ')?;
        let (entropy, pattern) = (entropy.parse().ok(), pattern.trim_start());
        let mut literal = Vec::new();
        let mut rest = pattern.strip_prefix(r"\b").unwrap_or(pattern).as_bytes();
        while let [b'\\', byte @ b'.', after @ ..] | [byte, after @ ..] = rest {
            let plain = byte.is_ascii_alphanumeric() || b"-_.~=/ ".contains(byte);
            if !plain || after.first() == Some(&b'{') {
                break;
            }
            literal.push(*byte);
            rest = after;
        }
        Some(Self { name, literal, entropy, pattern, machine: OnceLock::new() })
    }

    fn machine(&self) -> Option<&Machine> {
        let make = || {
            let syntax = syntax::Config::new().unicode(false).utf8(false);
            let nfa = thompson::Config::new().utf8(false);
            let config = Config::new().start_kind(regex_automata::dfa::StartKind::Anchored);
            Builder::new().syntax(syntax).thompson(nfa).configure(config).build(self.pattern).ok().map(Box::new)
        };
        self.machine.get_or_init(make).as_deref()
    }

    /// Whether a token begins at `start`, where its literal is. `before` is what precedes the input; at the `edges` the
    /// colour changes.
    pub(super) fn fit(
        &self,
        input: &[u8],
        start: usize,
        before: &[u8],
        edges: &[usize],
        end: End,
    ) -> (Fit, Option<Rest>) {
        let no = (Fit::No, None);
        let Some(machine) = self.machine() else { return no };
        let config = start::Config::new().anchored(Anchored::Yes).look_behind(look_behind(input, start, before));
        let Ok(mut state) = machine.start_state(&config) else { return no };
        let mut text = Vec::new();
        let mut at = start;
        while at < input.len() {
            if end == End::Open && is_cut(&input[at..]) {
                return (Fit::Unknown, None);
            }
            let (byte, length) = character(&input[at..]);
            let next = machine.next_state(state, byte);
            if machine.is_match_state(next) {
                if !self.is_random(&text) {
                    return no;
                }
                // Another colour ends it, unless it has changed inside it already.
                let edge = edges.iter().copied().find(|&edge| edge > start).filter(|&edge| edge >= at);
                return match (edge, self.rest(input, at, next, end)) {
                    (Some(edge), (Fit::To(to), _)) if edge < to => (Fit::To(edge), None),
                    (_, rest) => rest,
                };
            }
            if machine.is_dead_state(next) || machine.is_quit_state(next) {
                // A terminal's margin may have broken it.
                if byte != b'\n' || !is_long_line(input, at, before) {
                    return no;
                }
            } else {
                text.push(byte);
                state = next;
            }
            at += length;
        }
        if end == End::Open {
            return (Fit::Unknown, None);
        }
        let is_match = machine.is_match_state(machine.next_eoi_state(state)) && self.is_random(&text);
        if is_match { (Fit::To(at), None) } else { no }
    }

    /// The rest of a token that is certain, from this place on.
    fn rest(&self, input: &[u8], from: usize, state: StateID, end: End) -> (Fit, Option<Rest>) {
        let Some(machine) = self.machine() else { return (Fit::To(from), None) };
        let (mut at, mut state) = (from, state);
        // `state` has already read the byte at this place: it is a match up to here.
        loop {
            let (_, length) = character(input.get(at..).unwrap_or_default());
            let Some(rest) = input.get(at + length..) else { return (Fit::To(at), None) };
            if rest.is_empty() {
                let over = machine.is_match_state(machine.next_eoi_state(state));
                let to = if over { input.len() } else { at };
                return (Fit::To(to), (end == End::Open && over).then_some(Rest(state)));
            }
            let next = machine.next_state(state, character(rest).0);
            if !machine.is_match_state(next) {
                return (Fit::To(at), None);
            }
            (at, state) = (at + length, next);
        }
    }

    /// How much of the next input belongs to a token that was certain before it, and whether it continues behind it.
    pub(super) fn go_on(&self, Rest(state): Rest, input: &[u8], end: End) -> (usize, Option<Rest>) {
        let Some(machine) = self.machine().filter(|_| !input.is_empty()) else { return (0, Some(Rest(state))) };
        let next = machine.next_state(state, character(input).0);
        match self.rest(input, 0, next, end) {
            (Fit::To(to), rest) if machine.is_match_state(next) => (to, rest),
            _ => (0, None),
        }
    }

    fn is_random(&self, text: &[u8]) -> bool {
        self.entropy.is_none_or(|least| entropy(text) >= least)
    }
}

/// True for bytes that only end a token together with what follows them.
fn is_cut(input: &[u8]) -> bool {
    matches!(input, [b'\\' | b'\r'])
}

/// The next character as the token has it, and how many bytes it takes: JSON writes `\/` and `\n`.
fn character(input: &[u8]) -> (u8, usize) {
    let slashes = input.iter().take(4).take_while(|&&byte| byte == b'\\').count();
    match (slashes, input.get(slashes)) {
        (1.., Some(b'/')) => (b'/', slashes + 1),
        (1.., Some(b'n')) => (b'\n', slashes + 1),
        (1.., Some(b'r')) => match &input[slashes + 1..] {
            [b'\\', rest @ ..] if rest.iter().find(|&&byte| byte != b'\\') == Some(&b'n') => (b'\n', 2 * (slashes + 1)),
            _ => (b'\n', slashes + 1),
        },
        _ => match input {
            [b'\r', b'\n', ..] => (b'\n', 2),
            [byte, ..] => (*byte, 1),
            [] => (0, 1),
        },
    }
}

/// The byte before a place. Behind an escape of JSON or a colour code a word begins.
fn look_behind(input: &[u8], start: usize, before: &[u8]) -> Option<u8> {
    let byte = |back: usize| match start.checked_sub(back) {
        Some(at) => Some(input[at]),
        None => before.len().checked_sub(back - start).map(|at| before[at]),
    };
    let is_escape = matches!((byte(2), byte(1)), (Some(b'\\'), Some(b'n' | b'r' | b't' | b'b' | b'f')))
        || matches!((byte(6), byte(5), byte(4)), (Some(b'\\'), Some(b'u'), Some(b'0')));
    let is_colour = byte(1) == Some(b'm')
        && (2..8)
            .map_while(byte)
            .find(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'))
            .is_some_and(|byte| byte == b'[');
    if is_escape || is_colour { None } else { byte(1) }
}

/// Whether the line that ends at a place is as long as a line that was broken at a margin.
fn is_long_line(input: &[u8], at: usize, before: &[u8]) -> bool {
    let ahead = &input[..at];
    let missing = NARROWEST.saturating_sub(ahead.len());
    let Some(earlier) = before.len().checked_sub(missing).map(|from| &before[from..]) else { return false };
    let line = earlier.iter().chain(&ahead[ahead.len() - ahead.len().min(NARROWEST)..]);
    let mut last = 0;
    line.copied().all(|byte| {
        let is_end = byte == b'\n' || (last == b'\\' && byte == b'n');
        last = byte;
        !is_end
    })
}

/// Shannon's, in bits a byte.
pub(super) fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let length = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    let used = counts.iter().filter(|&&count| count > 0);
    used.map(|&count| f64::from(count) / length).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_read_and_begins_with_a_literal() {
        let lines = RULES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        let tokens = tokens();
        assert_eq!(tokens.len(), lines);
        for token in tokens {
            assert!(token.literal.len() >= 3, "{}: {:?}", token.name, String::from_utf8_lossy(&token.literal));
            assert!(token.machine().is_some(), "{}", token.name);
            assert!(token.pattern.ends_with(r"\b") || token.pattern.ends_with(",}"), "{}", token.name);
        }
    }

    #[test]
    fn a_shape_fits_does_not_or_needs_more() {
        let token = Token::parse(r"x  -  \bkey-[a-f0-9]{4}\b").unwrap();
        let fit = |text: &str, end| token.fit(text.as_bytes(), text.find("key-").unwrap(), b"", &[], end).0;
        assert_eq!(fit("a key-12ab.", End::Open), Fit::To(10));
        assert_eq!(fit("key-12ab", End::Open), Fit::Unknown);
        assert_eq!(fit("key-12ab", End::Final), Fit::To(8));
        assert_eq!(fit("key-12", End::Open), Fit::Unknown);
        assert_eq!(fit("key-12", End::Final), Fit::No);
        assert_eq!(fit("key-12abc", End::Final), Fit::No);
        assert_eq!(fit("monkey-12ab ", End::Final), Fit::No);
        assert_eq!(fit(r"\nkey-12ab ", End::Final), Fit::To(10), "behind an escape of JSON");
        assert_eq!(token.fit(b"key-12ab ", 0, b"a", &[], End::Final).0, Fit::No);
        let long = "x".repeat(NARROWEST);
        assert_eq!(fit(&format!("{long} key-1\n2ab "), End::Final), Fit::To(50), "broken at a margin");
        assert_eq!(fit("key-1\n2ab ", End::Final), Fit::No, "two lines");
    }

    #[test]
    fn a_long_token_is_swallowed_as_it_comes() {
        let token = Token::parse(r"x  -  key-[a-f0-9]{4,}").unwrap();
        let (fit, rest) = token.fit(b"key-12ab12", 0, b"", &[], End::Open);
        assert_eq!(fit, Fit::To(10));
        let (length, rest) = token.go_on(rest.unwrap(), b"3456", End::Open);
        assert_eq!(length, 4);
        assert_eq!(token.go_on(rest.unwrap(), b"78 end", End::Open).0, 2);
        assert!(token.fit(b"key-12ab 12", 0, b"", &[], End::Open).1.is_none());
    }

    #[test]
    fn placeholders_have_little_entropy() {
        assert!(entropy(b"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx") < 3.0);
        assert!(entropy(b"ghp_16C7e42F292c6912E7710c838347Ae178B4a") > 3.0);
    }
}
