//! `ralph jq-service`: jq for drivers and agent scripts, on machines that have none, and without a process for each line.

use std::io::{BufReader, BufWriter, Write as _};

use crate::cli::{JqMode, JqService};
use crate::plugin::bash::jq_service::{Broken, lines, run as run_call, serve};
use crate::ui::out;

/// Runs the service until its input ends.
pub(crate) fn run(args: &JqService) -> u8 {
    let input = BufReader::new(std::io::stdin().lock());
    let mut output = BufWriter::new(out::stdout().lock());
    let status = match args.mode {
        JqMode::Serve => serve(input, &mut output).map(|()| 0),
        JqMode::Run => run_call(&args.args, input, &mut output, &mut out::stderr().lock()),
        JqMode::Each => lines(&args.args, Broken::Left, input, &mut output),
        JqMode::Lines => lines(&args.args, Broken::Shown, input, &mut output),
    };
    // Whoever asked may be gone.
    let _ = output.flush();
    status.unwrap_or(0)
}
