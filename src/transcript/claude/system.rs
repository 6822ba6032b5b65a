//! Claude's `system` lines and its limits: what the CLI tells about itself, its retries and its failures.

use super::result::without_context_suffix;
use super::wire::{Limited, System};
use super::{Claude, session};
use crate::event::{Event, FailureClass, Known, Quota, Tag};
use crate::transcript::failure::{self, Failure};
use crate::transcript::reset::{self, Reset};
use crate::transcript::shape::Text;
use crate::transcript::turn::Turn;

impl Claude {
    pub(crate) fn system(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: System<'_> = serde_json::from_str(json)?;
        match line.subtype.as_deref() {
            Some("ralph_event") if self.exact => {
                match line.event.and_then(|raw| Event::from_json(raw.get().as_bytes()).ok()) {
                    // The lines after it have the session too.
                    Some(Event::Meta { meta }) if meta.kind() == Some("session") => {
                        session(line.session_id.as_ref(), turn);
                    }
                    Some(event) => turn.event(event),
                    None => {}
                }
            }
            Some("init") => {
                self.introduced = true;
                self.exact = line.emitter.0.as_deref() == Some("ralph");
                session(line.session_id.as_ref(), turn);
                turn.model(without_context_suffix(line.model.0.as_deref().unwrap_or_default()));
                let version = if self.exact { line.agent_version } else { line.claude_code_version };
                turn.version(version.0.as_deref().unwrap_or_default());
                for server in line.mcp_servers.0.iter().flatten().filter(|server| server.status == "failed") {
                    turn.meta(Known::Warning { message: format!("MCP server `{}` failed to start", server.name) });
                }
            }
            Some("api_retry") => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a cast from float saturates"
                )]
                let delay = line.retry_delay_ms.0.map(|delay| delay.round() as u64);
                let status = line.error_status.0;
                let word = line.error.0.as_deref().unwrap_or_default();
                // No answer at all is the network's fault.
                let failure = match status {
                    None if matches!(word, "unknown" | "") => Failure::of(FailureClass::Network, None, word),
                    _ => named_failure(word, status, word),
                };
                turn.retry(failure, line.attempt.0, delay);
            }
            Some("retry") => {
                let reason = line.data.0.and_then(|data| data.reason).unwrap_or_default();
                let class = failure::classify(None, &reason).unwrap_or(FailureClass::Network);
                turn.messages_over(None);
                turn.retry(Failure::of(class, None, reason), None, None);
            }
            Some("compact_boundary") => self.compacted = true,
            Some("status") => {
                if let Some(error) = line.compact_error.0 {
                    turn.meta(Known::Warning { message: format!("compaction failed: {}", &*error) });
                }
            }
            Some("model_fallback") => {
                let name = |model: Option<Text<'_>>| model.map_or("another model".to_owned(), Text::into_string);
                let (original, fallback) = (name(line.original_model.0), name(line.fallback_model.0));
                turn.meta(Known::Warning { message: format!("{original} is replaced by {fallback}") });
                turn.model(without_context_suffix(&fallback));
            }
            Some("model_refusal_no_fallback") => {
                let message = line.content.0.map(Text::into_string).filter(|text| !text.is_empty());
                let message = message.unwrap_or_else(|| "the model refused".to_owned());
                turn.failure(Failure::of(FailureClass::Refusal, None, message));
            }
            Some("hook_started" | "task_started" | "task_progress" | "task_updated" | "task_notification") => {}
            Some("hook_response") => turn.text(Tag::Sys, None, line.output.0.unwrap_or_default().0),
            _ => {
                if let Some(content) = line.content.0 {
                    turn.text(Tag::Sys, None, content.0);
                }
            }
        }
        Ok(())
    }

    /// `rate_limit_event`: how near a subscription is to its limit.
    pub(crate) fn limited(json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let info = serde_json::from_str::<Limited>(json)?.rate_limit_info;
        let kind = info.rate_limit_type.0.unwrap_or_else(|| "usage".to_owned());
        if let Some(part) = info.utilization.0.filter(|part| (0.0..=10.0).contains(part)) {
            let window = match kind.as_str() {
                "five_hour" => "5h".to_owned(),
                "seven_day" => "week".to_owned(),
                other => other.to_owned(),
            };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1000")]
            let used = (part * 100.0).round() as u32;
            let resets_at = info.resets_at.0.and_then(reset::from_epoch).map(|at| at.to_string());
            turn.meta(Known::Quota(Quota { window, used, resets_at }));
        }
        let paid = info.is_using_overage.0 == Some(true)
            || info.overage_status.0.is_some_and(|word| word.starts_with("allowed"));
        match info.status.as_deref() {
            Some("rejected") if !paid => {
                let mut failure = Failure::of(FailureClass::RateLimit, None, format!("{kind} limit reached"));
                failure.reset = info.resets_at.0.and_then(reset::from_epoch).map(Reset::At);
                turn.failure(failure);
            }
            Some("allowed_warning" | "rejected") => {
                let used = info.utilization.0.map(|part| format!(" ({:.0} % used)", part * 100.0)).unwrap_or_default();
                turn.meta(Known::Warning { message: format!("the {kind} limit is near{used}") });
            }
            _ => {}
        }
        Ok(())
    }
}

/// An error that the CLI names.
pub(crate) fn named_failure(word: &str, status: Option<u16>, message: &str) -> Failure {
    let class = match word {
        "authentication_failed" | "billing_error" | "oauth_org_not_allowed" => FailureClass::Auth,
        "rate_limit" => FailureClass::RateLimit,
        "overloaded" => FailureClass::Overload,
        "model_not_found" => FailureClass::Config,
        "max_output_tokens" => FailureClass::AgentLimit,
        // Also what a connection that breaks is called.
        "server_error" => failure::classify(status.or_else(|| failure::status_in(message)), message)
            .filter(|class| *class == FailureClass::Network)
            .unwrap_or(FailureClass::Overload),
        _ => return Failure::read(status, message),
    };
    Failure::of(class, status.or_else(|| failure::status_in(message)), message)
}
