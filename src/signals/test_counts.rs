//! How many tests a runner counted, read from the lines that it prints. Runners that are not known, and runs that stopped before their
//! summary, have no count.

use serde::{Deserialize, Serialize};

/// What a test run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// Tests that failed, or could not run.
    pub failed: u32,
    /// All tests that were run; absent where the runner does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
}

/// Reads the output of test runners, line by line. Several runs in one output add up.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestCounter {
    failed: u32,
    run: u32,
    /// A summary was seen.
    seen: bool,
    /// A part of the tests was not counted.
    uncounted: bool,
    /// unittest tells the number of tests before it tells how many failed.
    unittest: Option<u32>,
    /// `go test` names each test that passed, which it does only with `-v`.
    go: Go,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Go {
    passed: u32,
    failed: u32,
    packages: u32,
}

impl TestCounter {
    /// Takes one line, without escape sequences.
    pub(crate) fn line(&mut self, line: &str) {
        let text = line.trim();
        if let Some(rest) = text.strip_prefix("test result: ") {
            self.add(&listed(rest.split_once(". ").map_or("", |(_, counts)| counts), ';'));
        } else if let Some((_, rest)) = nextest(text) {
            self.add(&listed(rest, ','));
        } else if let Some(rest) = text.strip_prefix("Tests:") {
            self.add(&listed(rest, ','));
        } else if let Some(rest) = text.strip_prefix("Tests ").filter(|rest| rest.ends_with(')')) {
            self.add(&listed(rest.rsplit_once('(').map_or("", |(counts, _)| counts), '|'));
        } else if let Some(counts) = pytest(text) {
            self.add(&listed(counts, ','));
        } else if let Some(rest) = text.strip_prefix("Ran ") {
            self.unittest = rest.split_once(" test").and_then(|(count, rest)| {
                rest.trim_start_matches('s').starts_with(" in ").then(|| count.parse().ok()).flatten()
            });
        } else if let Some(run) = self.unittest.filter(|_| text.starts_with("OK") || text.starts_with("FAILED")) {
            self.unittest = None;
            let failed = text.split(['(', ',', ')']).filter_map(|part| part.trim().split_once('='));
            let failed = failed.filter(|(name, _)| ["failures", "errors", "unexpected successes"].contains(name));
            self.count(run, failed.filter_map(|(_, count)| count.parse().ok()).fold(0, u32::saturating_add));
        } else {
            self.go(line);
        }
    }

    /// Nothing, when no runner told a count.
    pub(crate) fn counts(self) -> Option<TestCounts> {
        let Go { passed, failed, packages } = self.go;
        if self.uncounted || !self.seen && packages == 0 {
            return None;
        }
        let whole = packages == 0 || passed > 0;
        let run = whole.then(|| self.run.saturating_add(passed).saturating_add(failed));
        Some(TestCounts { failed: self.failed.saturating_add(failed), run })
    }

    fn count(&mut self, run: u32, failed: u32) {
        self.seen = true;
        self.run = self.run.saturating_add(run);
        self.failed = self.failed.saturating_add(failed);
    }

    /// Counts with their names. A line without any is no summary.
    fn add(&mut self, counts: &[(u32, String)]) {
        let sum = |names: &[&str]| {
            let known = counts.iter().filter(|(_, name)| names.contains(&name.as_str()));
            known.fold(0, |sum: u32, (count, _)| sum.saturating_add(*count))
        };
        let failed = sum(&["failed", "error", "errors", "timed out", "exec failed"]);
        let passed = sum(&["passed", "xfailed", "xpassed"]);
        if counts.iter().any(|(_, name)| ["passed", "failed", "error", "errors"].contains(&name.as_str())) {
            self.count(passed.saturating_add(failed), failed);
        }
    }

    /// `go test`: top-level tests only, since what is below them is a part of them.
    fn go(&mut self, line: &str) {
        if line.starts_with("--- PASS: ") {
            self.go.passed = self.go.passed.saturating_add(1);
        } else if line.starts_with("--- FAIL: ") {
            self.go.failed = self.go.failed.saturating_add(1);
        } else if line.starts_with("ok  \t") || line.starts_with("FAIL\t") {
            self.go.packages = self.go.packages.saturating_add(1);
            self.uncounted |= line.contains("[build failed]") || line.contains("[setup failed]");
        }
    }
}

/// `12 passed; 1 failed`, with any sign between them. What follows a number in brackets is left out.
fn listed(text: &str, between: char) -> Vec<(u32, String)> {
    let parts = text.split(between).filter_map(|part| part.trim().split_once(' '));
    let counts = parts.filter_map(|(count, name)| {
        let name = name.split_once('(').map_or(name, |(name, _)| name);
        Some((count.parse().ok()?, name.trim().to_owned()))
    });
    counts.collect()
}

