//! Planning together with a person through a loop that knows Claude: the agent's message ends at its first question, draft or
//! ready plan, and a native question becomes that loop's question.

use serde_json::json;

use crate::event::{Event, Tag};

/// What ends a message, and up to where.
const SIGNALS: [(&str, Option<&str>); 3] = [
    ("<<<RALPHEX:QUESTION>>>", Some("<<<RALPHEX:END>>>")),
    ("<<<RALPHEX:PLAN_DRAFT>>>", Some("<<<RALPHEX:END>>>")),
    ("<<<RALPHEX:PLAN_READY>>>", None),
];

/// Watches the events of one turn.
#[derive(Debug, Default)]
pub(crate) struct PlanMode {
    /// The agent's message so far; fragments are held until it is whole.
    message: String,
}

/// What becomes of an event.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Pass,
    /// Held back: it may be cut.
    Hold,
    /// This is the last message of the turn.
    End(Event),
}

impl PlanMode {
    pub(crate) fn take(&mut self, event: &Event) -> Step {
        match event {
            Event::Text { tag: Tag::Ai, text, delta, parent: None } => {
                if !delta {
                    self.message.clear();
                }
                self.message.push_str(text);
                match cut(&self.message) {
                    Some(end) => Step::End(Event::text(Tag::Ai, &self.message[..end])),
                    None if *delta => Step::Hold,
                    None => Step::Pass,
                }
            }
            Event::ToolStart { tool, parent: None } if tool.name == "ask_user" => {
                let input = tool.input.as_ref();
                let question = input.and_then(|input| input.get("question")?.as_str()).unwrap_or_default();
                let options = input.and_then(|input| input.get("choices").or_else(|| input.get("options")));
                let asked = json!({"question": question, "options": options.cloned().unwrap_or_else(|| json!([]))});
                Step::End(Event::text(Tag::Ai, format!("<<<RALPHEX:QUESTION>>>\n{asked}\n<<<RALPHEX:END>>>")))
            }
            _ => Step::Pass,
        }
    }

    /// The held fragments, when something else comes.
    pub(crate) fn rest(&mut self) -> Option<Event> {
        let message = std::mem::take(&mut self.message);
        (!message.is_empty()).then(|| Event::text(Tag::Ai, message))
    }
}

/// Where the first whole signal ends.
fn cut(text: &str) -> Option<usize> {
    let first = SIGNALS.iter().filter_map(|(begin, end)| text.find(begin).map(|at| (at, begin, end)));
    let (at, begin, end) = first.min_by_key(|(at, ..)| *at)?;
    let after = at + begin.len();
    match end {
        Some(end) => text[after..].find(end).map(|found| after + found + end.len()),
        None => Some(after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(text: &str) -> Event {
        Event::Text { tag: Tag::Ai, text: text.to_owned(), delta: true, parent: None }
    }

    #[test]
    fn a_message_ends_at_its_first_signal() {
        let mut mode = PlanMode::default();
        assert_eq!(mode.take(&delta("Which?\n<<<RALPHEX:QUES")), Step::Hold);
        assert_eq!(mode.take(&delta("TION>>>\n{\"question\":\"a\"}\n")), Step::Hold);
        let question = "Which?\n<<<RALPHEX:QUESTION>>>\n{\"question\":\"a\"}\n<<<RALPHEX:END>>>";
        let ended = mode.take(&delta("<<<RALPHEX:END>>> and I go on <<<RALPHEX:PLAN_READY>>>"));
        assert_eq!(ended, Step::End(Event::text(Tag::Ai, question)));
        let whole = PlanMode::default().take(&Event::text(Tag::Ai, "Done.\n<<<RALPHEX:PLAN_READY>>>\nAnything else?"));
        assert_eq!(whole, Step::End(Event::text(Tag::Ai, "Done.\n<<<RALPHEX:PLAN_READY>>>")));
        assert_eq!(PlanMode::default().take(&Event::text(Tag::Ai, "Reading.")), Step::Pass);
    }

    #[test]
    fn a_native_question_becomes_the_loops_question() {
        let asks = r#"{"type":"tool_start","tool":{"id":"1","name":"ask_user","input":{"question":"Which db?","choices":["a","b"]}}}"#;
        let Step::End(Event::Text { text, .. }) = PlanMode::default().take(&Event::from_json(asks.as_bytes()).unwrap())
        else {
            panic!("no question")
        };
        assert_eq!(
            text,
            "<<<RALPHEX:QUESTION>>>\n{\"question\":\"Which db?\",\"options\":[\"a\",\"b\"]}\n<<<RALPHEX:END>>>"
        );
    }
}
