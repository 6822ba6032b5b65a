//! `ralph doctor`: whether a run would work here: the agents as they are installed, and the machine.
//!
//! It looks and reports; it fixes nothing and starts no agent on work. Only `--plugins` runs what the repository brings.

mod agents;
mod machine;
mod plugins;

use serde_json::{Value, json};

use crate::app::appearance::{columns, palette};
use crate::app::choose::{Purpose, settle};
use crate::app::working_directory;
use crate::cli::Doctor;
use crate::config::{self, Layer, Origin, Setting};
use crate::error::{UserError, exit_code};
use crate::process;
use crate::ui::{Ink, Palette, Styled, harmless, out};

/// Where what was found begins in a line.
const INDENT: usize = 19;

/// One thing that was looked at.
struct Check {
    what: &'static str,
    state: Grade,
    said: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Grade {
    Fine,
    /// Worth knowing; a run may still work.
    Note,
    Wrong,
}

impl Check {
    fn new(what: &'static str, state: Grade, said: impl Into<String>) -> Self {
        Self { what, state, said: said.into(), advice: None }
    }

    fn fine(what: &'static str, said: impl Into<String>) -> Self {
        Self::new(what, Grade::Fine, said)
    }

    fn note(what: &'static str, said: impl Into<String>) -> Self {
        Self::new(what, Grade::Note, said)
    }

    fn wrong(what: &'static str, said: impl Into<String>) -> Self {
        Self::new(what, Grade::Wrong, said)
    }

    fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    fn json(&self) -> Value {
        json!({"what": self.what, "state": self.state.word(), "said": self.said, "advice": self.advice})
    }
}

impl Grade {
    const fn ink(self) -> Ink {
        match self {
            Self::Fine => Ink::Good,
            Self::Note => Ink::Warn,
            Self::Wrong => Ink::Bad,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Wrong => "wrong",
        }
    }
}

/// What was looked at, in one place.
struct Part {
    /// The name of the agent, or `machine`.
    name: String,
    title: String,
    kind: Kind,
    checks: Vec<Check>,
}

/// Whether a run here needs it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Machine,
    /// The agent that a run would take.
    Chosen,
    Other,
}

impl Part {
    fn is_wrong(&self) -> bool {
        self.checks.iter().any(|check| check.state == Grade::Wrong)
    }
}

/// Looks at everything and tells it; the exit code says whether a run would work.
pub(crate) fn run(args: &Doctor) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let file = config::nearest_file(args.config.clone(), &workspace)?;
    let named = args.agent.clone().map(|name| Setting::new(name, Origin::Flag("AGENT")));
    let said = Layer { agent: named, ..Layer::default() }.over(config::environment()).over(file.layer.clone());
    let settings = settle(said, &file, &workspace)?;
    process::protect(process::own_program());
    let purpose = if args.plugins { Purpose::Run } else { Purpose::Look };
    let found = agents::look(args.agent.as_deref(), &settings, &file, &workspace, purpose)?;
    let mut parts = found.parts;
    let mut checks = machine::look(&workspace, args.config.as_deref(), &file, &settings)?;
    checks.extend(found.warnings.into_iter().map(|warning| Check::note("agents", warning)));
    parts.push(Part { name: "machine".to_owned(), title: "this machine".to_owned(), kind: Kind::Machine, checks });
    let unusable = parts.iter().any(|part| part.kind == Kind::Chosen && part.is_wrong());
    let code = match parts.iter().find(|part| part.kind == Kind::Machine) {
        _ if unusable => exit_code::AGENT,
        Some(machine) if machine.is_wrong() => exit_code::FAILED,
        _ => exit_code::COMPLETE,
    };
    let text = if args.json {
        as_json(&parts, &found.missing, code)
    } else {
        page(&parts, &found.missing, code, columns().count(), palette())
    };
    // The reader may be gone.
    let _ = if args.json { out::print(&text) } else { out::print_painted(&text) };
    Ok(code)
}

fn as_json(parts: &[Part], missing: &[String], code: u8) -> String {
    let of = |part: &Part| part.checks.iter().map(Check::json).collect::<Vec<_>>();
    let agents = parts
        .iter()
        .filter(|part| part.kind != Kind::Machine)
        .map(|part| json!({"id": part.name, "chosen": part.kind == Kind::Chosen, "checks": of(part)}));
    let machine = parts.iter().find(|part| part.kind == Kind::Machine).map(of);
    let whole = json!({
        "exit_code": code, "agents": agents.collect::<Vec<_>>(), "not_installed": missing, "machine": machine,
    });
    format!("{whole:#}\n")
}

fn page(parts: &[Part], missing: &[String], code: u8, columns: usize, palette: Palette) -> String {
    let mut text = String::new();
    let mut add = |line: &Styled| line.split(columns).iter().for_each(|row| text += &(row.painted(palette) + "\n"));
    for part in parts {
        add(&Styled::new(harmless(&part.title), Ink::Strong));
        for check in &part.checks {
            let mut line = Styled::new("  ", Ink::None);
            line.push(&format!("{:<6}", check.state.word()), check.state.ink());
            line.push(&format!(" {:<9} ", check.what), Ink::Dim);
            line.push(&harmless(&check.said), Ink::None);
            add(&line.hanging(INDENT));
            if let Some(advice) = &check.advice {
                let line = format!("{:INDENT$}-> {}", "", harmless(advice));
                add(&Styled::new(line, Ink::None).hanging(INDENT + 3));
            }
        }
        add(&Styled::default());
    }
    if !missing.is_empty() {
        let names = missing.join(", ");
        let line = format!("not installed: {}; `ralph agents show NAME` shows how to install one", harmless(&names));
        add(&Styled::new(line, Ink::Dim).hanging(2));
        add(&Styled::default());
    }
    let (verdict, ink) = match code {
        exit_code::COMPLETE => ("a run would work here", Ink::Good),
        exit_code::AGENT => ("a run would not work here: fix the selected agent (see above)", Ink::Bad),
        _ => ("a run would not work here: fix the problems of this machine (see above)", Ink::Bad),
    };
    add(&Styled::new(verdict, ink));
    text
}
