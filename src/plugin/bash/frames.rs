//! What crosses between ralph and the shell: fields that end in NUL. Pure.
//!
//! Bash cannot hold a NUL, so no value can look like the end of a field.

use memchr::{memchr, memmem};

/// A request as the shell reads it: a verb, the number of arguments, the arguments.
pub(crate) fn request(verb: &str, args: &[&[u8]]) -> Vec<u8> {
    let mut frame = Vec::new();
    for field in [verb.as_bytes(), args.len().to_string().as_bytes()].into_iter().chain(args.iter().copied()) {
        // A NUL would be read as two fields; no argument of a process can have one either.
        frame.extend(field.iter().filter(|&&byte| byte != 0));
        frame.push(0);
    }
    frame
}

/// What the shell says on its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Log(String),
    /// The answer to a request.
    Answer(Answer),
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: i32,
    pub(crate) fields: Vec<Vec<u8>>,
}

impl Answer {
    /// The first field as text, without what a shell would cut off.
    pub(crate) fn text(&self) -> String {
        self.fields.first().map(|field| String::from_utf8_lossy(field).into_owned()).unwrap_or_default()
    }
}

/// Takes what the shell said from the front of its output, when it is there in full.
pub(crate) fn take(buffer: &mut Vec<u8>) -> Option<Said> {
    let mut rest = buffer.as_slice();
    let mut field = || {
        let end = memchr(0, rest)?;
        let (field, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        Some(field.to_vec())
    };
    let number = |field: Vec<u8>| String::from_utf8_lossy(&field).parse::<usize>().ok();
    let said = if field()? == b"log" {
        Said::Log(String::from_utf8_lossy(&field()?).into_owned())
    } else {
        let status = number(field()?).and_then(|status| i32::try_from(status).ok()).unwrap_or(-1);
        let count = number(field()?).unwrap_or(0);
        let fields = (0..count).map(|_| field()).collect::<Option<Vec<_>>>()?;
        Said::Answer(Answer { status, fields })
    };
    let taken = buffer.len() - rest.len();
    buffer.drain(..taken);
    Some(said)
}

/// The most of a hook's complaints that is kept.
const MOST_COMPLAINTS: usize = 64 * 1024;

/// Adds to the shell's standard error. Of a flood the beginning is kept, and the end as far as it may hold the mark.
pub(super) fn add_complaints(buffer: &mut Vec<u8>, bytes: &[u8], mark: &str) {
    buffer.extend_from_slice(bytes);
    if buffer.len() > 2 * MOST_COMPLAINTS && memmem::find(buffer, &sign(mark)).is_none() {
        buffer.drain(MOST_COMPLAINTS..buffer.len() - sign(mark).len());
    }
}

fn sign(mark: &str) -> Vec<u8> {
    [b"\0", mark.as_bytes(), b"\0"].concat()
}

/// Takes the mark that ends a request from the shell's standard error: what came before it, if it is there.
pub(crate) fn take_complaints(buffer: &mut Vec<u8>, mark: &str) -> Option<Vec<u8>> {
    let sign = sign(mark);
    let at = memmem::find(buffer, &sign)?;
    let complaints = buffer[..at].to_vec();
    buffer.drain(..at + sign.len());
    Some(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_carries_any_bytes_but_nul() {
        assert_eq!(request("call", &[b"a\n'\"", b"", b"x\0y"]), b"call\x003\0a\n'\"\0\0xy\0");
    }

    #[test]
    fn an_answer_is_taken_only_when_it_is_whole() {
        let whole = b"log\0hello\0answer\x007\x002\0a\nb\0\0rest";
        for end in 0..whole.len() {
            let mut buffer = whole[..end].to_vec();
            let mut said = Vec::new();
            while let Some(next) = take(&mut buffer) {
                said.push(next);
            }
            assert_eq!(said.len(), usize::from(end >= 10) + usize::from(end >= whole.len() - 4), "{end}");
        }
        let mut buffer = whole.to_vec();
        assert_eq!(take(&mut buffer), Some(Said::Log("hello".into())));
        let fields = vec![b"a\nb".to_vec(), Vec::new()];
        assert_eq!(take(&mut buffer), Some(Said::Answer(Answer { status: 7, fields })));
        assert_eq!(buffer, b"rest");
    }

    #[test]
    fn a_flood_of_complaints_is_cut_and_its_mark_is_found() {
        for chunk in [1, 7, 4096, 65536] {
            let flood = [b"first\n".repeat(50_000), b"\0m1\0next".to_vec()].concat();
            let mut buffer = Vec::new();
            for bytes in flood.chunks(chunk) {
                add_complaints(&mut buffer, bytes, "m1");
                assert!(buffer.len() <= 2 * MOST_COMPLAINTS + chunk, "{}", buffer.len());
            }
            assert!(take_complaints(&mut buffer, "m1").unwrap().starts_with(b"first\n"));
            assert_eq!(buffer, b"next", "{chunk}");
        }
    }

    #[test]
    fn complaints_end_at_the_mark() {
        let mut buffer = b"oh no\n\0m1\0next".to_vec();
        assert_eq!(take_complaints(&mut buffer, "m2"), None);
        assert_eq!(take_complaints(&mut buffer, "m1"), Some(b"oh no\n".to_vec()));
        assert_eq!(buffer, b"next");
    }
}
