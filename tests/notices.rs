//! Somebody who looks elsewhere is told, and the run does not care whether that works.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use fake_agent::says;
use support::Test;

#[test]
fn a_command_of_the_user_is_told_that_the_run_is_complete() {
    let config = "notify:\n  command: [sh, -c, 'echo \"$RALPH_NOTICE in $RALPH_WORKSPACE\" > told; cat > told.json']\n";
    let ran = Test::new().file("ralph.yml", config).agent(says("All done.\n<promise>COMPLETE</promise>")).run();
    let ran = ran.complete().shows("somebody is told by the command `sh -c");
    let workspace = ran.test.workspace();
    let told = std::fs::read_to_string(workspace.join("told")).unwrap();
    assert_eq!(told.trim(), format!("complete in {}", workspace.display()));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(workspace.join("told.json")).unwrap()).unwrap();
    assert_eq!((json["notice"].as_str(), json["exit_code"].as_u64()), (Some("complete"), Some(0)));
}

#[test]
fn a_notice_that_does_not_arrive_changes_nothing() {
    let config = "notify:\n  command: 'false'\n  webhook: http://127.0.0.1:1/\n";
    let ran = Test::new().file("ralph.yml", config).agent(says("All done.\n<promise>COMPLETE</promise>")).run();
    ran.complete()
        .complains("warning: a notice did not arrive: `false` failed")
        .complains("cannot reach http://127.0.0.1:1");
}
