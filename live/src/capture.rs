//! New fixtures: a CLI's own output, called as ralph calls it, stored in the form of `tests/transcripts/`, and what changed
//! in the shape of its events since the last version that is stored there.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fake_model::{Bounds, Server};
use ralph::agent::{Agent, Answer, Catalog, Options, Turn, User, ask};
use ralph::process::Exit;
use serde_json::json;

use crate::clis::Cli;
use crate::install::{Installed, Version, install};
use crate::place::Place;
use crate::scenario::{Permission, Scenario};
use crate::shapes::Shapes;
use crate::stage::{Problem, Stage};

const PROMPT: &str = "Do what the script says.";

/// Captures what each CLI prints in each scenario that needs no hand of ours.
pub fn run(clis: &[Cli], scenarios: &[Scenario], version: Version, into: Option<&Path>) -> Result<(), Problem> {
    let stage = Stage::open()?;
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts");
    for cli in clis.iter().filter(|cli| cli.absent.is_none() && cli.login.is_none()) {
        let installed = install(&stage, cli, version)?;
        // Looked at before anything is put there.
        let before = newest(&stored.join(&cli.agent))?;
        let root = into.map_or_else(|| stage.place.join("captures"), Path::to_path_buf);
        let place = root.join(&cli.agent).join(&installed.version);
        std::fs::create_dir_all(&place)?;
        let mut now = Shapes::default();
        let mut mute = Vec::new();
        for scenario in scenarios.iter().filter(|one| one.act.is_none() && !one.bulky && playable(cli, one)) {
            let (name, stdout) = capture(&stage, cli, &installed, scenario, &place)?;
            now.read(&stdout);
            println!("{} {}: {} bytes in {}", cli.agent, scenario.name, stdout.len(), place.join(name).display());
            if stdout.is_empty() {
                mute.push(scenario.name);
            }
        }
        // Not to be taken for a CLI whose shapes are the same.
        if !mute.is_empty() {
            let why = format!("{} printed nothing in {}", cli.agent, mute.join(", "));
            return Err(Problem::Wrong(format!("{why}: see `*.stderr` and `*.meta.json` in {}", place.display())));
        }
        let Some((last, before)) = before else {
            println!("{}: nothing is stored to compare with", cli.agent);
            continue;
        };
        println!("{}: shapes of {} against {last} in `tests/transcripts`", cli.agent, installed.version);
        let changes = before.changes(&now);
        println!("{}", if changes.is_empty() { "  no change".to_owned() } else { changes.join("\n") });
    }
    Ok(())
}

fn playable(cli: &Cli, scenario: &Scenario) -> bool {
    (scenario.permission == Permission::Given || cli.denied.is_some()) && !cli.cannot.contains_key(scenario.name)
}

