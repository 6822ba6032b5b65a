//! Numbers that agents print for people: `732`, `2.5k`, `1,024`.

/// The number that a text begins with, blanks aside.
pub(crate) fn first(text: &str) -> Option<u64> {
    read(text.split_whitespace().next()?)
}

/// A number with separators of thousands, or rounded to `k` or `m`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded counts of tokens")]
pub(crate) fn read(word: &str) -> Option<u64> {
    let word = word.trim_end_matches(['.', ',', ')']).replace(',', "");
    let (digits, times) = match word.char_indices().last()? {
        (at, 'k' | 'K') => (&word[..at], 1e3),
        (at, 'm' | 'M') => (&word[..at], 1e6),
        _ => return word.parse().ok(),
    };
    let number: f64 = digits.parse().ok()?;
    (0.0..1e9).contains(&number).then(|| (number * times).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_and_separated_numbers_are_read() {
        for (word, number) in [
            ("732", Some(732)),
            ("1,024", Some(1024)),
            ("2.5k", Some(2500)),
            ("1.2M", Some(1_200_000)),
            ("84.", Some(84)),
            ("k", None),
            ("-1k", None),
            ("x", None),
        ] {
            assert_eq!(read(word), number, "{word}");
        }
        assert_eq!(first(" 2.5k (1.6k cached)"), Some(2500));
        assert_eq!(first(""), None);
    }
}
