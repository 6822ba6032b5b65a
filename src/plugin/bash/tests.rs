//! The bridge with real shells: values of any bytes, state that stays, faults that are named.

use super::*;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file.sh"), text).unwrap();
        Self { directory }
    }

    fn shell(&self) -> Shell {
        let file = self.directory.path().join("file.sh");
        Shell::start(&file, self.directory.path(), Environment::default(), Path::new("none")).unwrap()
    }

    async fn loaded(&self) -> Shell {
        let mut shell = self.shell();
        shell.load().await.unwrap();
        shell
    }
}

#[tokio::test]
async fn values_of_any_bytes_cross_both_ways() {
    let place = Place::new("keep() { LIST=(\"$@\"); }\nsay() { printf '%s' \"$1\"; }");
    let mut shell = place.loaded().await;
    let strange: [&[u8]; 6] = [b"", b"a b\nc\td", b"'\"\\$(touch x)`touch y`", b"-n", b"\xff\xfe\x01", "ä✓".as_bytes()];
    assert!(shell.call("keep", &strange).await.unwrap().succeeded());
    assert_eq!(shell.array("LIST").await.unwrap(), strange);
    assert_eq!(shell.array("NONE").await.unwrap(), Vec::<Vec<u8>>::new());
    for value in strange {
        assert_eq!(shell.ask("say", &[value]).await.unwrap().answer.fields, [value]);
    }
    assert!(!place.directory.path().join("x").exists());
    shell.close().await;
}

#[tokio::test]
async fn what_a_called_hook_sets_stays_and_what_an_asked_one_sets_is_lost() {
    let place = Place::new("COUNT=0\nmore() { COUNT=$((COUNT + 1)); }\ncount() { echo $COUNT; COUNT=99; }");
    let mut shell = place.loaded().await;
    shell.call("more", &[]).await.unwrap();
    shell.call("more", &[]).await.unwrap();
    assert_eq!(shell.ask("count", &[]).await.unwrap().answer.text(), "2");
    assert_eq!(shell.value("COUNT").await.unwrap().as_deref(), Some("2"));
    assert_eq!(shell.value("NOSUCH").await.unwrap(), None);
}

#[tokio::test]
async fn files_under_strict_options_work_and_the_options_stay_theirs() {
    let place =
        Place::new("set -euo pipefail\nIFS=x\nempty() { LIST=(); false; LIST=(a); }\nok() { echo \"${1-none}\"; }");
    let mut shell = place.loaded().await;
    assert!(shell.call("empty", &[]).await.unwrap().succeeded(), "a hook in a condition is not ended by `set -e`");
    assert_eq!(shell.array("LIST").await.unwrap(), [b"a"]);
    assert_eq!(shell.ask("ok", &[]).await.unwrap().answer.text(), "none");
    assert!(shell.environment().await.unwrap().iter().any(|(name, _)| name == "PATH"));
}

#[tokio::test]
async fn a_failing_hook_is_told_with_status_and_stderr() {
    let place = Place::new("bad() { echo reason >&2; echo shown; return 7; }\ndie() { echo last >&2; exit 9; }");
    let mut shell = place.loaded().await;
    let called = shell.call("bad", &[]).await.unwrap();
    assert_eq!((called.answer.status, called.complaints.as_str()), (7, "reason\nshown\n"));
    assert_eq!(shell.ask("die", &[]).await.unwrap().answer.status, 9, "an asked hook ends only itself");
    let failed = shell.call("die", &[]).await.unwrap_err();
    assert_eq!(failed.what, "`die` ended its shell with exit status 9");
    let message = failed.error(&place.directory.path().join("file.sh")).message;
    assert!(message.contains("file.sh`: `die` ended its shell") && message.ends_with("last"), "{message}");
}

#[tokio::test]
async fn a_file_that_fails_to_load_says_so() {
    for (text, expected) in [
        ("set -e\nfalse\n", "ended its shell with exit status 1"),
        ("echo broken >&2; return 3", "sourcing it gave exit status 3: broken"),
        ("if then", "syntax error"),
        ("exit 4", "ended its shell with exit status 4"),
    ] {
        let error = Place::new(text).shell().load().await.unwrap_err();
        assert!(error.message.contains(expected), "{text}: {}", error.message);
    }
}

#[tokio::test]
async fn a_hook_that_hangs_is_stopped() {
    let place = Place::new("wait_long() { sleep 600; }");
    let mut shell = place.shell().patient(Duration::from_millis(300));
    shell.load().await.unwrap();
    let failed = shell.call("wait_long", &[]).await.unwrap_err();
    assert!(failed.what.starts_with("`wait_long` took longer than"), "{}", failed.what);
}

#[tokio::test]
async fn a_hook_that_reads_its_input_finds_nothing_and_takes_no_request() {
    let place = Place::new("greedy() { cat; read -r x; cat <&198 2>/dev/null; return 0; }");
    let mut shell = place.loaded().await;
    assert!(shell.call("greedy", &[]).await.unwrap().succeeded());
    assert!(shell.call("greedy", &[]).await.unwrap().succeeded());
}

#[tokio::test]
async fn the_log_is_heard_from_hooks_and_their_subshells() {
    let place = Place::new("hook() { log one two; (log three); x=$(log four; echo y); }");
    let mut shell = place.loaded().await;
    assert_eq!(shell.call("hook", &[]).await.unwrap().log, ["one two", "three", "four"]);
}

#[tokio::test]
async fn exported_values_and_plain_ones_are_kept_apart() {
    let place = Place::new("export MADE=here\nPLAIN=x");
    let mut shell = place.shell();
    shell.set("GIVEN", "a b\nc").await.unwrap();
    shell.export("OUTER", "1").await.unwrap();
    shell.load().await.unwrap();
    let environment = shell.environment().await.unwrap();
    let value = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    assert_eq!(value("MADE"), Some("here".into()));
    assert_eq!(value("OUTER"), Some("1".into()));
    assert_eq!((value("PLAIN"), value("GIVEN")), (None, None));
    assert_eq!(shell.value("GIVEN").await.unwrap().as_deref(), Some("a b\nc"));
}

#[tokio::test]
async fn the_functions_of_a_file_are_seen_and_only_those() {
    let place = Place::new("one() { :; }\nfunction two { :; }\nlog() { :; }");
    assert_eq!(place.shell().load().await.unwrap(), ["one", "two"]);
}
