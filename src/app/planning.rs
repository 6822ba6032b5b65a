//! What a run is made of: flags, environment, `ralph.yml` and agent files become one [`Plan`].

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::{Agent, Mode as Attendance, Source as DefinedBy, Turn};
use crate::app::agent_choice::settings_for;
use crate::app::choose::{Purpose, catalog, choose, settle};
use crate::app::flags::flags;
use crate::app::notify::notify;
use crate::app::{gates, repository, sandbox, script_modes};
use crate::cli::Run;
use crate::config::{
    self, Adapter, FileLayer, Layer, Origin, RunMode, SessionChoice, Setting, SettingValue, Settings, ShellLine,
};
use crate::error::{UserError, io_reason};
use crate::plugin::{self, Chosen, Loaded};
use crate::process::{self, Clocks};
use crate::run::budget::Prices;
use crate::run::decide::Policy;
use crate::run::hats::{AgentChoice, Hats};
use crate::run::hooks::{HookMoment, Hooks};
use crate::run::mode::Mode;
use crate::run::prompt::Source;
use crate::run::quota::QuotaLimits;
use crate::run::template;
use crate::run::{Filter, Keys, LeftBehind, Plan, Room, Screen, Worker, sessions, start_error};
use crate::signals::promise::Rule;
use crate::transcript::{PLAIN, Selected, names, select};
use crate::user_file;

/// The longest silence before the first byte of an agent that prints events.
const STARTUP: Duration = Duration::from_secs(300);

/// A run that can begin, and where its parts came from.
pub(crate) struct Planned {
    /// The run.
    pub plan: Plan,
    /// Its settings.
    pub settings: Settings,
    /// What the file says of single agents.
    pub adapters: Vec<(String, Adapter)>,
    /// Where the chosen agent is defined.
    pub defined_by: Option<DefinedBy>,
    /// Why it was chosen.
    pub why: String,
}

/// Puts everything together; the agent is not started yet.
pub(crate) fn plan(args: &Run, mode: Option<&str>, workspace: PathBuf) -> Result<Planned, UserError> {
    let mut file = config::nearest_file(args.config.clone(), &workspace)?;
    if args.place.task_worker {
        file.under_policy_of(config::own_file()?.layer);
    }
    if !args.place.task_verify.is_empty() {
        let origin = Origin::Flag("--task-verify");
        let verify = file.layer.verify.get_or_insert_with(|| Setting::new(config::Verify::default(), origin));
        verify.value.checks.extend(args.place.task_verify.iter().map(crate::run::verify::Check::new));
    }
    let purpose = if args.dry_run { Purpose::Look } else { Purpose::Run };
    if let Some(name) = mode
        && let Some(path) = script_modes::prompt(name, args, &file, &workspace)?
    {
        let layers = flags(args)?.over(script_modes::iterations(name, &path, args)?).over(config::environment());
        return plan_from(layers, file, workspace, Task::Known(Source::File(path)), purpose);
    }
    let mode = mode.map(|name| Mode::load(name, &workspace)).transpose()?;
    let of_mode = mode.as_ref().map(|mode| mode_settings(mode, &workspace)).transpose()?.unwrap_or_default();
    let layers = flags(args)?.over(config::environment()).over(of_mode.layer);
    let file = FileLayer { warnings: [file.warnings, of_mode.warnings].concat(), ..file };
    let task = mode.map_or(Task::Asked(args), |mode| Task::Mode(Box::new(mode), args));
    plan_from(layers, file, workspace, task, purpose)
}

