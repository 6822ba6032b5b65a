use crate::config::{Adapter, Layer};

#[test]
fn no_key_stands_inside_another_one() {
    for key in Layer::KEYS {
        for other in Layer::KEYS {
            let inside = other.path.strip_prefix(key.path).is_some_and(|rest| rest.starts_with('.'));
            assert!(!inside, "`{}` would never be read", other.path);
        }
        assert_eq!(Layer::KEYS.iter().filter(|other| other.path == key.path).count(), 1, "{} is there twice", key.path);
    }
}

#[test]
fn every_key_says_in_a_sentence_what_it_is_for() {
    for key in Layer::KEYS.iter().chain(Adapter::KEYS) {
        assert!(key.doc().ends_with('.') && key.doc().starts_with(char::is_uppercase), "{}: {}", key.path, key.doc());
    }
}
