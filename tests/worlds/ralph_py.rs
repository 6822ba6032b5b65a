//! A project of `ralph_py`: `scripts/ralph/prompt.md` and `prd.json`, codex unless `AGENT_CMD` says otherwise.

use super::support::Test;
use super::world;

const WORLD: &str = "004-ralph-py";

/// The world on a machine whose only agent is a codex that says this in the end.
fn with_codex(last: &str) -> Test {
    let events = format!(
        r#"{{"type":"item.completed","item":{{"id":"1","type":"agent_message","text":"{last}"}}}}
{{"type":"turn.completed","usage":{{"input_tokens":5,"output_tokens":7}}}}"#
    );
    let version = "[ \"$1\" = --version ] && { echo codex-cli 0.166.0; exit; }";
    let body = format!("{version}\ncat > \"$HERE/prompt\"\necho $CALLS > moved-$CALLS\ncat <<'END'\n{events}\nEND");
    world(WORLD).stands_for("claude", "exit 1").stands_for("codex", &body)
}

#[test]
fn a_bare_run_finds_its_prompt_and_its_marker() {
    let ran = with_codex("All stories pass.\\n<promise>COMPLETE</promise>").repository().run().complete();
    let ran = ran.shows("this is a ralph_py project (`scripts/ralph/prompt.md`): see `docs/coming-from.md#ralph_py`");
    assert_eq!(ran.facts("run_start")[0]["agent"], "codex");
    let prompt = std::fs::read_to_string(ran.test.bin().join("prompt")).unwrap();
    assert!(prompt.starts_with("# Instructions"), "{prompt}");
}

#[test]
fn a_marker_in_the_middle_does_not_end_it() {
    let ran = with_codex("I will say <promise>COMPLETE</promise> later.").args(&["-n", "2"]).repository().run();
    ran.exits(5).after_iterations(2);
}

#[test]
fn its_transcript_format_and_its_flags_work() {
    let agent = r#"cat > /dev/null; echo $$ > moved
echo '@@RALPH@@ {"type":"text","tag":"THINK","text":"Looking."}'
echo '@@RALPH@@ {"type":"tool_start","tool":{"id":"t1","name":"shell"}}'
echo '@@RALPH@@ {"type":"tool_end","tool":{"id":"t1","status":"ok","duration_ms":218}}'
echo '@@RALPH@@ {"type":"usage","usage":{"total_tokens":1801}}'
echo '<promise>COMPLETE</promise>'"#;
    let test = world(WORLD).file("agent.sh", agent).repository();
    let ran = test.args(&["--agent", "custom", "--agent-cmd", "sh agent.sh", "--transcript", "rtf1"]).run().complete();
    ran.shows("THINK │ Looking.").shows("1,801 tokens");
}
