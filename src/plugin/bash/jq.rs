//! `jq` without a `jq`: the programs of drivers and agent scripts, evaluated by a library.
//!
//! One call is what one start of the tool would be: arguments and input in, output and exit status out. What it does
//! not know it refuses, so that the caller can ask the system's tool; it must never guess.

use std::fmt::Write as _;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars, data, unwrap_valr};
use jaq_json::{Val, read, write};

/// The exit status for an error while a program ran.
const RUNTIME_ERROR: u8 = 5;
/// The exit status for input that is not JSON.
const BAD_INPUT: u8 = 2;
/// The exit status for a call or a program that cannot be understood.
pub(crate) const BAD_CALL: u8 = 3;

/// What a call of `jq` asks for, or why it cannot be served here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) program: String,
    /// The files to read instead of standard input.
    pub(crate) files: Vec<String>,
    /// How the values are written.
    form: Form,
    /// What the program is given.
    input: Input,
    /// Whether the last value decides the exit status.
    verdict: bool,
    /// `--arg` and `--argjson`.
    variables: Vec<(String, Given)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the tool")]
struct Form {
    raw: bool,
    joined: bool,
    compact: bool,
    sorted: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Input {
    none: bool,
    raw: bool,
    slurped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    Text(String),
    Json(String),
}

/// A call that must go to the system's `jq`: why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub String);

impl Call {
    /// Reads the arguments of a call.
    pub(crate) fn parse(args: &[String]) -> Result<Self, Refused> {
        let mut call = Self {
            program: String::new(),
            files: Vec::new(),
            form: Form::default(),
            input: Input::default(),
            verdict: false,
            variables: Vec::new(),
        };
        let mut words = Vec::new();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut next = || rest.next().cloned().ok_or_else(|| Refused(format!("`{arg}` lacks a value")));
            match arg.as_str() {
                "--" => words.extend(rest.by_ref().cloned()),
                "--arg" => call.variables.push((next()?, Given::Text(next()?))),
                "--argjson" => call.variables.push((next()?, Given::Json(next()?))),
                long if long.starts_with("--") => call.long(long)?,
                short if short.starts_with('-') && short.len() > 1 => {
                    short[1..].chars().try_for_each(|letter| call.short(letter))?;
                }
                word => words.push(word.to_owned()),
            }
        }
        let mut words = words.into_iter();
        call.program = words.next().ok_or_else(|| Refused("there is no program".to_owned()))?;
        call.files = words.collect();
        Ok(call)
    }

    fn long(&mut self, flag: &str) -> Result<(), Refused> {
        let letter = match flag {
            "--raw-output" => 'r',
            "--join-output" => 'j',
            "--compact-output" => 'c',
            "--sort-keys" => 'S',
            "--null-input" => 'n',
            "--raw-input" => 'R',
            "--slurp" => 's',
            "--exit-status" => 'e',
            "--monochrome-output" | "--unbuffered" => 'M',
            _ => return Err(Refused(format!("the flag `{flag}` is not known here"))),
        };
        self.short(letter)
    }

    fn short(&mut self, letter: char) -> Result<(), Refused> {
        match letter {
            'r' => self.form.raw = true,
            'j' => (self.form.raw, self.form.joined) = (true, true),
            'c' => self.form.compact = true,
            'S' => self.form.sorted = true,
            'n' => self.input.none = true,
            'R' => self.input.raw = true,
            's' => self.input.slurped = true,
            'e' => self.verdict = true,
            'M' => {}
            _ => return Err(Refused(format!("the flag `-{letter}` is not known here"))),
        }
        Ok(())
    }

    /// True when each document can be answered as it comes.
    pub(crate) const fn streams(&self) -> bool {
        !(self.input.none || self.input.raw || self.input.slurped || self.verdict)
    }

