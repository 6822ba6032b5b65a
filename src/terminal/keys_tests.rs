use super::*;

fn events(pieces: &[&[u8]]) -> Vec<Event> {
    let mut keyboard = Keyboard::new();
    for piece in pieces {
        keyboard.take(piece);
    }
    keyboard.ready.into()
}

fn keys(bytes: &[u8]) -> Vec<KeyCode> {
    let code = |event: Event| match event {
        Event::Key(key) => key.code,
        other => panic!("no key: {other:?}"),
    };
    events(&[bytes]).into_iter().map(code).collect()
}

#[test]
fn keys_are_known_by_what_terminals_send() {
    use KeyCode::{
        BackTab, Backspace, Char, Delete, Down, End, Enter, F, Home, Left, PageDown, PageUp, Right, Tab, Up,
    };
    for (bytes, code) in [
        (&b"\x1b[A"[..], Up),
        (b"\x1bOB", Down),
        (b"\x1b[C", Right),
        (b"\x1bOD", Left),
        (b"\x1b[1;5C", Right),
        (b"\x1b[H", Home),
        (b"\x1b[4~", End),
        (b"\x1b[5~", PageUp),
        (b"\x1b[6;2~", PageDown),
        (b"\x1b[3~", Delete),
        (b"\x1b[Z", BackTab),
        (b"\x1bOP", F(1)),
        (b"\x1b[[A", F(1)),
        (b"\x1b[11~", F(1)),
        (b"\r", Enter),
        (b"\t", Tab),
        (b"\x7f", Backspace),
        (b"q", Char('q')),
        ("ö".as_bytes(), Char('ö')),
        ("漢".as_bytes(), Char('漢')),
    ] {
        assert_eq!(keys(bytes), [code], "{bytes:?}");
        // However it is cut.
        let one: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(events(&one), [key(code)], "{bytes:?}");
    }
    assert_eq!(events(&[b"\x03"]), [Event::Key(KeyEvent::new(Char('c'), KeyModifiers::CONTROL))]);
    assert_eq!(events(&[b"\x1bx"]), [with_alt('x')]);
}

#[test]
fn what_is_unknown_does_not_swallow_the_next_key() {
    for bytes in
        [&b"\x1b[99;1x"[..], b"\x1b[24~", b"\x1b[<0;1;1m", b"\x1b[<35;4;4M", b"\x1b[?1;2c", b"\xff", b"\x1c", b"\x1bOz"]
    {
        assert_eq!(keys(&[bytes, b"q"].concat()), [KeyCode::Char('q')], "{bytes:?}");
    }
    assert_eq!(keys(b"\x1b\x1b[A"), [KeyCode::Esc, KeyCode::Up]);
    assert_eq!(keys(b"\x1b[1\x1b[A"), [KeyCode::Up], "a sequence that was cut off");
}

#[test]
fn half_a_sequence_is_a_key_alone_or_is_forgotten() {
    for (bytes, expected) in [
        (&b"\x1b"[..], vec![key(KeyCode::Esc)]),
        (b"\x1b[", vec![with_alt('[')]),
        (b"\x1bO", vec![with_alt('O')]),
        (b"\x1b[1;", vec![]),
        (b"\xe6\xbc", vec![]),
    ] {
        let mut keyboard = Keyboard::new();
        keyboard.take(bytes);
        assert_eq!(keyboard.ready, [], "{bytes:?}: more may come");
        keyboard.give_up_waiting(TOGETHER / 2);
        assert_eq!((keyboard.ready.len(), keyboard.held.as_slice()), (0, bytes), "not yet");
        keyboard.give_up_waiting(TOGETHER);
        assert_eq!(keyboard.ready, expected, "{bytes:?}");
        keyboard.take(b"q");
        assert_eq!(keyboard.ready.pop_back(), Some(key(KeyCode::Char('q'))), "{bytes:?}");
    }
}

#[test]
fn pasted_text_is_one_event_and_no_keys() {
    let paste = Event::Paste("q\nüS".into());
    let bytes = "\x1b[200~q\nüS\x1b[201~j".as_bytes();
    let one: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(events(&one), [paste.clone(), key(KeyCode::Char('j'))]);
    let mut keyboard = Keyboard::new();
    keyboard.take("\x1b[200~q\nüS".as_bytes());
    keyboard.give_up_waiting(TOGETHER);
    assert_eq!(keyboard.ready, [], "it may come in pieces");
    keyboard.give_up_waiting(PASTED_TOGETHER);
    assert_eq!(keyboard.ready, [paste]);
}

#[test]
fn the_wheel_and_a_click_have_a_place() {
    let mouse = |kind, column, row| Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
    let wheel = b"\x1b[<64;10;5M\x1b[<65;300;1M\x1b[<0;1;2M\x1b[<0;1;2m";
    let expected = [
        mouse(MouseEventKind::ScrollUp, 9, 4),
        mouse(MouseEventKind::ScrollDown, 299, 0),
        mouse(MouseEventKind::Down(MouseButton::Left), 0, 1),
    ];
    assert_eq!(events(&[wheel]), expected);
}
