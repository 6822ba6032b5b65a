//! One captured run of an agent: its output, how it ended, and the events that its adapter makes of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ralph::event::{Event, Known, Status, Tag, Usage};
use ralph::process::{Exit, Lines};
use ralph::transcript::{Context, Dialect, dialect};
use serde_json::Value;

/// A capture, named by the path of its files without their endings.
pub struct Capture {
    pub agent: String,
    pub version: String,
    /// Scenario and output format, as in `hello.json`.
    pub name: String,
    stem: PathBuf,
    pub meta: Value,
}

/// Files that have the same bytes as another one, which is kept.
static SAME: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| serde_json::from_str(&fs::read_to_string(root().join("same.json")).unwrap()).unwrap());

/// All captures, in order.
pub fn all() -> Vec<Capture> {
    let mut captures = Vec::new();
    for agent in directories(&root()) {
        if name_of(&agent) == "snapshots" {
            continue;
        }
        for version in directories(&agent) {
            let mut metas: Vec<PathBuf> = fs::read_dir(&version).unwrap().map(|entry| entry.unwrap().path()).collect();
            metas.retain(|path| path.to_str().unwrap().ends_with(".meta.json"));
            metas.sort();
            for path in metas {
                let stem = PathBuf::from(path.to_str().unwrap().strip_suffix(".meta.json").unwrap());
                let meta = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
                let (agent, version) = (name_of(&agent), name_of(&version));
                captures.push(Capture { agent, version, name: name_of(&stem), stem, meta });
            }
        }
    }
    assert!(captures.len() > 100, "the captures are in {}", root().display());
    captures
}

/// The directory of the captures.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// The dialect that an agent speaks.
fn dialect_of(agent: &str) -> &'static Dialect {
    let name = match agent {
        "kilo" => "opencode",
        "auggie" => "plain",
        name => name,
    };
    dialect(name).unwrap_or_else(|| panic!("no dialect reads `{agent}`"))
}

fn directories(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

impl Capture {
    /// True for the agent's text format.
    pub fn is_text(&self) -> bool {
        self.name.rsplit_once('.').is_some_and(|(_, format)| format.starts_with("text"))
    }

    /// One of the two streams; none was kept where it was empty. Captures with the same bytes share one file: `same.json`.
    pub fn stream(&self, ending: &str) -> Vec<u8> {
        let mut path = self.stem.clone().into_os_string();
        path.push(ending);
        let path = PathBuf::from(path);
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        match SAME.get(name) {
            Some(other) => fs::read(root().join(other)).unwrap(),
            None => fs::read(path).unwrap_or_default(),
        }
    }

    /// How the process ended.
    pub fn exit(&self) -> Exit {
        match &self.meta["exit_code"] {
            Value::Number(code) => {
                let code = i32::try_from(code.as_i64().unwrap()).unwrap();
                if code < 0 { Exit::Signal(-code) } else { Exit::Code(code) }
            }
            Value::String(word) if word.starts_with("spawn") => Exit::Code(126),
            // The harness ended it.
            _ => Exit::Signal(9),
        }
    }

    /// What the adapter makes of it.
    pub fn events(&self) -> Vec<Event> {
        let dialect = dialect_of(&self.agent);
        let prompts = self.meta["prompt"].as_str().map(str::to_owned).into_iter().collect();
        let mut adapter = (dialect.adapter)(&Context { prompts, ..Context::default() });
        let mut out = Vec::new();
        let mut lines = Lines::default();
        lines.push(&self.stream(".stdout"), |line| adapter.line(line, &mut out));
        lines.finish(|line| adapter.line(line, &mut out));
        let mut lines = Lines::default();
        lines.push(&self.stream(".stderr"), |line| adapter.stderr(line, &mut out));
        lines.finish(|line| adapter.stderr(line, &mut out));
        adapter.end(Some(self.exit()), &mut out);
        out
    }
}

/// What the events of an iteration say, put together as a reader of them would.
#[derive(Debug, Default)]
pub struct Summary {
    /// All messages of the agent itself.
    pub messages: Vec<String>,
    pub thoughts: Vec<String>,
    /// Name and status of each tool, in the order of their starts.
    pub tools: Vec<(String, Status)>,
    pub usage: Usage,
    pub sessions: Vec<String>,
    pub models: Vec<String>,
    /// Classes of failures, in order.
    pub failures: Vec<String>,
    pub retries: usize,
    pub denials: usize,
    /// Success of each terminal fact.
    pub ends: Vec<Option<bool>>,
    pub unparsed: u64,
    pub resets: Option<String>,
    pub files: Vec<String>,
    pub todos: Vec<String>,
}

impl Summary {
    pub fn of(events: &[Event]) -> Self {
        let mut summary = Self::default();
        let mut ids: Vec<String> = Vec::new();
        let mut open = None;
        for event in events {
            let mut speaking = None;
            match event {
                Event::Text { tag, text, delta, parent: None } if matches!(tag, Tag::Ai | Tag::Think) => {
                    speaking = Some(*tag);
                    let said = if *tag == Tag::Ai { &mut summary.messages } else { &mut summary.thoughts };
                    match said.last_mut() {
                        Some(last) if *delta && open == Some(*tag) => last.push_str(text),
                        _ => said.push(text.clone()),
                    }
                }
                Event::ToolStart { tool, .. } => {
                    ids.push(tool.id.clone());
                    summary.tools.push((tool.name.clone(), Status::Unknown));
                }
                Event::ToolEnd { tool, .. } => {
                    let at = ids.iter().rposition(|id| *id == tool.id).expect("an end has a start");
                    summary.tools[at].1 = tool.status;
                }
                Event::Usage { usage } => summary.usage.add(usage),
                Event::Meta { meta } => summary.fact(meta.known().expect("adapters use known kinds")),
                _ => {}
            }
            open = speaking;
        }
        summary
    }

    fn fact(&mut self, known: Known) {
        match known {
            Known::Session { id } => self.sessions.push(id),
            Known::Model { model } => self.models.push(model),
            Known::Error { class, resets_at, retry_after_ms, resets, .. } => {
                self.failures.push(class.name().to_owned());
                let after = retry_after_ms.map(|milliseconds| format!("{milliseconds}ms"));
                self.resets = self.resets.take().or(resets_at).or(after).or(resets);
            }
            Known::Retry { .. } => self.retries += 1,
            Known::Permission { .. } => self.denials += 1,
            Known::TurnEnd { success, .. } => self.ends.push(success),
            Known::Unparsed { count, .. } => self.unparsed += count.unwrap_or(1),
            Known::Files { changes } => self.files.extend(changes.into_iter().map(|change| change.path)),
            Known::Todo { items } => {
                self.todos = items.iter().map(|item| format!("{:?} {}", item.status, item.text)).collect();
            }
            _ => {}
        }
    }
}
