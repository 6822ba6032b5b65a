use proptest::prelude::*;

use super::{Line, Lines, Part};

/// Everything a splitter handed on: bytes, part, terminated.
type Handed = Vec<(Vec<u8>, Part, bool)>;

fn split(chunks: &[&[u8]], cap: usize) -> Handed {
    let mut lines = Lines::new(cap);
    let mut handed = Vec::new();
    let mut take = |line: Line<'_>| handed.push((line.bytes.to_vec(), line.part, line.terminated));
    for chunk in chunks {
        lines.push(chunk, &mut take);
    }
    lines.finish(&mut take);
    handed
}

fn whole(bytes: &[u8]) -> (Vec<u8>, Part, bool) {
    (bytes.to_vec(), Part::Whole, true)
}

#[test]
fn line_endings_of_both_systems_are_taken_off() {
    assert_eq!(
        split(&[b"a\nb\r\n\n\r\nc\rd\n"], 100),
        [whole(b"a"), whole(b"b"), whole(b""), whole(b""), whole(b"c\rd")]
    );
    assert_eq!(split(&[b"a\r", b"\nb"], 100), [whole(b"a"), (b"b".to_vec(), Part::Whole, false)]);
}

#[test]
fn a_stream_without_bytes_has_no_lines() {
    assert_eq!(split(&[], 10), []);
    assert_eq!(split(&[b"", b""], 10), []);
}

#[test]
fn a_last_line_without_a_newline_keeps_its_return() {
    assert_eq!(split(&[b"half\r"], 10), [(b"half\r".to_vec(), Part::Whole, false)]);
}

#[test]
fn a_line_of_exactly_the_cap_is_whole() {
    assert_eq!(split(&[b"abc\nabcd\n"], 4), [whole(b"abc"), whole(b"abcd")]);
    let long = split(&[b"abcde\nf\n"], 4);
    assert_eq!(long, [(b"abcd".to_vec(), Part::First, false), (b"e".to_vec(), Part::Last, true), whole(b"f")]);
}

#[test]
fn an_endless_line_never_holds_more_than_the_cap() {
    let mut lines = Lines::new(1000);
    let mut longest = 0;
    for _ in 0..1000 {
        lines.push(&[b'x'; 700], |line| longest = longest.max(line.bytes.len()));
        assert!(lines.held.len() <= 1000 && lines.held.capacity() <= 4000);
    }
    assert_eq!(longest, 1000);
}

#[test]
fn the_memory_of_a_long_line_is_given_back() {
    let mut lines = Lines::new(8 * 1024 * 1024);
    lines.push(&vec![b'x'; 4 * 1024 * 1024], |_| ());
    assert!(lines.held.capacity() >= 4 * 1024 * 1024);
    lines.push(b"\n", |_| ());
    assert!(lines.held.capacity() <= 64 * 1024);
}

#[test]
fn a_line_beyond_the_cap_comes_in_small_parts_and_gives_its_memory_back() {
    let cap = 4 * 1024 * 1024;
    let mut lines = Lines::new(cap);
    let (mut longest, mut sum) = (0, 0);
    let mut most_at_once = 0;
    for _ in 0..100 {
        let before = sum;
        lines.push(&vec![b'x'; 64 * 1024], |line| {
            (longest, sum) = (longest.max(line.bytes.len()), sum + line.bytes.len());
        });
        most_at_once = most_at_once.max(sum - before);
    }
    assert_eq!(longest, 256 * 1024);
    assert!(most_at_once <= 512 * 1024, "{most_at_once}");
    assert!(lines.held.capacity() <= 2 * 1024 * 1024, "{}", lines.held.capacity());
    lines.finish(|line| sum += line.bytes.len());
    assert_eq!(sum, 100 * 64 * 1024);
}

proptest! {
    /// How the bytes were cut into chunks makes no difference.
    #[test]
    fn chunks_do_not_matter(
        bytes in prop::collection::vec(prop_oneof![4 => Just(b'x'), 1 => Just(b'\n'), 1 => Just(b'\r'), 1 => any::<u8>()], 0..400),
        cuts in prop::collection::vec(0_usize..400, 0..20),
        cap in 1_usize..60,
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(split(&chunks, cap), split(&[&bytes], cap));
    }

    /// Put together again, the parts are what a plain split at newlines gives, and no part is longer than the cap.
    #[test]
    fn no_byte_is_lost_or_added(
        bytes in prop::collection::vec(prop_oneof![6 => Just(b'x'), 1 => Just(b'\n'), 1 => any::<u8>()], 0..400),
        cap in 1_usize..60,
    ) {
        let handed = split(&[&bytes], cap);
        prop_assert!(handed.iter().all(|(part, _, _)| part.len() <= cap));
        let mut joined: Vec<(Vec<u8>, bool)> = Vec::new();
        for (part, which, terminated) in handed {
            match which {
                Part::Whole | Part::First => joined.push((part, terminated)),
                Part::Middle | Part::Last => {
                    let last = joined.last_mut().unwrap();
                    last.0.extend(part);
                    last.1 = terminated;
                }
            }
        }
        let mut expected: Vec<(Vec<u8>, bool)> = bytes.split(|byte| *byte == b'\n').map(|line| (line.to_vec(), true)).collect();
        // After the last newline comes either nothing or an unfinished line.
        let rest = expected.pop().unwrap().0;
        for (line, _) in &mut expected {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        }
        if !rest.is_empty() {
            expected.push((rest, false));
        }
        prop_assert_eq!(joined, expected);
    }
}
