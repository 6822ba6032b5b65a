//! Reads the answer of `git status --porcelain=v2 -z`. Pure.

/// What is different in a work tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Status<'a> {
    /// Files whose content is not what the index says, and files that it does not have.
    pub(super) changed: Vec<&'a [u8]>,
    /// How many of them are new; they are at the end.
    pub(super) new: usize,
    /// Repositories inside this one.
    pub(super) nested: Vec<&'a [u8]>,
    /// Files that are not as in the last commit, and whether they are missing.
    pub(super) uncommitted: Vec<(&'a [u8], bool)>,
}

impl<'a> Status<'a> {
    pub(super) fn read(answer: &'a [u8]) -> Self {
        let mut status = Self::default();
        for entry in answer.split(|&byte| byte == 0) {
            let fields_before_path = match entry.first() {
                Some(b'?') if entry.ends_with(b"/") => {
                    status.nested.push(&entry[2..entry.len() - 1]);
                    continue;
                }
                Some(b'?') => {
                    status.changed.push(&entry[2..]);
                    status.uncommitted.push((&entry[2..], false));
                    status.new += 1;
                    continue;
                }
                Some(b'1') => 8,
                Some(b'u') => 10,
                _ => continue,
            };
            let mut fields = entry.splitn(fields_before_path + 1, |&byte| byte == b' ');
            let state = fields.nth(1).unwrap_or_default();
            let Some(path) = fields.nth(fields_before_path - 2) else { continue };
            status.uncommitted.push((path, state.contains(&b'D')));
            if state.get(1) != Some(&b'.') {
                status.changed.push(path);
            }
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_new_and_nested_are_told_apart() {
        let answer = b"1 .M N... 100644 100644 100644 a a with space\x001 M. N... 100644 100644 100644 a a staged\0\
            1 .D N... 100644 100644 000000 a a gone\0? new\nline\0? inner/\0";
        let status = Status::read(answer);
        assert_eq!(status.changed, [&b"with space"[..], b"gone", b"new\nline"]);
        assert_eq!((status.new, status.nested), (1, vec![&b"inner"[..]]));
        assert_eq!(status.uncommitted.len(), 4);
    }
}