/// One run of the CLI; the name and its standard output.
fn capture(
    stage: &Stage,
    cli: &Cli,
    installed: &Installed,
    scenario: &Scenario,
    into: &Path,
) -> Result<(String, Vec<u8>), Problem> {
    let place = Place::fresh(stage, &format!("capture-{}/{}", cli.agent, scenario.name))?;
    let server = Server::start(scenario.model.clone(), &place.work, Bounds::default(), 0)?;
    let base = server.address();
    let denied = cli.denied.as_ref().filter(|_| scenario.permission == Permission::Denied);
    cli.settle(&place, &base, denied.map(|denied| &denied.files))?;
    let catalog = Catalog::built_in();
    let entry = catalog.entries().iter().find(|entry| entry.id == cli.agent);
    let entry = entry.ok_or_else(|| Problem::Wrong(format!("no agent `{}`", cli.agent)))?;
    let definition = (*entry.definition).clone();
    let mut options = Options { user: User::current(), ..Options::default() };
    options.overrides.extra_args = cli.extra_args(denied);
    options.overrides.environment = denied.iter().flat_map(|denied| denied.env.clone()).collect();
    let program = installed.programs.join(&cli.agent).into();
    let agent = Agent { definition, options, program, leading: Vec::new(), plugin: None };
    let turn = Turn::new(PROMPT, &place.work);
    let mut call = agent.invocation(&turn).map_err(|error| Problem::Wrong(error.message))?;
    call.env.remove.push("*".to_owned());
    let mut set = vec![("PATH".into(), Stage::path(&installed.programs)), ("HOME".into(), place.home.clone().into())];
    set.extend(cli.variables(&place, &base).into_iter().map(|(name, value)| (name.into(), value.into())));
    call.env.set.extend(set);
    let words: Vec<String> = call.args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(ask(call, Duration::from_secs(scenario.seconds)));
    let took = begun.elapsed();
    let (exit, stdout, stderr) = match answer {
        Answer::Said { exit: Exit::Code(code), stdout, stderr } => (json!(code), stdout, stderr),
        Answer::Said { exit: Exit::Signal(signal), stdout, stderr } => (json!(-signal), stdout, stderr),
        Answer::Silent => (json!("timeout"), Vec::new(), Vec::new()),
        Answer::Unstartable(why) => return Err(Problem::Wrong(why)),
    };
    let scrub = |bytes: &[u8]| scrubbed(bytes, &place, installed, &base);
    let name = format!("{}.{}", scenario.name, format(&words));
    let meta = json!({
        "cli": cli.agent, "version": installed.version, "scenario": scenario.name, "mode": format(&words),
        "argv": std::iter::once(cli.agent.clone()).chain(words.iter().map(|word| text(&scrub(word.as_bytes())))).collect::<Vec<_>>(),
        "prompt": PROMPT, "stdin": "prompt", "streams": "separate", "exit_code": exit,
        "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX), "env": cli.env,
        "server_scenario": scenario.name, "model_request_count": server.exchanges().len(),
    });
    let stdout = scrub(&stdout);
    std::fs::write(into.join(format!("{name}.stdout")), &stdout)?;
    if !stderr.is_empty() {
        std::fs::write(into.join(format!("{name}.stderr")), scrub(&stderr))?;
    }
    std::fs::write(into.join(format!("{name}.meta.json")), format!("{meta:#}\n"))?;
    Ok((name, stdout))
}

/// What the CLI was asked to print.
fn format(words: &[String]) -> &'static str {
    if words.iter().any(|word| word.contains("stream-json")) {
        "stream-json"
    } else if words.iter().any(|word| word.contains("json")) {
        "json"
    } else {
        "text"
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Without the places of this machine.
fn scrubbed(bytes: &[u8], place: &Place, installed: &Installed, base: &str) -> Vec<u8> {
    let slug = |path: &Path| path.to_string_lossy().replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
    let own = |path: &Path| path.to_string_lossy().into_owned();
    let names = [
        (own(&place.work), "/workspace"),
        (slug(&place.work), "-workspace"),
        (own(&place.home), "/home/user"),
        (slug(&place.home), "-home-user"),
        (own(installed.programs.parent().unwrap_or(&installed.programs)), "/usr/lib/node_modules"),
        (base.trim_start_matches("http://").to_owned(), "127.0.0.1:8080"),
    ];
    names.iter().fold(text(bytes), |all, (from, to)| all.replace(from, to)).into_bytes()
}

/// The newest version that is stored, with the shapes of all its captures.
fn newest(agent: &Path) -> Result<Option<(String, Shapes)>, Problem> {
    let Ok(versions) = std::fs::read_dir(agent) else { return Ok(None) };
    let mut versions: Vec<PathBuf> =
        versions.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    versions.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split('.').map(|part| part.parse::<u64>().unwrap_or(0)).collect::<Vec<u64>>()
    });
    let Some(last) = versions.pop() else { return Ok(None) };
    let mut shapes = Shapes::default();
    for entry in std::fs::read_dir(&last)?.flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "stdout") {
            shapes.read(&std::fs::read(entry.path())?);
        }
    }
    Ok(Some((last.file_name().unwrap_or_default().to_string_lossy().into_owned(), shapes)))
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn the_format_is_the_one_that_was_asked_for() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(format(&words("-p --output-format stream-json")), "stream-json");
        assert_eq!(format(&words("exec --json -")), "json");
        assert_eq!(format(&words("--no-pretty")), "text");
    }
}
