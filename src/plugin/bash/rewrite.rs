//! Makes the usual forms of calling `jq` cheap: functions in, functions that do the same in less out. Pure.
//!
//! A script starts two processes for each line of output, because a broken line must not end a filter. The bridge has a
//! `jq` that needs none. Only what is certain to mean the same is rewritten; everything else stays as it is.
//!
//! Why this exists although a script runs as it is: the response is extracted after each iteration, by the same loops.
//! `cargo bench --bench bridge` shows 25 times as many lines a second with it. Without it, 5,000 lines of output would
//! hold up each iteration for 20 s on a busy machine instead of for 1 s.

/// What ends the body of a loop that passes over broken lines, as `declare -f` prints it.
const BODY_END: &str = " 2> /dev/null || true;\n";

/// The functions, as `declare -f` prints them, with cheap calls of `jq`.
pub(crate) fn cheaper(functions: &str) -> String {
    without_pipes(&without_loops(functions))
}

/// `while IFS= read -r line; do echo "$line" | jq ARGS 2> /dev/null || true; done` asks the same of each line: it is one
/// filter over all of them.
fn without_loops(functions: &str) -> String {
    const LOOP: &str = "while IFS= read -r ";
    let mut out = String::with_capacity(functions.len());
    let mut rest = functions;
    while let Some(at) = rest.find(LOOP) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some((args, after)) = filter(&from[LOOP.len()..]) {
            out.push_str("__ralph_jq_each ");
            out.push_str(args);
            rest = after;
        } else {
            out.push_str(LOOP);
            rest = &from[LOOP.len()..];
        }
    }
    out + rest
}

/// The arguments of `jq` in a loop that does nothing else, and what follows the loop. `text` begins at the variable.
fn filter(text: &str) -> Option<(&str, &str)> {
    let (name, body) = text.split_once("; do\n")?;
    if !is_name(name) {
        return None;
    }
    let call = body.trim_start().strip_prefix("echo \"$")?.strip_prefix(name)?.strip_prefix("\" | jq ")?;
    let (args, after) = call.split_once(BODY_END)?;
    let after = after.trim_start().strip_prefix("done")?;
    let ended = after.is_empty() || after.starts_with(['\n', ' ', ';', ')']);
    (ended && is_constant(args)).then_some((args, after))
}

/// True for plain words and texts in single quotes: nothing that a shell would change from line to line.
fn is_constant(args: &str) -> bool {
    let outside = args.split('\'').step_by(2);
    let plain = |character: char| character.is_ascii_alphanumeric() || " -_.".contains(character);
    args.matches('\'').count().is_multiple_of(2) && outside.into_iter().all(|part| part.chars().all(plain))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// `echo "$line" | jq …` starts two processes. The bridge's own `jq` can be given the line as it is.
fn without_pipes(functions: &str) -> String {
    let mut out = String::with_capacity(functions.len());
    for line in functions.split_inclusive('\n') {
        let command = line.trim_start();
        let indent = &line[..line.len() - command.len()];
        let rest = command.strip_prefix("echo ").or_else(|| command.strip_prefix("printf '%s\\n' "));
        let piped = rest.and_then(|rest| {
            let (name, call) = rest.strip_prefix("\"$")?.split_once("\" | jq ")?;
            is_name(name).then(|| format!("{indent}__ralph_jq_line \"${name}\" {call}"))
        });
        out.push_str(&piped.unwrap_or_else(|| line.to_owned()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_only_asks_jq_becomes_one_filter() {
        let display = "agent_format_display () \n{ \n    while IFS= read -r line; do\n        echo \"$line\" | jq -r \
                       'select(.a) |\n   \"$x | y\" + .b' 2> /dev/null || true;\n    done\n}\n";
        let expected = "agent_format_display () \n{ \n    __ralph_jq_each -r 'select(.a) |\n   \"$x | y\" + .b'\n}\n";
        assert_eq!(cheaper(display), expected);
        let extract =
            "    while IFS= read -r l; do\n        echo \"$l\" | jq -r .t 2> /dev/null || true;\n    done < \"$1\"\n";
        assert_eq!(cheaper(extract), "    __ralph_jq_each -r .t < \"$1\"\n");
        let twice = format!("{extract}{extract}");
        assert_eq!(cheaper(&twice), "    __ralph_jq_each -r .t < \"$1\"\n".repeat(2));
    }

    #[test]
    fn a_loop_that_does_more_stays_a_loop() {
        for body in [
            "echo \"$other\" | jq -r .t 2> /dev/null || true;",
            "echo \"$line\" | jq -r --arg l \"$line\" .t 2> /dev/null || true;",
            "echo \"$line\" | jq -r .t | head -1 2> /dev/null || true;",
            "echo \"$line\" | jq -r .t 2> /dev/null || true;\n        count=1;",
            "echo \"$line\" | jq -r .t || true;",
            "count=1;\n        echo \"$line\" | jq -r .t 2> /dev/null || true;",
            "echo \"$line\" | jq -r $FILTER 2> /dev/null || true;",
        ] {
            let text = format!("    while IFS= read -r line; do\n        {body}\n    done\n");
            let cheap = cheaper(&text);
            assert!(cheap.contains("while IFS= read -r line; do") && !cheap.contains("_each"), "{cheap}");
        }
    }

    #[test]
    fn only_a_pipe_from_echo_to_jq_is_rewritten() {
        for (line, expected) in [
            ("    echo \"$line\" | jq -r '.a |", "    __ralph_jq_line \"$line\" -r '.a |"),
            ("printf '%s\\n' \"$x_1\" | jq . || true", "__ralph_jq_line \"$x_1\" . || true"),
            ("echo \"$line\" | jqx .", "echo \"$line\" | jqx ."),
            ("echo \"$line $x\" | jq .", "echo \"$line $x\" | jq ."),
            ("echo -n \"$line\" | jq .", "echo -n \"$line\" | jq ."),
            ("cat f | jq .", "cat f | jq ."),
        ] {
            assert_eq!(cheaper(line), expected);
        }
    }
}
