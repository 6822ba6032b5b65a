//! Which files may change: `allowed_paths`, as exact names, directories, or with `*`. Pure.

/// True when the path fits one of the patterns.
pub fn is_allowed(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| {
        let pattern = pattern.trim_start_matches("./");
        let directory = pattern.trim_end_matches("**").trim_end_matches('/');
        path == pattern
            || (directory.len() < pattern.len() || !directory.contains('*'))
                && !directory.is_empty()
                && path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
            || fits(pattern.as_bytes(), path.as_bytes())
    })
}

/// `*` stands for anything but a slash, `**` for anything.
fn fits(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => {
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            (0..=path.len()).any(|at| fits(rest, &path[at..]))
        }
        [b'*', rest @ ..] => {
            let most = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
            (0..=most).any(|at| fits(rest, &path[at..]))
        }
        [first, rest @ ..] => path.first() == Some(first) && fits(rest, &path[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_directories_and_stars() {
        for (pattern, path, expected) in [
            ("PLAN.md", "PLAN.md", true),
            ("PLAN.md", "docs/PLAN.md", false),
            ("./PLAN.md", "PLAN.md", true),
            ("docs", "docs/a/b.md", true),
            ("docs/", "docs/a.md", true),
            ("docs", "docs2/a.md", false),
            ("docs/**", "docs/a/b.md", true),
            ("*.md", "a.md", true),
            ("*.md", "docs/a.md", false),
            ("**/*.md", "docs/x/a.md", true),
            ("**/*.md", "a.md", true),
            ("docs/*.md", "docs/x/a.md", false),
            ("", "a", false),
        ] {
            assert_eq!(is_allowed(&[pattern.to_owned()], path), expected, "{pattern} {path}");
        }
    }
}
