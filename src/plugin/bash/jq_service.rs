//! Three ways to ask for jq: framed calls from the bridge, one call like the tool, and a filter for each line.
//!
//! It runs in a process of its own, so that a program that never ends, or nests too deep, ends nothing else.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use super::jq::{BAD_CALL, Call, Program};

/// As many programs as one script has; a script that makes new ones all the time is compiled again.
const MOST_PROGRAMS: usize = 64;

/// A document of several lines is no longer than this; what is longer is broken, and the program says so.
const LONGEST_DOCUMENT: usize = 1024 * 1024;

/// Answers framed calls: id, number of arguments, arguments, input. The answer is `id status`, the output, and, when the
/// status ends in `!`, complaints. A shell reads byte by byte: what need not be said is left out.
pub(crate) fn serve(mut input: impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let mut programs: HashMap<Vec<String>, Option<Program>> = HashMap::new();
    while let Some(id) = field(&mut input)? {
        let count = field(&mut input)?.and_then(|count| String::from_utf8_lossy(&count).parse::<usize>().ok());
        let mut args = Vec::new();
        for _ in 0..count.unwrap_or(0) {
            args.push(String::from_utf8_lossy(&field(&mut input)?.unwrap_or_default()).into_owned());
        }
        let Some(text) = field(&mut input)? else { return Ok(()) };
        if programs.len() >= MOST_PROGRAMS {
            programs.clear();
        }
        let program = programs
            .entry(args)
            .or_insert_with_key(|args| Call::parse(args).ok().filter(|call| call.files.is_empty())?.compile().ok());
        let (status, out, complaints) = match program {
            Some(program) => {
                let answer = program.run(&text);
                (answer.status.to_string(), answer.stdout, answer.stderr.into_bytes())
            }
            None => ("refused".to_owned(), Vec::new(), Vec::new()),
        };
        let more = if complaints.is_empty() { "" } else { "!" };
        let head = format!("{} {status}{more}", String::from_utf8_lossy(&id));
        for part in [head.as_bytes(), &out, &complaints].into_iter().take(2 + more.len()) {
            // The shell cannot hold a NUL, and would take it for the end of the field.
            let clean: Vec<u8> = part.iter().copied().filter(|&byte| byte != 0).collect();
            output.write_all(&clean)?;
            output.write_all(b"\0")?;
        }
        output.flush()?;
    }
    Ok(())
}

/// The next field, without the NUL that ends it.
fn field(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut field = Vec::new();
    input.read_until(0, &mut field)?;
    Ok((field.pop() == Some(0)).then_some(field))
}

/// One call, like the tool itself: each document as it comes, or the files.
pub(crate) fn run(
    args: &[String],
    mut input: impl BufRead,
    output: &mut impl Write,
    complaints: &mut impl Write,
) -> io::Result<u8> {
    let program = Call::parse(args).and_then(|call| Ok((call.compile()?, call)));
    let (program, call) = match program {
        Ok(compiled) => compiled,
        Err(refused) => {
            writeln!(complaints, "jq: error: {}; install jq for programs like this", refused.0)?;
            return Ok(BAD_CALL);
        }
    };
    let mut status = 0;
    let mut answer = |text: &[u8]| -> io::Result<()> {
        let answer = program.run(text);
        output.write_all(&answer.stdout)?;
        output.flush()?;
        complaints.write_all(answer.stderr.as_bytes())?;
        status = if answer.status == 0 { status } else { answer.status };
        Ok(())
    };
    if call.files.is_empty() && call.streams() {
        // Agents print one document on each line, and whoever watches wants to see it now.
        let mut held = Vec::new();
        while input.read_until(b'\n', &mut held)? > 0 {
            if Program::is_whole(&held) || held.len() > LONGEST_DOCUMENT {
                answer(&held)?;
                held.clear();
            }
        }
        if !held.trim_ascii().is_empty() {
            answer(&held)?;
        }
    } else if call.files.is_empty() {
        let mut all = Vec::new();
        input.read_to_end(&mut all)?;
        answer(&all)?;
    } else {
        let mut all = Vec::new();
        for file in &call.files {
            match std::fs::read(file) {
                Ok(bytes) => all.extend(bytes),
                Err(error) => {
                    writeln!(complaints, "jq: error: could not open {file}: {error}")?;
                    return Ok(2);
                }
            }
        }
        answer(&all)?;
    }
    Ok(status)
}

/// What becomes of a line that is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It is shown as it is.
    Shown,
    Left,
}

/// Each line by itself. Neither a broken line nor one that the program fails on ends it. A call that is not known leaves
/// the input unread.
pub(crate) fn lines(
    args: &[String],
    broken: Broken,
    mut input: impl BufRead,
    output: &mut impl Write,
) -> io::Result<u8> {
    let call = Call::parse(args).ok().filter(|call| call.files.is_empty());
    let Some(program) = call.and_then(|call| call.compile().ok()) else { return Ok(BAD_CALL) };
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if broken == Broken::Left || Program::is_whole(&line) {
            output.write_all(&program.run(&line).stdout)?;
        } else {
            output.write_all(&line)?;
        }
        output.flush()?;
        line.clear();
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(args: &[&str]) -> Vec<String> {
        args.iter().map(|&arg| arg.to_owned()).collect()
    }

    #[test]
    fn framed_calls_are_answered_in_order_and_what_is_unknown_is_refused() {
        let questions = b"1\x002\0-r\0.a\0{\"a\":\"x\\u0000y\"}\n\x002\x001\0inputs\0{}\x003\x001\0.a.b\0{\"a\":1}\0";
        let mut answers = Vec::new();
        serve(&questions[..], &mut answers).unwrap();
        let fields: Vec<&[u8]> = answers.split(|&byte| byte == 0).collect();
        assert_eq!(fields[..5], [&b"1 0"[..], b"xy\n", b"2 refused", b"", b"3 5!"]);
        assert!(fields[6].starts_with(b"jq: error"));
    }

    #[test]
    fn one_call_reads_documents_of_several_lines_and_files() {
        let mut out = Vec::new();
        let status = run(&words(&["-c", "."]), &b"{\n\"a\":\n1}\n2\n"[..], &mut out, &mut Vec::new()).unwrap();
        assert_eq!((status, out.as_slice()), (0, &b"{\"a\":1}\n2\n"[..]));
        let (mut out, mut complaints) = (Vec::new(), Vec::new());
        let status = run(&words(&[".", "/nonexistent/x"]), &b""[..], &mut out, &mut complaints).unwrap();
        assert_eq!(status, 2);
        assert_eq!(run(&words(&["--stream", "."]), &b""[..], &mut out, &mut complaints).unwrap(), BAD_CALL);
    }

    #[test]
    fn a_line_filter_survives_bad_lines_and_bad_values() {
        let input = &b"{\"t\":\"a\"}\nnot json\n{\"t\":{}}\n5\n{\"t\":\"b\"}"[..];
        let mut out = Vec::new();
        let args = words(&["-j", ".t | ascii_downcase"]);
        lines(&args, Broken::Shown, input, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "anot json\nb");
        let mut out = Vec::new();
        lines(&args, Broken::Left, input, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "ab");
        let mut unread = &b"1\n"[..];
        assert_eq!(lines(&words(&["inputs"]), Broken::Left, &mut unread, &mut Vec::new()).unwrap(), BAD_CALL);
        assert_eq!(unread, b"1\n", "what is not known is left unread");
    }
}
