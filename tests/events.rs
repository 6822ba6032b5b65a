//! Canonical events survive their JSON, whatever is in them.

#![allow(clippy::unwrap_used, missing_docs)]

use proptest::prelude::*;
use ralph::event::{
    Event, FailureClass, FileChange, Known, Meta, Object, Status, Tag, TodoItem, TodoStatus, ToolEnd, ToolRef,
    ToolStart, Usage,
};
use serde_json::Value;

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Object> {
    prop::collection::btree_map(any::<String>(), json(), 0..5).prop_map(|map| map.into_iter().collect())
}

fn tag() -> impl Strategy<Value = Tag> {
    prop::sample::select(Tag::ALL.to_vec())
}

fn usage() -> impl Strategy<Value = Usage> {
    let number = || prop::option::of(any::<u64>());
    (
        number(),
        number(),
        number(),
        number(),
        number(),
        number(),
        prop::option::of(any::<String>()),
        prop::option::of(0u32..1_000_000),
    )
        .prop_map(
            |(
                prompt_tokens,
                completion_tokens,
                total_tokens,
                cached_tokens,
                cache_write_tokens,
                reasoning_tokens,
                model,
                cost,
            )| Usage {
                prompt_tokens,
                completion_tokens,
                total_tokens,
                model,
                cached_tokens,
                cache_write_tokens,
                reasoning_tokens,
                cost_usd: cost.map(|cost| f64::from(cost) / 1024.0),
            },
        )
}

fn event() -> impl Strategy<Value = Event> {
    let parent = || prop::option::of(any::<String>());
    let status = || prop::sample::select(vec![Status::Ok, Status::Fail, Status::Unknown]);
    prop_oneof![
        (tag(), any::<String>(), any::<bool>(), parent()).prop_map(|(tag, text, delta, parent)| Event::Text {
            tag,
            text,
            delta,
            parent
        }),
        (any::<String>(), any::<String>(), prop::option::of(object()), parent())
            .prop_map(|(id, name, input, parent)| Event::ToolStart { tool: ToolStart { id, name, input }, parent }),
        (any::<String>(), any::<String>(), any::<bool>(), parent())
            .prop_map(|(id, text, delta, parent)| Event::ToolOutput { tool: ToolRef { id }, text, delta, parent }),
        (any::<String>(), status(), prop::option::of(any::<u64>()), parent()).prop_map(
            |(id, status, duration_ms, parent)| Event::ToolEnd { tool: ToolEnd { id, status, duration_ms }, parent }
        ),
        usage().prop_map(|usage| Event::Usage { usage }),
        object().prop_map(|object| Event::Meta { meta: Meta(object) }),
    ]
}

proptest! {
    #[test]
    fn an_event_reads_back_as_it_was_written(event in event()) {
        let json = serde_json::to_vec(&event).unwrap();
        prop_assert!(!json.contains(&b'\n'), "one event, one line");
        let mut written = Vec::new();
        event.write_json(&mut written);
        prop_assert_eq!(Event::from_json(&written).unwrap(), event.clone(), "the fast way says what serde says");
        let text = String::from_utf8(written.clone()).unwrap();
        let is_words = matches!(event, Event::Text { .. } | Event::ToolOutput { .. } | Event::ToolEnd { .. });
        prop_assert!(!is_words || !text.contains(char::is_control), "nothing in it that a terminal obeys");
        if !String::from_utf8_lossy(&json).contains(char::is_control) {
            prop_assert_eq!(&written, &json);
        }
        prop_assert_eq!(Event::from_json(&json).unwrap(), event.clone());
        prop_assert_eq!(serde_json::from_slice::<Event>(&json).unwrap(), event);
    }

    #[test]
    fn any_bytes_are_an_event_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Event::from_json(&bytes);
    }

    #[test]
    fn any_json_is_an_event_or_a_named_error(value in json()) {
        if let Err(error) = Event::from_json(value.to_string().as_bytes()) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn known_kinds_survive_as_meta() {
    for known in [
        Known::Session { id: "s".into() },
        Known::Todo { items: vec![TodoItem { text: "t".into(), status: TodoStatus::InProgress }] },
        Known::Files { changes: vec![FileChange { path: "p".into(), change: Some("add".into()) }] },
        Known::TurnEnd { success: None, reason: None },
        Known::Retry { class: FailureClass::Overload, attempt: Some(2), delay_ms: None, message: None },
    ] {
        let event = Event::from(known.clone());
        let Event::Meta { meta } = Event::from_json(&serde_json::to_vec(&event).unwrap()).unwrap() else {
            panic!("not meta")
        };
        assert_eq!(meta.known(), Some(known));
    }
}

#[test]
fn an_unknown_kind_and_further_fields_are_carried_along() {
    let json = r#"{"type":"meta","meta":{"kind":"weather","sky":["blue"]}}"#;
    assert_eq!(serde_json::to_string(&Event::from_json(json.as_bytes()).unwrap()).unwrap(), json);
}
