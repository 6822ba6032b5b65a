//! The services that a notification can go to, and what each of them expects. Pure: nothing is sent here.

use serde_json::{Map, Value, json};

/// Where a notification goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Any address: it gets all facts as JSON.
    Webhook(String),
    /// An incoming webhook of Slack.
    Slack(String),
    /// A webhook of Discord.
    Discord(String),
    Ntfy {
        server: String,
        topic: String,
    },
    Telegram {
        server: String,
        token: String,
        chat: String,
    },
}

/// Discord's limit for a message, in characters.
const DISCORD_LIMIT: usize = 2000;

impl Channel {
    /// Its name in messages.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Slack(_) => "Slack",
            Self::Discord(_) => "Discord",
            Self::Ntfy { .. } => "ntfy",
            Self::Telegram { .. } => "Telegram",
        }
    }

    /// The address and the JSON to post there.
    pub(crate) fn request(&self, facts: &Map<String, Value>) -> (String, Value) {
        let (title, text) = (title(facts), text(facts));
        match self {
            Self::Webhook(address) => (address.clone(), Value::Object(facts.clone())),
            Self::Slack(address) => {
                // These three have a meaning in Slack's text.
                let plain = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                (address.clone(), json!({"text": format!("*{}*\n{}", plain(&title), plain(&text))}))
            }
            Self::Discord(address) => {
                let content: String = format!("**{title}**\n{text}").chars().take(DISCORD_LIMIT).collect();
                // Nobody is pinged by what an agent wrote.
                (address.clone(), json!({"content": content, "allowed_mentions": {"parse": []}}))
            }
            Self::Ntfy { server, topic } => {
                let urgent = matches!(notice(facts), "failed" | "blocked");
                let priority = if urgent { 4 } else { 3 };
                let tags = [match notice(facts) {
                    "complete" => "white_check_mark",
                    "waiting" => "hourglass",
                    "blocked" => "question",
                    "test" => "bell",
                    _ => "x",
                }];
                let body = json!({"topic": topic, "title": title, "message": text, "priority": priority, "tags": tags});
                (server.trim_end_matches('/').to_owned() + "/", body)
            }
            Self::Telegram { server, token, chat } => {
                let address = format!("{}/bot{token}/sendMessage", server.trim_end_matches('/'));
                (address, json!({"chat_id": chat, "text": format!("{title}\n{text}")}))
            }
        }
    }
}

fn fact<'a>(facts: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    facts.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn notice(facts: &Map<String, Value>) -> &str {
    fact(facts, "notice").unwrap_or("notice")
}

/// `ralph completed: my-project`.
fn title(facts: &Map<String, Value>) -> String {
    let what = match notice(facts) {
        "complete" => "completed",
        "blocked" => "needs you",
        "waiting" => "waits",
        "test" => "test",
        _ => "failed",
    };
    let project = fact(facts, "workspace").and_then(|path| path.rsplit('/').find(|name| !name.is_empty()));
    project.map_or_else(|| format!("ralph: {what}"), |project| format!("ralph {what}: {project}"))
}

/// The reason, a question, and what it took.
fn text(facts: &Map<String, Value>) -> String {
    let mut lines: Vec<String> =
        [fact(facts, "reason"), fact(facts, "question")].into_iter().flatten().map(str::to_owned).collect();
    let mut sums = Vec::new();
    sums.extend(facts.get("iterations").map(|count| format!("iterations: {count}")));
    sums.extend(
        facts.get("duration_ms").and_then(Value::as_u64).map(|ms| format!("time: {} min", ms.div_ceil(60_000))),
    );
    sums.extend(facts.get("cost_usd").and_then(Value::as_f64).map(|usd| format!("cost: ${usd:.2}")));
    sums.extend(fact(facts, "until").map(|until| format!("until: {until}")));
    sums.extend(fact(facts, "agent").map(|agent| format!("agent: {agent}")));
    if !sums.is_empty() {
        lines.push(sums.join(", "));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Map<String, Value> {
        let facts = json!({
            "notice": "complete", "reason": "`cargo test` <passed> & all", "workspace": "/home/u/shop", "iterations": 3,
            "duration_ms": 61_000, "cost_usd": 0.421, "agent": "claude",
        });
        facts.as_object().unwrap().clone()
    }

    #[test]
    fn each_service_gets_what_it_expects() {
        let ask = |channel: Channel| channel.request(&facts());
        let lines = "`cargo test` <passed> & all\niterations: 3, time: 2 min, cost: $0.42, agent: claude";
        let address = || "http://h/x".to_owned();
        assert_eq!(ask(Channel::Webhook(address())), (address(), Value::Object(facts())));
        let (_, slack) = ask(Channel::Slack(address()));
        let escaped = lines.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        assert_eq!(slack, json!({"text": format!("*ralph completed: shop*\n{escaped}")}));
        let (_, discord) = ask(Channel::Discord(address()));
        assert_eq!(discord["content"], format!("**ralph completed: shop**\n{lines}"));
        assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
        let (at, ntfy) = ask(Channel::Ntfy { server: "http://h/".into(), topic: "mine".into() });
        assert_eq!(at, "http://h/");
        assert_eq!(
            ntfy,
            json!({"topic": "mine", "title": "ralph completed: shop", "message": lines, "priority": 3, "tags": ["white_check_mark"]})
        );
        let (at, telegram) =
            ask(Channel::Telegram { server: "http://h".into(), token: "1:a".into(), chat: "-5".into() });
        assert_eq!(at, "http://h/bot1:a/sendMessage");
        assert_eq!(telegram, json!({"chat_id": "-5", "text": format!("ralph completed: shop\n{lines}")}));
    }

    #[test]
    fn a_long_text_fits_into_a_message_of_discord() {
        let mut facts = facts();
        facts.insert("reason".to_owned(), json!("é".repeat(5000)));
        let (_, body) = Channel::Discord(String::new()).request(&facts);
        assert_eq!(body["content"].as_str().unwrap().chars().count(), DISCORD_LIMIT);
    }
}
