use super::*;
use crate::event::{Known, Status, Usage};

/// What a row of the table expects.
#[derive(Debug, PartialEq)]
enum Said {
    Complete,
    Replan,
    NearMiss,
    Nothing,
    /// Failed, question or blocked.
    Appeal,
}
use Said::{Appeal, Complete, NearMiss, Nothing, Replan};

fn judge(rule: &Rule, messages: Messages, events: &[Event]) -> Said {
    let mut watch = Watch::new(rule.clone(), messages);
    for event in events {
        watch.see(event);
    }
    match watch.end().signal {
        Some(Signal::Complete { .. }) => Complete,
        Some(Signal::Replan { .. }) => Replan,
        Some(Signal::Failed { .. } | Signal::Question { .. } | Signal::Blocked { .. }) => Appeal,
        Some(Signal::NearMiss { .. }) => NearMiss,
        None => Nothing,
    }
}

fn ai(text: &str) -> Event {
    Event::text(Tag::Ai, text)
}

fn tool() -> [Event; 2] {
    [Event::tool_start("t", "shell", None), Event::tool_end("t", Status::Ok, None)]
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn the_last_line_of_one_message() {
    let rule = Rule::new(None, Match::LastLine);
    for (text, expected) in [
        // Alone, in each of the known forms.
        ("LOOP_COMPLETE", Complete),
        ("<promise>COMPLETE</promise>", Complete),
        ("<<<RALPHEX:COMPLETED>>>", Complete),
        ("<<<RALPHEX:ALL_TASKS_DONE>>>", Complete),
        ("<promise>REPLAN</promise>", Replan),
        ("The work is done.\n\nLOOP_COMPLETE", Complete),
        ("LOOP_COMPLETE\n\n  \n", Complete),
        ("   LOOP_COMPLETE\t ", Complete),
        ("\u{200b}LOOP_COMPLETE\u{feff}", Complete),
        ("LOOP_COMPLETE\r\n", Complete),
        // After a finished sentence.
        ("All done. <promise>COMPLETE</promise>", Complete),
        ("All done! LOOP_COMPLETE", Complete),
        ("全部完成。LOOP_COMPLETE", Complete),
        ("完了！LOOP_COMPLETE", Complete),
        ("Tests pass ✅ LOOP_COMPLETE", Complete),
        ("**All done.** `LOOP_COMPLETE`", Complete),
        ("I am not sure that it is done. LOOP_COMPLETE", Complete),
        ("All done.<promise>COMPLETE</promise>", Complete),
        // A stop inside a name ends no sentence.
        ("The last thing left is Status.LOOP_COMPLETE", NearMiss),
        ("I still have to add `Signal.LOOP_COMPLETE`", NearMiss),
        ("if !LOOP_COMPLETE", NearMiss),
        (".LOOP_COMPLETE", NearMiss),
        ("<p>Not yet finished. LOOP_COMPLETE", NearMiss),
        // Not after an unfinished one.
        ("Status: LOOP_COMPLETE", NearMiss),
        ("Done - LOOP_COMPLETE", NearMiss),
        ("Done, LOOP_COMPLETE", NearMiss),
        ("Shall I say LOOP_COMPLETE", NearMiss),
        ("Is it done? LOOP_COMPLETE", NearMiss),
        ("I will not print LOOP_COMPLETE yet", NearMiss),
        ("not LOOP_COMPLETE", NearMiss),
        // Decoration.
        ("**LOOP_COMPLETE**", Complete),
        ("__LOOP_COMPLETE__", Complete),
        ("*LOOP_COMPLETE*", Complete),
        ("`LOOP_COMPLETE`", Complete),
        ("**`<promise>COMPLETE</promise>`**", Complete),
        ("## LOOP_COMPLETE", Complete),
        ("- LOOP_COMPLETE", Complete),
        ("* **LOOP_COMPLETE**", Complete),
        ("1. LOOP_COMPLETE", Complete),
        ("2) LOOP_COMPLETE", Complete),
        ("LOOP\\_COMPLETE", Complete),
        ("LOOP_COMPLETE.", Complete),
        ("LOOP_COMPLETE!", Complete),
        ("**LOOP_COMPLETE.**", Complete),
        ("**LOOP_COMPLETE**.", Complete),
        ("**All done. LOOP_COMPLETE**", Complete),
        ("LOOP_COMPLETE_", NearMiss),
        ("LOOP_COMPLETE**", NearMiss),
        ("_LOOP_COMPLETE", NearMiss),
        ("LOOP_COMPLETE..", NearMiss),
        ("LOOP_COMPLETE?", NearMiss),
        // Two of them.
        ("LOOP_COMPLETE LOOP_COMPLETE", Complete),
        ("LOOP_COMPLETE\nLOOP_COMPLETE", Complete),
        ("<promise>COMPLETE</promise> LOOP_COMPLETE", Complete),
        ("<promise>REPLAN</promise>\n<promise>COMPLETE</promise>", Complete),
        ("<promise>REPLAN</promise> <promise>COMPLETE</promise>", NearMiss),
        // Quoted.
        ("\"LOOP_COMPLETE\"", NearMiss),
        ("'LOOP_COMPLETE'", NearMiss),
        ("(LOOP_COMPLETE)", NearMiss),
        ("> LOOP_COMPLETE", NearMiss),
        ("> All done. LOOP_COMPLETE", NearMiss),
        ("- > LOOP_COMPLETE", NearMiss),
        ("~~LOOP_COMPLETE~~", NearMiss),
        ("<b>LOOP_COMPLETE</b>", NearMiss),
        ("<!-- LOOP_COMPLETE -->", NearMiss),
        ("| LOOP_COMPLETE |", NearMiss),
        // Code.
        ("```\nLOOP_COMPLETE\n```", NearMiss),
        ("```\nLOOP_COMPLETE", NearMiss),
        ("~~~text\nLOOP_COMPLETE\n", NearMiss),
        ("- item\n  ```\n  LOOP_COMPLETE", NearMiss),
        ("````\n```\n````\nLOOP_COMPLETE", Complete),
        ("```\ncode\n```\nLOOP_COMPLETE", Complete),
        ("```\n> ```\nLOOP_COMPLETE", NearMiss),
        ("```\n- ```\nLOOP_COMPLETE", NearMiss),
        ("> ```\n> code\n> ```\n\nLOOP_COMPLETE", Complete),
        ("```inline``` code\nLOOP_COMPLETE", Complete),
        // Followed by more.
        ("LOOP_COMPLETE\nOne more thing.", NearMiss),
        ("LOOP_COMPLETE\n---", NearMiss),
        ("LOOP_COMPLETE and more", NearMiss),
        ("LOOP_COMPLETE</promise>", NearMiss),
        // Not exact.
        ("loop_complete", NearMiss),
        ("LOOP COMPLETE", NearMiss),
        ("<promise>complete</promise>", NearMiss),
        ("<promise> COMPLETE </promise>", NearMiss),
        ("<promise>COMPLETED</promise>", Nothing),
        ("LOOP_COMPLETED", NearMiss),
        ("NOT_LOOP_COMPLETE", NearMiss),
        ("XLOOP_COMPLETE", NearMiss),
        ("COMPLETE", Nothing),
        // Markers of other runs.
        ("<<<RALPHEX:REVIEW_DONE>>>", NearMiss),
        ("<<<RALPHEX:PLAN_READY>>>", NearMiss),
        ("", Nothing),
        ("Still working.", Nothing),
    ] {
        assert_eq!(judge(&rule, Messages::Whole, &[ai(text)]), expected, "one message: {text:?}");
        let lines: Vec<Event> = text.lines().map(ai).collect();
        assert_eq!(judge(&rule, Messages::Lines, &lines), expected, "lines: {text:?}");
        let fragments: Vec<Event> = text.chars().map(|c| Event::delta(Tag::Ai, c.to_string())).collect();
        assert_eq!(judge(&rule, Messages::Whole, &fragments), expected, "fragments: {text:?}");
    }
}

#[test]
fn only_the_agents_own_last_words() {
    let rule = Rule::new(None, Match::LastLine);
    let done = "LOOP_COMPLETE";
    let [start, end] = tool();
    for (name, messages, events, expected) in [
        ("thinking", Messages::Whole, vec![Event::text(Tag::Think, done)], Nothing),
        ("tool output", Messages::Whole, vec![start.clone(), Event::tool_output("t", done), end.clone()], Nothing),
        ("loose tool text", Messages::Lines, vec![Event::text(Tag::Tool, done)], Nothing),
        ("system", Messages::Whole, vec![Event::text(Tag::Sys, done)], Nothing),
        ("prompt echo", Messages::Lines, vec![Event::text(Tag::Prompt, done)], Nothing),
        ("user", Messages::Whole, vec![Event::text(Tag::User, done)], Nothing),
        ("sub-agent", Messages::Whole, vec![ai(done).within("t1")], Nothing),
        ("sub-agent after it", Messages::Whole, vec![ai(done), ai("working").within("t1")], Complete),
        ("an earlier message", Messages::Whole, vec![ai(done), ai("More work.")], NearMiss),
        ("a tool after it", Messages::Whole, vec![ai(done), start.clone(), end.clone()], NearMiss),
        ("a tool before it", Messages::Whole, vec![start.clone(), end.clone(), ai(done)], Complete),
        ("a tool that only ends after it", Messages::Whole, vec![start.clone(), ai(done), end.clone()], Complete),
        ("thinking after it", Messages::Whole, vec![ai(done), Event::text(Tag::Think, "hm")], Complete),
        ("usage after it", Messages::Whole, vec![ai(done), Event::usage(Usage::default())], Complete),
        ("an empty message after it", Messages::Whole, vec![ai(done), ai("\n ")], Complete),
        ("an empty fragment after it", Messages::Whole, vec![ai(done), Event::delta(Tag::Ai, "\n")], Complete),
        ("an empty message after a tool after it", Messages::Whole, vec![ai(done), start.clone(), ai(" ")], NearMiss),
        (
            "thinking between fragments",
            Messages::Whole,
            vec![Event::delta(Tag::Ai, "LOOP_"), Event::delta(Tag::Think, "hm"), Event::delta(Tag::Ai, "COMPLETE")],
            Complete,
        ),
        ("two messages are not one line", Messages::Whole, vec![ai("LOOP_"), ai("COMPLETE")], Nothing),
        ("lines: system between", Messages::Lines, vec![ai("```"), Event::text(Tag::Sys, "x"), ai(done)], NearMiss),
        ("lines: thinking between", Messages::Lines, vec![ai("```"), Event::text(Tag::Think, "x"), ai(done)], Complete),
        ("lines: a tool between", Messages::Lines, vec![ai("```"), start.clone(), end.clone(), ai(done)], Complete),
        (
            "a warning between fragments closes the message",
            Messages::Whole,
            vec![
                Event::delta(Tag::Ai, "LOOP_"),
                Known::Warning { message: "x".into() }.into(),
                Event::delta(Tag::Ai, "COMPLETE"),
            ],
            Nothing,
        ),
    ] {
        assert_eq!(judge(&rule, messages, &events), expected, "{name}");
    }
}

#[test]
fn a_configured_marker_replaces_the_completion_markers_only() {
    let rule = Rule::new(Some(" ALL GREEN! "), Match::LastLine);
    for (text, expected) in [
        ("ALL GREEN!", Complete),
        ("Done. ALL GREEN!", Complete),
        ("all green!", NearMiss),
        ("Not ALL GREEN! yet", NearMiss),
        // Known, and replaced: whoever says them is told.
        ("LOOP_COMPLETE", NearMiss),
        ("<promise>COMPLETE</promise>", NearMiss),
        ("<promise>REPLAN</promise>", Replan),
    ] {
        assert_eq!(judge(&rule, Messages::Whole, &[ai(text)]), expected, "{text:?}");
    }
    assert_eq!(rule.told(), "ALL GREEN!");
}

#[test]
fn an_ordinary_word_as_marker_is_only_meant_where_it_stands_exactly() {
    let rule = Rule::new(Some("DONE"), Match::LastLine);
    for (text, expected) in [
        ("DONE", Complete),
        ("The parser is not done yet.", Nothing),
        ("ABANDONED", Nothing),
        ("It is DONE, I think", NearMiss),
    ] {
        assert_eq!(judge(&rule, Messages::Whole, &[ai(text)]), expected, "{text:?}");
    }
}

#[test]
fn anywhere_restores_the_loose_rule_for_the_agents_words() {
    let rule = Rule::new(None, Match::Anywhere);
    let fragments = ["I say LOOP_", "COMPL", "ETE and go on"].map(|text| Event::delta(Tag::Ai, text));
    assert_eq!(judge(&rule, Messages::Whole, &fragments), Complete);
    assert_eq!(judge(&rule, Messages::Whole, &[ai("x LOOP_COMPLETE y"), ai("more")]), Complete);
    assert_eq!(judge(&rule, Messages::Whole, &[Event::text(Tag::Think, "LOOP_COMPLETE"), ai("more")]), Nothing);
}

#[test]
fn a_near_miss_says_why() {
    for (events, reason) in [
        (vec![ai("```\nLOOP_COMPLETE")], "it is in a code block"),
        (vec![ai("> LOOP_COMPLETE")], "it is quoted"),
        (vec![ai("LOOP_COMPLETE\nBye.")], "it is not on the last line"),
        (vec![ai("LOOP_COMPLETE"), ai("Bye.")], "it is not in the last message"),
        (vec![ai("loop_complete")], "it is not written exactly"),
        (vec![ai("Status: LOOP_COMPLETE")], "it is neither alone on its line nor after a finished sentence"),
        (vec![ai("<<<RALPHEX:PLAN_READY>>>")], "it ends another kind of run"),
        ([vec![ai("LOOP_COMPLETE")], tool().to_vec()].concat(), "the agent continued working after it (tool `shell`)"),
    ] {
        let mut watch = Watch::new(Rule::new(None, Match::LastLine), Messages::Whole);
        for event in &events {
            watch.see(event);
        }
        match watch.end().signal {
            Some(Signal::NearMiss { reason: found, .. }) => assert_eq!(found, reason),
            other => panic!("{events:?}: {other:?}"),
        }
    }
}

#[test]
fn a_line_of_any_length_needs_little_memory() {
    let mut watch = Watch::new(Rule::new(None, Match::LastLine), Messages::Whole);
    for _ in 0..1000 {
        watch.see(&Event::delta(Tag::Ai, "x".repeat(4096)));
    }
    assert!(watch.message.partial.capacity() < 1024 * 1024);
    watch.see(&Event::delta(Tag::Ai, ". LOOP_COMPLETE"));
    assert_eq!(watch.end().signal, Some(Signal::Complete { marker: "LOOP_COMPLETE".into() }));
}

#[test]
fn an_agent_can_give_up_ask_and_be_blocked() {
    let rule = Rule::new(None, Match::LastLine);
    for (text, expected) in [
        ("The key is missing.\n<<<RALPHEX:TASK_FAILED>>>", Appeal),
        ("I cannot.\n<promise>BLOCKED</promise>", Appeal),
        ("<<<RALPHEX:QUESTION>>>\n{\"question\":\"Which?\"}\n<<<RALPHEX:END>>>", Appeal),
        ("no beginning\n<<<RALPHEX:END>>>", NearMiss),
        ("do not print <promise>BLOCKED</promise> here", NearMiss),
        ("```\n<<<RALPHEX:FAILED>>>\n```", NearMiss),
    ] {
        assert_eq!(judge(&rule, Messages::Whole, &[ai(text)]), expected, "{text}");
    }
    let mut watch = Watch::new(rule, Messages::Whole);
    watch.see(&ai("I tried.\n\nThe key is missing.\n<<<RALPHEX:FAILED>>>"));
    let reason = "The key is missing.".to_owned();
    assert_eq!(watch.end().signal, Some(Signal::Failed { marker: "<<<RALPHEX:FAILED>>>".into(), reason }));
}

#[test]
fn some_markers_complete_only_some_runs() {
    let review = Rule::new(None, Match::LastLine).or(&OF_SOME_RUNS);
    assert_eq!(judge(&review, Messages::Whole, &[ai("<<<RALPHEX:REVIEW_DONE>>>")]), Complete);
}
