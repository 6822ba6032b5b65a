//! Flags that users of other loops type: an error that names ralph's own.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags of ralph-orchestrator, bmalph, ralphex, ralph-loop and `ralph_py`, with what does the same here.
const FLAGS: &[(&[&str], &str)] = &[
    (&["-p", "--prompt"], "give the prompt as words, `ralph run \"…\"`, or a file with `-P FILE`"),
    (&["--no-tui", "-a", "--autonomous"], "leave it out: lines are the default, `--tui` opens the full screen"),
    (&["--max-runtime"], "use `--max-time`, such as `--max-time 4h`"),
    (&["-m"], "use `-n` for the maximum of iterations"),
    (&["--continue"], "use `ralph resume`"),
    (&["--reset-session", "--reset-circuit"], "leave it out: every run starts fresh; `ralph resume` continues one"),
    (&["--circuit-status"], "use `ralph status`"),
    (&["-s", "--status"], "use `ralph status`"),
    (&["--monitor"], "use `--tui`, or `ralph tui` in another terminal"),
    (&["--calls"], "set `limits.calls_per_hour` in `ralph.yml`"),
    (&["--session-expiry"], "set `session_expiry` in `ralph.yml`"),
    (&["--allowed-tools"], "use `--tools`"),
    (&["--hats", "-H"], "put `hats:` into `ralph.yml`, or give the file with `--config`"),
    (&["--rpc", "--record-session"], "use `--output json`; every run is recorded (`ralph runs`)"),
    (&["--session-timeout"], "use `--timeout`"),
    (&["--wait"], "set `limits.max_wait` in `ralph.yml`; waiting for a rate limit is the default"),
    (&["--tasks-only"], "use `ralph build`"),
    (&["--review", "-r"], "use `ralph review`"),
    (&["--task-model"], "use `--model` with `ralph build`, `ralph review` or `ralph plan`"),
    (&["--claude-args"], "put the arguments into the command: `--claude-command 'CMD ARGS'`"),
    (&["--tool"], "use `--agent`"),
];

/// What to do instead, when the command line has a flag of another loop.
pub(super) fn hint(error: &clap::Error) -> Option<&'static str> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let flag = flag.split('=').next().unwrap_or(flag);
    FLAGS.iter().find(|(names, _)| names.contains(&flag)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn flags_of_other_loops_are_explained_and_none_of_ralphs_own_is_listed() {
        for (names, _) in FLAGS {
            for name in *names {
                let error = Cli::command().try_get_matches_from(["ralph", "run", name]).unwrap_err();
                assert!(hint(&error).is_some(), "{name}: {error}");
            }
        }
        let error = Cli::command().try_get_matches_from(["ralph", "run", "--strange"]).unwrap_err();
        assert_eq!(hint(&error), None);
        assert!(Cli::command().try_get_matches_from(["ralph", "run", "-b", "demo", "-c", "x.yml"]).is_ok());
        let alias = ["ralph", "run", "--backend", "demo", "--completion-promise", "X", "--no-progress", "3"];
        assert!(Cli::command().try_get_matches_from(alias).is_ok());
    }
}
