//! The connection to NATS: credentials as NATS' own tools read them, streams and buckets made where they are missing.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, Stream};
use async_nats::jetstream::{self, Context, kv};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};

use crate::batch::fleet::names;
use crate::error::{UserError, io_reason};
use crate::redact;
use crate::ui::out;

/// How long a worker may be silent before its task is given to another one.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(30);
/// How often a task is given to a worker before it is moved to the refused ones.
pub(crate) const MOST_DELIVERIES: i64 = 10;
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long publications are compared by their id.
const DUPLICATES: Duration = Duration::from_secs(600);
/// How long journals, finished runs and refused tasks are kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// The server says this when it is not part of a cluster.
const NOT_CLUSTERED: u64 = 10074;

/// The server and what ralph keeps there.
#[derive(Clone)]
pub(crate) struct Hub {
    pub client: Client,
    pub context: Context,
    pub tasks: Stream,
    pub journal: Stream,
    pub state: kv::Store,
    pub runs: ObjectStore,
    pub replicas: usize,
}

/// A user and a password, or a token.
type Login = (String, Option<String>);

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The addresses without what is before the `@`, and user and password of the first one.
fn addresses(on: &str) -> Result<(Vec<ServerAddr>, Option<Login>), UserError> {
    let mut login = None;
    let mut servers = Vec::new();
    for text in on.split(',') {
        // The text may have a password in it, so that it is not shown.
        let wrong = || {
            UserError::usage("`--on` is not the address of a NATS server")
                .hint("use `nats://HOST` or `tls://HOST:4222`")
        };
        let address = ServerAddr::from_str(text.trim()).map_err(|_| wrong())?;
        if let Some(user) = address.username() {
            let password = address.password().map(str::to_owned);
            redact::learn([("NATS".to_owned(), password.clone().unwrap_or_else(|| user.to_owned()))]);
            login.get_or_insert_with(|| (user.to_owned(), password));
        }
        let mut url = address.into_inner();
        let (_, _) = (url.set_username(""), url.set_password(None));
        servers.push(ServerAddr::from_url(url).map_err(|_| wrong())?);
    }
    Ok((servers, login))
}

async fn options(login: Option<Login>) -> Result<ConnectOptions, UserError> {
    let unreadable = |path: &str, error: &std::io::Error| {
        UserError::agent(format!("cannot use the credentials `{path}`: {}", io_reason(error)))
    };
    let mut options = ConnectOptions::new();
    if let Some((user, password)) = login {
        options = match password {
            Some(password) => options.user_and_password(user, password),
            None => options.token(user),
        };
    }
    if let Some(path) = variable("NATS_CREDS") {
        options = options.credentials_file(&path).await.map_err(|error| unreadable(&path, &error))?;
    }
    if let Some(path) = variable("NATS_NKEY") {
        let seed = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        redact::learn([("NATS_NKEY".to_owned(), seed.trim().to_owned())]);
        options = options.nkey(seed.trim().to_owned());
    }
    if let Some(token) = variable("NATS_TOKEN") {
        redact::learn([("NATS_TOKEN".to_owned(), token.clone())]);
        options = options.token(token);
    }
    if let (Some(user), Some(password)) = (variable("NATS_USER"), variable("NATS_PASSWORD")) {
        redact::learn([("NATS_PASSWORD".to_owned(), password.clone())]);
        options = options.user_and_password(user, password);
    }
    if let Some(path) = variable("NATS_CA") {
        options = options.add_root_certificates(PathBuf::from(path));
    }
    if let (Some(certificate), Some(key)) = (variable("NATS_CERT"), variable("NATS_KEY")) {
        options = options.add_client_certificate(certificate.into(), key.into());
    }
    Ok(options)
}

