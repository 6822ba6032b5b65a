//! "Did you mean …?": the known name that is closest to a mistyped one.

/// The nearest of the known names, when one is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let known = ["claude", "codex", "gemini", "max_iterations"];
        for (typed, meant) in [
            ("cladue", Some("claude")),
            ("codx", Some("codex")),
            ("max_iteration", Some("max_iterations")),
            ("something", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }
}
