//! Somebody who looks elsewhere is told, and the run does not care whether that works.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/commands.rs"]
mod commands;
mod support;

use fake_agent::says;
use support::Test;

#[test]
fn a_command_of_the_user_is_told_that_the_run_is_complete() {
    let config = "notify:\n  command: [sh, -c, 'echo \"$RALPH_NOTICE in $RALPH_WORKSPACE\" > told; cat > told.json']\n";
    let ran = Test::new().file("ralph.yml", config).agent(says("All done.\n<promise>COMPLETE</promise>")).run();
    let ran = ran.complete().shows("notifications: `");
    let workspace = ran.test.workspace();
    let told = std::fs::read_to_string(workspace.join("told")).unwrap();
    assert_eq!(told.trim(), format!("complete in {}", workspace.display()));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(workspace.join("told.json")).unwrap()).unwrap();
    assert_eq!((json["notice"].as_str(), json["exit_code"].as_u64()), (Some("complete"), Some(0)));
}

#[test]
fn a_command_with_shell_signs_is_run_by_a_shell() {
    let config = "notify:\n  command: 'cat | tr a-z A-Z > told && echo $RALPH_NOTICE >> told'\n";
    let ran =
        Test::new().file("ralph.yml", config).agent(says("All done.\n<promise>COMPLETE</promise>")).run().complete();
    let told = std::fs::read_to_string(ran.test.workspace().join("told")).unwrap();
    assert!(told.contains("\"NOTICE\":\"COMPLETE\"") && told.ends_with("complete\n"), "{told}");
}

#[test]
fn a_missing_program_is_said_at_the_start_and_a_test_finds_it() {
    let config = "notify: {command: no-such-bell-x}\n";
    let ran =
        Test::new().file("ralph.yml", config).agent(says("All done.\n<promise>COMPLETE</promise>")).run().complete();
    let ran = ran.shows("notifications will fail:").shows("`no-such-bell-x`");
    let tested = ran.test.tool().args(["notify", "--test"]).output().unwrap();
    assert_eq!(tested.status.code(), Some(1));
    let test = ran.test.file("ralph.yml", "notify: {command: 'echo \"$RALPH_NOTICE\" > told'}\n");
    let tested = test.tool().args(["notify", "--test"]).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
    assert_eq!(std::fs::read_to_string(test.workspace().join("told")).unwrap(), "test\n");
    let nothing = Test::new().tool().args(["notify", "--test"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2), "nothing is configured");
}

#[test]
fn a_notice_that_does_not_arrive_changes_nothing() {
    let config = "notify:\n  command: 'false'\n  webhook: http://127.0.0.1:1/\n";
    let ran = Test::new().file("ralph.yml", config).agent(says("All done.\n<promise>COMPLETE</promise>")).run();
    ran.complete()
        .complains("warning: notification failed: `false` failed")
        .complains("cannot reach http://127.0.0.1:1");
}

#[test]
fn an_encrypted_address_is_reached_by_curl_and_stands_in_no_list_of_processes() {
    let config = "notify:\n  webhook: 'https://hooks.example/x?key=\"secret\"'\n";
    // What curl is told on its standard input names the file with the words.
    let curl = "cat > \"$HERE/config\"; cp \"$(sed -n 's/^data-binary = \"@\\(.*\\)\"$/\\1/p' \"$HERE/config\")\" \"$HERE/body\"";
    let test = Test::new().file("ralph.yml", config).stands_for("curl", curl);
    let ran = test.agent(says("All done.\n<promise>COMPLETE</promise>")).run().complete();
    assert!(!ran.argv(1).join(" ").contains("hooks.example"), "{:?}", ran.argv(1));
    let told = std::fs::read_to_string(ran.test.bin().join("config")).unwrap();
    assert!(told.contains(r#"url = "https://hooks.example/x?key=\"secret\"""#), "{told}");
    let body: serde_json::Value = serde_json::from_slice(&std::fs::read(ran.test.bin().join("body")).unwrap()).unwrap();
    assert_eq!(body["notice"].as_str(), Some("complete"));
}

#[test]
fn a_notification_has_no_more_time_than_the_run() {
    let config = "notify:\n  on: [failed]\n  command: 'echo $$ > pid; exec sleep 40'\n";
    let test = Test::new().file("ralph.yml", config).command("sleep 30").args(&["--max-time", "1s"]);
    let start = std::time::Instant::now();
    let ran = test.run().exits(5).complains("notification failed: stopped after 2 s");
    assert!(start.elapsed() < std::time::Duration::from_secs(8), "{:?}", start.elapsed());
    let pid = std::fs::read_to_string(ran.test.workspace().join("pid")).unwrap();
    let process = std::path::Path::new("/proc").join(pid.trim());
    // It is killed at once, and reaped a moment later.
    let gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        !process.exists()
    });
    assert!(gone, "it was stopped");
}

#[test]
fn each_secret_part_of_a_webhook_is_a_secret() {
    let parts = ["T0AB12CD3", "B0XY98ZW7", "xKd83jQmNfoePq1SlaMwTz0u"];
    let address = format!("http://127.0.0.1:1/services/{}?key=purple-horse-9931&v=1", parts.join("/"));
    let agent =
        format!("printf '%s\\n' {} purple-horse-9931 /services/{} LOOP_COMPLETE", parts.join(" "), parts.join("/"));
    let config = format!("notify: {{on: [blocked], webhook: '{address}'}}\n");
    let ran = Test::new().file("ralph.yml", config).command(&agent).run().complete();
    let path = support::run_directory(&ran.test.workspace()).unwrap().join("journal.jsonl");
    let journal = std::fs::read_to_string(path).unwrap();
    let said = ran.stdout().split("LOOP_COMPLETE").nth(1).unwrap_or_default().to_owned();
    for part in parts.into_iter().chain(["purple-horse-9931"]) {
        assert!(!journal.contains(part), "{part}: {journal}");
        assert!(!said.contains(part), "{part}: {said}");
    }
    assert!(journal.contains("/services/"), "what is public stays: {journal}");
}
