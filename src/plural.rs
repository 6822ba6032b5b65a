//! `1 line`, `2 lines`: a count and what is counted, the same in every message and view.

/// A count, and the noun as it goes with it.
pub(crate) fn plural(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    format!("{count} {one}{}", ending(count))
}

/// What a regular noun ends in after a count.
pub(crate) const fn ending(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_one() {
        assert_eq!([0_u32, 1, 2].map(|count| plural(count, "line")), ["0 lines", "1 line", "2 lines"]);
    }
}
