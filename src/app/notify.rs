//! The settings under `notify:` as channels of a run.

use crate::config::{OneLine, Setting, Settings};
use crate::run::notify::Notify;
use crate::run::notify::channels::Channel;

fn channels(settings: &Settings) -> Vec<Channel> {
    let text = |setting: &Setting<Option<OneLine>>| setting.value.as_ref().map(|line| line.0.trim().to_owned());
    let mut channels = Vec::new();
    channels.extend(text(&settings.notify_webhook).map(Channel::Webhook));
    channels.extend(text(&settings.notify_slack).map(Channel::Slack));
    channels.extend(text(&settings.notify_discord).map(Channel::Discord));
    let server = |setting: &Setting<OneLine>| setting.value.0.trim().to_owned();
    if let Some(topic) = text(&settings.ntfy_topic) {
        channels.push(Channel::Ntfy { server: server(&settings.ntfy_server), topic });
    }
    if let (Some(token), Some(chat)) = (text(&settings.telegram_token), text(&settings.telegram_chat)) {
        channels.push(Channel::Telegram { server: server(&settings.telegram_server), token, chat });
    }
    channels
}

pub(crate) fn notify(settings: &Settings) -> Notify {
    Notify {
        on: settings.notify_on.value.clone(),
        command: settings.notify_command.value.clone().map(|command| command.0),
        channels: channels(settings),
        terminal: settings.notify_terminal.value,
    }
}