/// Connects, and makes what is missing there.
pub(crate) async fn connect(on: &str, name: &str) -> Result<Hub, UserError> {
    let (servers, login) = addresses(on)?;
    let shown: Vec<String> = servers.iter().map(|server| format!("{}:{}", server.host(), server.port())).collect();
    let shown = shown.join(", ");
    let options = options(login)
        .await?
        .name(name)
        .connection_timeout(CONNECT)
        .request_timeout(Some(REQUEST))
        .reconnect_delay_callback(|attempts| Duration::from_millis(100 * attempts.min(20) as u64).min(LONGEST_PAUSE))
        .event_callback(|event| async move {
            match event {
                Event::Disconnected => out::warn("the connection to NATS is lost; trying again"),
                Event::Connected => out::tell("connected to NATS"),
                _ => {}
            }
        });
    let client = options.connect(servers).await.map_err(|error| match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            UserError::agent(format!("NATS at {shown} refused the credentials"))
                .hint("set NATS_CREDS, NATS_NKEY, NATS_TOKEN, or NATS_USER and NATS_PASSWORD")
        }
        ConnectErrorKind::Tls => UserError::agent(format!("NATS at {shown}: the TLS connection failed"))
            .hint("NATS_CA names the certificate of your authority, NATS_CERT and NATS_KEY your own"),
        _ => UserError::usage(format!("cannot reach NATS at {shown}"))
            .hint("start a server with `nats-server --jetstream`, or check the address"),
    })?;
    let mut context = jetstream::new(client.clone());
    context.set_timeout(REQUEST);
    let mut prepared = prepare(client.clone(), context.clone()).await;
    // Without JetStream or the right to use it, the answer comes at once; a cluster without a leader does not answer.
    for _ in 0..super::TRIES {
        if !prepared.as_ref().err().is_some_and(|error| error.to_string().contains("timed out")) {
            break;
        }
        tokio::time::sleep(super::PAUSE).await;
        prepared = prepare(client.clone(), context.clone()).await;
    }
    prepared.map_err(|error| {
        let text = error.to_string();
        let error = UserError::usage(format!("cannot use JetStream of NATS at {shown}: {text}"));
        if text.contains("ermission") { error.hint("the account needs rights on JetStream") } else { error }
            .hint("JetStream is enabled with `nats-server --jetstream`")
    })
}

async fn prepare(client: Client, context: Context) -> Result<Hub, async_nats::Error> {
    let config = |name: &str, subject: &str| stream::Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        duplicate_window: DUPLICATES,
        max_age: KEPT,
        num_replicas: 3,
        ..stream::Config::default()
    };
    let mut tasks = stream::Config {
        retention: RetentionPolicy::WorkQueue,
        discard: DiscardPolicy::New,
        // A task is in the queue once.
        max_messages_per_subject: 1,
        discard_new_per_subject: true,
        ..config(names::TASKS, "ralph.tasks.>")
    };
    let made = context.get_or_create_stream(tasks.clone()).await;
    let alone = made.as_ref().err().is_some_and(|error| match error.kind() {
        jetstream::context::CreateStreamErrorKind::JetStream(error) => error.error_code().0 == NOT_CLUSTERED,
        _ => false,
    });
    let (replicas, tasks) = if alone {
        tasks.num_replicas = 1;
        (1, context.get_or_create_stream(tasks).await?)
    } else {
        let stream = made?;
        (stream.cached_info().config.num_replicas, stream)
    };
    let with = |config: stream::Config| stream::Config { num_replicas: replicas, ..config };
    let journal = context.get_or_create_stream(with(config(names::JOURNAL, "ralph.journal.>"))).await?;
    context.get_or_create_stream(with(config(names::DEAD, "ralph.dead.>"))).await?;
    // The stream of the bucket, as clients make it. `create_key_value` asks for limits of the account, in a form that 2.9 does not have.
    let bucket = stream::Config {
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        // An entry in use is written every few seconds.
        ..with(config(&format!("KV_{}", names::STATE), &format!("$KV.{}.>", names::STATE)))
    };
    context.get_or_create_stream(bucket).await?;
    let state = context.get_key_value(names::STATE).await?;
    let runs = if let Ok(runs) = context.get_object_store(names::RUNS).await {
        runs
    } else {
        let config = object_store::Config {
            bucket: names::RUNS.to_owned(),
            max_age: KEPT,
            num_replicas: replicas,
            ..object_store::Config::default()
        };
        context.create_object_store(config).await?
    };
    Ok(Hub { client, context, tasks, journal, state, runs, replicas })
}

impl Hub {
    /// The consumer that gives tasks to workers.
    pub(crate) async fn workers(&self, label: Option<&str>) -> Result<Consumer<pull::Config>, async_nats::Error> {
        let (name, filter_subject) = names::consumer(label);
        let config = pull::Config {
            durable_name: Some(name.clone()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            // More than a worker uses: the last ones are for moving the task to the refused ones.
            max_deliver: 2 * MOST_DELIVERIES,
            max_ack_pending: 100_000,
            max_waiting: 20_000,
            filter_subject,
            num_replicas: self.replicas,
            ..pull::Config::default()
        };
        Ok(self.tasks.get_or_create_consumer(&name, config).await?)
    }
}