    /// The program, ready to run.
    pub(crate) fn compile(&self) -> Result<Program, Refused> {
        let mut names = vec!["$ENV".to_owned()];
        let mut values = vec![environment()];
        for (name, given) in &self.variables {
            names.push(format!("${name}"));
            values.push(match given {
                Given::Text(text) => Val::from(text.clone()),
                Given::Json(text) => read::parse_single(text.as_bytes())
                    .map_err(|error| Refused(format!("the value of `{name}` is not JSON: {error}")))?,
            });
        }
        let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let arena = Arena::default();
        let modules = Loader::new(definitions)
            .load(&arena, File { code: self.program.as_str(), path: () })
            .map_err(|_| Refused("the program cannot be parsed".to_owned()))?;
        let filter = Compiler::default()
            .with_funs(functions)
            .with_global_vars(names.iter().map(String::as_str))
            .compile(modules)
            .map_err(|errors| {
                let unknown = errors.iter().flat_map(|(_, errors)| errors).map(|(name, _)| format!("`{name}`"));
                Refused(format!("the program uses what is not known here: {}", unknown.collect::<Vec<_>>().join(", ")))
            })?;
        Ok(Program { call: self.clone(), filter, values })
    }
}

fn environment() -> Val {
    let text = |os: std::ffi::OsString| Val::from(os.to_string_lossy().into_owned());
    Val::obj(std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect())
}

/// A program that can run.
pub(crate) struct Program {
    call: Call,
    filter: Filter<data::JustLut<Val>>,
    values: Vec<Val>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) stdout: Vec<u8>,
    /// What it complained about.
    pub(crate) stderr: String,
    pub(crate) status: u8,
}

impl Program {
    /// True when the text is nothing but whole documents.
    pub(crate) fn is_whole(text: &[u8]) -> bool {
        read::parse_many(text).all(|document| document.is_ok())
    }

    /// Runs it on the whole of its input.
    pub(crate) fn run(&self, input: &[u8]) -> Answer {
        let mut answer = Answer::default();
        let mut last = None;
        if self.call.input.none {
            self.value(Val::Null, &mut answer, &mut last);
        } else if self.call.input.raw {
            let text = String::from_utf8_lossy(input);
            if self.call.input.slurped {
                self.value(Val::from(text.into_owned()), &mut answer, &mut last);
            } else {
                text.lines().for_each(|line| self.value(Val::from(line.to_owned()), &mut answer, &mut last));
            }
        } else {
            self.documents(input, &mut answer, &mut last);
        }
        if self.call.verdict && answer.status == 0 {
            answer.status = match last {
                None => 4,
                Some(Val::Null | Val::Bool(false)) => 1,
                Some(_) => 0,
            };
        }
        answer
    }

    fn documents(&self, input: &[u8], answer: &mut Answer, last: &mut Option<Val>) {
        let mut all = Vec::new();
        for document in read::parse_many(input) {
            match document {
                Ok(value) if self.call.input.slurped => all.push(value),
                Ok(value) => self.value(value, answer, last),
                Err(error) => {
                    let _ = writeln!(answer.stderr, "jq: error (at <stdin>): {error}");
                    answer.status = BAD_INPUT;
                    return;
                }
            }
        }
        if self.call.input.slurped {
            self.value(all.into_iter().collect(), answer, last);
        }
    }

    /// Runs it on one value.
    fn value(&self, input: Val, answer: &mut Answer, last: &mut Option<Val>) {
        let context = Ctx::<data::JustLut<Val>>::new(&self.filter.lut, Vars::new(self.values.iter().cloned()));
        for output in self.filter.id.run((context, input)).map(unwrap_valr) {
            match output {
                Ok(value) => {
                    self.write(&value, &mut answer.stdout);
                    *last = Some(value);
                }
                Err(error) => {
                    let _ = writeln!(answer.stderr, "jq: error (at <stdin>): {error}");
                    answer.status = RUNTIME_ERROR;
                    return;
                }
            }
        }
    }

    fn write(&self, value: &Val, out: &mut Vec<u8>) {
        let form = &self.call.form;
        match value {
            Val::TStr(text) | Val::BStr(text) if form.raw => out.extend_from_slice(text),
            _ => {
                let indent = (!form.compact).then(|| "  ".to_owned());
                let printer =
                    write::Pp { indent, sort_keys: form.sorted, sep_space: !form.compact, ..Default::default() };
                // Memory takes everything.
                let _ = write::write(out, &printer, 0, value);
            }
        }
        if !form.joined {
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
#[path = "jq_tests.rs"]
mod tests;