/// What the run is about.
pub(crate) enum Task<'a> {
    /// What the arguments say, or the usual files.
    Asked(&'a Run),
    /// The prompt of a mode around that.
    Mode(Box<Mode>, &'a Run),
    /// It is known already.
    Known(Source),
}

/// The same from a file that has been read, under layers that are above it.
pub(crate) fn plan_from(
    layers: Layer,
    file: FileLayer,
    workspace: PathBuf,
    task: Task<'_>,
    purpose: Purpose,
) -> Result<Planned, UserError> {
    let mut settings = settle(layers.over(file.layer.clone()), &file, &workspace)?;
    if let (Some(first), Origin::Default) = (settings.rotate.value.first(), &settings.agent.origin) {
        settings.agent = Setting::new(first.clone(), settings.rotate.origin.clone());
    }
    if purpose == Purpose::Run {
        repository::consent(&settings, &file, &workspace)?;
    }
    // From here on, whatever is started may be the repository's or the agent's.
    let (wall, walled) = sandbox::prepare(&settings, &catalog(&workspace, &file), &workspace, purpose)?;
    let Chosen { agent, source: defined_by, why, notices: told, loaded: plugin } =
        choose(&settings, &file, &workspace, purpose)?;
    let mut loaded: BTreeMap<String, Loaded> =
        plugin.map(|plugin| (agent.id().to_owned(), plugin)).into_iter().collect();
    let rule = Rule::new(
        settings.completion_promise.value.as_ref().map(|marker| marker.0.as_str()),
        settings.completion_match.value,
    );
    let rule = rule.or(&settings.completion_also.value);
    let remarks = remarks(&task, &settings, &workspace);
    let prompt = match task {
        Task::Mode(mode, args) => mode_prompt(mode, args, &settings, &agent, &rule, &workspace)?,
        Task::Known(prompt) => prompt,
        Task::Asked(args) => prompt_source(args, &settings, &agent, &workspace)?,
    };
    finish_plan(&prompt, &mut settings);
    let words = prompt.read()?;
    let mut turn = Turn::new(&words, &workspace);
    if settings.mode.value == RunMode::Interactive {
        turn.mode = Attendance::Interactive;
    }
    process::check(&agent.invocation(&turn)?).map_err(|error| start_error(&error))?;
    let mut notices = [file.warnings.clone(), walled, told].concat();
    notices.extend(plugin::other_loops::notice(&workspace));
    let strange = |name| format!("`{{{{{name}}}}}` in {} is not a variable; it is left as it is", prompt.name());
    notices.extend(template::unknown(&words, &settings.commands.value.0).into_iter().map(strange));
    notices.extend(configured_commands(&settings, &words));
    notices.extend(remarks);
    let common = settings.clone();
    let first = worker(agent, &mut settings, &file, &workspace)?;
    if let Selected::Command(argv) = &first.transcript {
        notices.push(format!("transcript command: `{}`", argv.join(" ")));
    }
    notices.extend(gates::examine(&settings, &workspace)?);
    if let Some(command) = &settings.notify_command.value {
        notices.push(format!(
            "notifications: `{}` (from {})",
            SettingValue::shown(command),
            settings.notify_command.origin
        ));
    }
    notices.extend(notify(&settings).problem(&workspace));
    let substitutes = settings.fallback.value.len();
    let employ = |own| another(own, &file, &workspace, purpose, &mut loaded);
    let (mut workers, rotation) = employed(first, &settings, &common, employ)?;
    let judges =
        gates::judges(&settings, &common, &workspace, |own| another(own, &file, &workspace, purpose, &mut loaded))?;
    notices.extend(judges.iter().map(|(_, told)| told.clone()));
    workers.iter_mut().filter(|_| wall.is_some()).for_each(|worker| sandbox::inside(&mut worker.agent));
    let plan = Plan {
        judges: judges.into_iter().map(|(seat, _)| seat).collect(),
        wall,
        orders: Vec::new(),
        load_plugin: plugin::loader(loaded),
        workers,
        substitutes,
        prompt,
        rule,
        policy: policy(&settings),
        clocks: clocks(&settings),
        screen: screen(&settings),
        room: Room::Whole,
        keys: Keys::Read,
        left_behind: if settings.leave_running.value { LeftBehind::Leave } else { LeftBehind::Stop },
        line_cap: settings.max_line_bytes.value,
        notices,
        verify: settings.verify.value.checks.clone(),
        plan_file: settings.plan_file.value.clone(),
        rules: gates::rules(&settings),
        commands: settings.commands.value.0.clone(),
        hooks: hooks(&settings),
        rotation,
        quota: quota(&settings),
        allowed_paths: settings.allowed_paths.value.clone(),
        events_file: settings.events_file.value.clone(),
        keeps_diffs: settings.keep_diffs.value,
        commit: settings.commit.value,
        session: match settings.session.value {
            SessionChoice::Fresh => sessions::Policy::Fresh,
            SessionChoice::Resume => resuming(&settings, None),
            SessionChoice::ResumeUntil(percent) => resuming(&settings, Some(percent)),
        },
        hats: Hats { hats: settings.hats.value.hats.clone(), starting_event: settings.starting_event.value.clone() },
        prices: prices(&settings),
        notify: notify(&settings),
        phases: Vec::new(),
        calls_per_hour: settings.calls_per_hour.value,
        workspace,
    };
    Ok(Planned { plan, settings, adapters: file.adapters, defined_by, why })
}

/// All workers: the chosen one, those that can take over, those that take turns, and those that only hats name. The
/// second list says who takes turns.
fn employed(
    first: Worker,
    settings: &Settings,
    common: &Settings,
    mut employ: impl FnMut(Settings) -> Result<Worker, UserError>,
) -> Result<(Vec<Worker>, Vec<usize>), UserError> {
    let mut workers = vec![first];
    for name in &settings.fallback.value {
        workers.push(employ(settings_for(&AgentChoice::named(name), &settings.fallback.origin, common))?);
    }
    let mut rotation = Vec::new();
    for name in &settings.rotate.value {
        let known = workers.iter().position(|worker| worker.agent.id() == name);
        if known.is_none() {
            workers.push(employ(settings_for(&AgentChoice::named(name), &settings.rotate.origin, common))?);
        }
        rotation.push(known.unwrap_or(workers.len() - 1));
    }
    for Setting { value: (hat, choice), origin } in &settings.hats.value.choices {
        let known = workers.iter().any(|worker| Some(worker.agent.id()) == choice.agent.as_deref());
        if choice.is_special() || !known {
            let worker = employ(settings_for(choice, origin, common))?;
            workers.push(Worker { hat: choice.is_special().then(|| hat.clone()), ..worker });
        }
    }
    Ok((workers, rotation))
}

/// The hooks that are set, each with its key.
pub(super) fn hook_lines(settings: &Settings) -> impl Iterator<Item = (HookMoment, &Setting<Option<ShellLine>>)> {
    [
        (HookMoment::BeforeRun, &settings.before_run),
        (HookMoment::BeforeIteration, &settings.before_iteration),
        (HookMoment::AfterIteration, &settings.after_iteration),
        (HookMoment::AfterRun, &settings.after_run),
        (HookMoment::OnRejected, &settings.on_rejected),
        (HookMoment::OnWait, &settings.on_wait),
    ]
    .into_iter()
    .filter(|(_, line)| line.value.is_some())
}

fn quota(settings: &Settings) -> QuotaLimits {
    QuotaLimits {
        five_hours: settings.quota_5h.value.map(|percent| percent.0),
        week: settings.quota_week.value.map(|percent| percent.0),
    }
}

fn hooks(settings: &Settings) -> Hooks {
    let commands = hook_lines(settings).filter_map(|(moment, line)| Some((moment, line.value.clone()?.0)));
    Hooks { commands: commands.collect(), timeout: settings.hook_timeout.value, on_error: settings.hook_errors.value }
}

/// Names the commands that the run starts beside the agent.
fn configured_commands(settings: &Settings, words: &str) -> Vec<String> {
    let hooks = hook_lines(settings).filter_map(|(moment, line)| {
        let shown = SettingValue::shown(line.value.as_ref()?);
        Some(format!("`{}`: `{shown}` (from {})", moment.key(), line.origin))
    });
    let used = template::commands(words);
    let commands = settings.commands.value.0.iter().filter(|(name, _)| used.contains(&name.as_str()));
    let commands = commands
        .map(|(name, line)| format!("`commands.{name}` for the prompt: `{line}` (from {})", settings.commands.origin));
    hooks.chain(commands).collect()
}

/// A plan of another loop, as the prompt of a run, is done when its items are.
fn finish_plan(prompt: &Source, settings: &mut Settings) {
    if let (Source::File(path), Setting { value: Some(plan), origin: Origin::Contract(_) }) =
        (prompt, &settings.prompt_file)
        && path == plan
        && settings.plan_file.value.is_none()
    {
        settings.plan_file = settings.prompt_file.clone();
    }
}

fn policy(settings: &Settings) -> Policy {
    Policy {
        max_iterations: settings.max_iterations.value,
        max_time: positive(settings.max_time.value),
        max_consecutive_failures: settings.max_consecutive_failures.value,
        max_wait: settings.max_wait.value,
        min_iterations: settings.min_iterations.value,
        confirmations: settings.confirmations.value,
        max_tokens: settings.max_tokens.value,
        max_cost_usd: settings.max_cost_usd.value.map(|usd| usd.0),
        max_stalled: settings.max_stalled.value.0,
        permission: settings.permission.value,
        until: settings.until.value,
    }
}

fn screen(settings: &Settings) -> Screen {
    match settings.mode.value {
        RunMode::Interactive => Screen::Users,
        RunMode::Autonomous if settings.pty.value => Screen::Terminal,
        RunMode::Autonomous => Screen::Pipes,
    }
}

/// The clocks of one iteration. A person at the keys may be slow to begin.
fn clocks(settings: &Settings) -> Clocks {
    match settings.mode.value {
        RunMode::Interactive => Clocks { silence: positive(settings.interactive_idle.value), ..Clocks::default() },
        RunMode::Autonomous => {
            Clocks { startup: None, idle: positive(settings.idle_timeout.value), ..Clocks::default() }
        }
    }
}

fn prices(settings: &Settings) -> Prices {
    let list = settings.list_prices.value.then_some(&config::PRICE_LIST);
    Prices { own: settings.pricing.value.clone(), list }
}

fn positive(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}

/// The settings of a mode, under those in front of the user's own prompt file. Paths are relative to the working directory.
fn mode_settings(mode: &Mode, workspace: &Path) -> Result<FileLayer, UserError> {
    // One line more, so that numbers of lines are those of the file.
    let read = |path: &Path, settings: &str| match settings {
        "" => Ok(FileLayer::default()),
        settings => config::read_at(path, workspace, &format!("\n{settings}")),
    };
    let shipped = read(Path::new(&mode.built_in()), mode.settings)?;
    let own = mode.file.as_ref().map(|path| read(path, &mode.own_settings)).transpose()?.unwrap_or_default();
    Ok(FileLayer { layer: own.layer.over(shipped.layer), warnings: own.warnings, ..FileLayer::default() })
}

/// What the user should know about a prompt that is not used, or a check that is missing.
fn remarks(task: &Task<'_>, settings: &Settings, workspace: &Path) -> Option<String> {
    match task {
        Task::Asked(_) if !gates::any(settings) && settings.plan_file.value.is_none() => {
            Some("no completion check: ralph believes the agent; add one with `--verify COMMAND`".to_owned())
        }
        Task::Mode(mode, args)
            if ["review", "understand"].contains(&mode.name.as_str())
                && args.words.is_empty()
                && args.prompt_file.is_none()
                && workspace.join("PROMPT.md").exists() =>
        {
            let name = &mode.name;
            Some(format!("`PROMPT.md` is not used by `ralph {name}`; say what to look at: `ralph {name} \"…\"`"))
        }
        _ => None,
    }
}

/// The prompt of a mode. A goal is asked for only where nothing else says what to do.
fn mode_prompt(
    mode: Box<Mode>,
    args: &Run,
    settings: &Settings,
    agent: &Agent,
    rule: &Rule,
    workspace: &Path,
) -> Result<Source, UserError> {
    let given = !args.words.is_empty() || args.prompt_file.is_some();
    let goal = if given || (mode.name == "plan" && mode.asks_for_goal()) {
        Some(Box::new(prompt_source(args, settings, agent, workspace)?))
    } else {
        None
    };
    let values = vec![
        ("marker", rule.told().to_owned()),
        ("workspace", workspace.display().to_string()),
        ("agent", agent.id().to_owned()),
        ("date", crate::local_time::now().strftime("%Y-%m-%d").to_string()),
    ];
    Ok(Source::Mode { mode, goal, values })
}

/// An agent of the workers. What the file says of one agent is nearer than what it says of all, and a flag is nearer still.
fn worker(agent: Agent, settings: &mut Settings, file: &FileLayer, workspace: &Path) -> Result<Worker, UserError> {
    if let (Origin::Default | Origin::File { .. }, Some(Setting { value: Some(timeout), origin })) =
        (&settings.timeout.origin, file.adapter(agent.id()).timeout)
    {
        settings.timeout = Setting::new(timeout, origin);
    }
    let transcript = select(std::slice::from_ref(&settings.transcript.value), Some(&agent.definition.dialect))
        .map_err(|error| {
            UserError::usage(format!("{error} (from {})", settings.transcript.origin))
                .hint(format!("known: {}", names().join(", ")))
        })?;
    if let Selected::Command(argv) = &transcript {
        Filter::check(argv, workspace)?;
    }
    let timeout = settings.timeout.value;
    // An agent of plain text may print nothing until it is done, so that only an explicit limit applies to it.
    let startup = match settings.startup_timeout.value {
        _ if settings.mode.value == RunMode::Interactive => None,
        None if transcript.name() == PLAIN.name => None,
        limit => positive(limit.unwrap_or(STARTUP)),
    };
    Ok(Worker { agent, hat: None, transcript, timeout: positive(timeout), startup })
}

/// Another agent than the chosen one, with settings of its own.
fn another(
    mut own: Settings,
    file: &FileLayer,
    workspace: &Path,
    purpose: Purpose,
    loaded: &mut BTreeMap<String, Loaded>,
) -> Result<Worker, UserError> {
    let Chosen { agent, loaded: plugin, .. } = choose(&own, file, workspace, purpose)?;
    loaded.extend(plugin.map(|plugin| (agent.id().to_owned(), plugin)));
    worker(agent, &mut own, file, workspace)
}

fn prompt_source(args: &Run, settings: &Settings, agent: &Agent, workspace: &Path) -> Result<Source, UserError> {
    if args.words.as_slice() == ["-"] {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| UserError::usage(format!("cannot read the prompt from stdin: {}", io_reason(&error))))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| UserError::usage("the prompt on stdin is not UTF-8").hint("convert it to UTF-8"))?;
        return Ok(Source::Text { text, from: "stdin".to_owned() });
    }
    if let [only] = args.words.as_slice()
        && Path::new(only).is_file()
    {
        return Err(UserError::usage(format!("`{only}` is a file name, not a prompt"))
            .hint(format!("to read the prompt from it: `ralph run -P {only}`")));
    }
    if args.words.len() > 1 && args.words.iter().any(|word| word == "-") {
        return Err(UserError::usage("`-` (prompt from stdin) cannot be combined with other words")
            .hint("use either `-` or words"));
    }
    if !args.words.is_empty() {
        return Ok(Source::Text { text: args.words.join(" "), from: "command line".to_owned() });
    }
    if let Some(path) = args.prompt_file.as_ref().or(settings.prompt_file.value.as_ref()) {
        // The user named it, so it may be anywhere, and a pipe such as `<(command)` is read once.
        let given = args.prompt_file.is_some();
        let path = if given { path } else { &prompt_of_preset(path, &settings.prompt_file.origin, workspace) };
        return match std::fs::metadata(path) {
            Ok(metadata) if given && !metadata.is_file() && !metadata.is_dir() => {
                Ok(Source::Text { text: read_pipe(path)?, from: path.display().to_string() })
            }
            _ => Ok(Source::File(path.clone())),
        };
    }
    // The last one is where ralph_py keeps it.
    let usual = ["PROMPT.md", ".ralph/PROMPT.md", "scripts/ralph/prompt.md"].map(|name| workspace.join(name));
    if let Some(path) = usual.into_iter().find(|path| path.exists()) {
        user_file::inside(workspace, &path).map_err(|error| {
            UserError::usage(format!("cannot use `{}`: {}", path.display(), io_reason(&error)))
                .hint("to use that file, name it with `-P FILE`")
        })?;
        return Ok(Source::File(path));
    }
    if let Some(text) = &agent.definition.own_prompt {
        return Ok(Source::Text { text: text.clone(), from: format!("built into agent `{}`", agent.id()) });
    }
    let error = UserError::usage("no prompt, and no `PROMPT.md` here")
        .hint("use `ralph run \"fix the tests\"`, or write the prompt to `PROMPT.md`")
        .hint("from a pipe: `… | ralph run -`");
    let own = ["plan", "build"].iter().any(|mode| workspace.join(format!(".ralph/prompts/{mode}.md")).is_file());
    Err(if own { error.hint("this project has its own prompts: use `ralph plan` or `ralph build`") } else { error })
}

/// Where the prompt file of a configuration is: beside that, or, for a preset in a directory of its own, in the workspace.
fn prompt_of_preset(path: &Path, origin: &Origin, workspace: &Path) -> PathBuf {
    let beside = match origin {
        Origin::File { path: file, .. } if !path.exists() => {
            file.parent().and_then(|base| path.strip_prefix(base).ok())
        }
        _ => None,
    };
    beside.map(|name| workspace.join(name)).filter(|path| path.exists()).unwrap_or_else(|| path.to_owned())
}

/// A prompt from a pipe or a device that the user named.
fn read_pipe(path: &Path) -> Result<String, UserError> {
    let mut text = String::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(user_file::MOST_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error))))?;
    if read as u64 > user_file::MOST_BYTES {
        return Err(UserError::usage(format!("`{}` has more than {} bytes", path.display(), user_file::MOST_BYTES)));
    }
    Ok(text)
}

const fn resuming(settings: &Settings, until: Option<u8>) -> sessions::Policy {
    let (window, expires) = (settings.context_window.value, settings.session_expiry.value);
    sessions::Policy::Resume { until, window, expires }
}