/// `Summary [   0.005s] 3/5 tests run: 2 passed, 1 failed`.
fn nextest(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("Summary [")?.split_once("] ")?.1.split_once(" run: ")
}

/// `== 1 failed, 2 passed in 0.12s ==`, or the same without the signs.
fn pytest(text: &str) -> Option<&str> {
    let (counts, time) = text.trim_matches('=').trim().rsplit_once(" in ")?;
    let seconds = time.split_whitespace().next()?.strip_suffix('s')?;
    (seconds.parse::<f64>().is_ok() && counts.starts_with(|first: char| first.is_ascii_digit())).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(output: &str) -> Option<(u32, Option<u32>)> {
        let mut counter = TestCounter::default();
        output.lines().for_each(|line| counter.line(line));
        counter.counts().map(|counts| (counts.failed, counts.run))
    }

    #[test]
    fn known_runners_are_counted() {
        let cargo = "running 3 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n    b\n\n\
            test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s\n";
        let two = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            \n   Doc-tests x\n\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.5s\n";
        let nextest =
            "────────────\n     Summary [   0.035s] 6 tests run: 4 passed (1 slow), 1 failed, 1 timed out, 2 skipped\n";
        let stopped = "     Summary [   0.035s] 2/6 tests run: 1 passed, 1 failed, 0 skipped\n";
        let pytest = "=========================== short test summary info ============================\n\
            FAILED test_a.py::test_b - assert 1 == 2\n\
            ==================== 1 failed, 2 passed, 1 skipped in 0.12s ====================\n";
        let quiet = "..F\n1 failed, 2 passed, 1 warning in 65.21s (0:01:05)\n";
        let broken = "=============================== 1 error in 0.05s ===============================\n";
        let jest = "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 1 skipped, 2 passed, 4 total\n\
            Snapshots:   0 total\nTime:        0.5 s\n";
        let vitest = " Test Files  1 failed | 1 passed (2)\n      Tests  1 failed | 2 passed | 1 skipped (4)\n   Start at  10:00:00\n";
        let go = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/x (0.00s)\n=== RUN   TestB\n\
            --- FAIL: TestB (0.00s)\nFAIL\nFAIL\texample.com/x\t0.003s\nFAIL\n";
        let silent_go = "--- FAIL: TestB (0.00s)\n    b_test.go:5: no\nFAIL\nFAIL\texample.com/x\t0.003s\nok  \texample.com/y\t(cached)\nFAIL\n";
        let good_go = "ok  \texample.com/x\t0.003s\n?   \texample.com/z\t[no test files]\n";
        let unittest = "F.E\n----------------------------------------------------------------------\n\
            Ran 3 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n";
        let one = "Ran 1 test in 0.000s\n\nOK\n";
        for (output, expected) in [
            (cargo, (1, Some(3))),
            (two, (0, Some(15))),
            (nextest, (2, Some(6))),
            (stopped, (1, Some(2))),
            (pytest, (1, Some(3))),
            (quiet, (1, Some(3))),
            (broken, (1, Some(1))),
            (jest, (1, Some(3))),
            (vitest, (1, Some(3))),
            (go, (1, Some(2))),
            (silent_go, (1, None)),
            (good_go, (0, None)),
            (unittest, (2, Some(3))),
            (one, (0, Some(1))),
        ] {
            assert_eq!(counted(output), Some(expected), "{output}");
        }
        assert_eq!(counted(&[two, pytest].concat()), Some((1, Some(18))), "several runners add up");
    }

    #[test]
    fn what_is_no_summary_is_not_counted() {
        for output in [
            "",
            "make: *** [test] Error 1\n",
            "error: could not compile `x` (lib test) due to 1 previous error\n",
            "compiled 3 files in 2.5s\n",
            "no tests ran in 0.01s\n",
            "Tests are fun (really)\nTests: none\n",
            "Ran 3 tests in 0.001s\n",
            "OK\nFAILED (failures=2)\n",
            "FAIL\texample.com/x [build failed]\n",
            "ok 1 - a TAP line\n",
            "test result: odd\n",
        ] {
            assert_eq!(counted(output), None, "{output}");
        }
        assert_eq!(
            counted("99999999999999 passed in 1s\n4294967295 passed in 1s\n2 failed in 1s\n"),
            Some((2, Some(u32::MAX)))
        );
    }
}
