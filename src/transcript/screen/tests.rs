#![allow(clippy::format_push_string, clippy::format_collect)]

use super::*;

fn through(bytes: &str, chunk: usize) -> String {
    let mut screen = Screen::new(6, 20);
    let mut out = Vec::new();
    for part in bytes.as_bytes().chunks(chunk) {
        screen.push(part, &mut out);
    }
    screen.finish(&mut out);
    String::from_utf8(out).unwrap()
}

/// The same, whatever the pieces that it comes in.
#[track_caller]
fn clean(bytes: &str) -> String {
    let whole = through(bytes, bytes.len().max(1));
    for chunk in [1, 2, 7] {
        assert_eq!(through(bytes, chunk), whole, "in pieces of {chunk}");
    }
    whole
}

#[test]
fn what_draws_nothing_goes_through_byte_for_byte() {
    let long = format!("{{\"text\":\"{}\"}}\n", "x".repeat(500));
    for text in [
        "words\nmore words",
        "dos\r\nlines\r\n",
        "\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7} \u{1b}[?25l\u{1b}[?2004h\tend\n",
        "  trailing   \n\n\nblank",
        "unfinished \u{1b}",
        &long,
    ] {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn a_progress_bar_is_its_last_state_and_lines_after_it_do_not_wait() {
    let mut screen = Screen::new(6, 20);
    let mut out = Vec::new();
    screen.push(b"start\n10%\r20%\r100%\r\ndone\nand ", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "start\n100%\ndone\n");
    assert_eq!(clean("a\u{8}b\nx\n").lines().last(), Some("x"));
}

#[test]
fn a_frame_that_is_drawn_again_and_again_is_shown_once() {
    let mut bytes = String::from("\u{1b}[2K");
    for frame in 0..50 {
        bytes.push_str(&format!("spinner {frame}\r\nhint\r\n\u{1b}[2A\u{1b}[J"));
        if frame % 10 == 0 {
            bytes.push_str(&format!("result {frame}\r\n"));
        }
    }
    bytes.push_str("bye\r\n");
    // Of the first frame nobody could know that it would be drawn over.
    assert_eq!(clean(&bytes), "spinner 0\nhint\nresult 0\nresult 10\nresult 20\nresult 30\nresult 40\nbye\n");
}

#[test]
fn a_line_is_final_when_the_program_has_never_gone_up_so_far() {
    let mut screen = Screen::new(24, 80);
    let mut out = Vec::new();
    screen.push(b"\x1b[B\x1b[A\r\none\r\ntwo\r\n\x1b[1A\x1b[2Ktwo again\r\nthree\r\n", &mut out);
    assert_eq!(String::from_utf8(out.clone()).unwrap(), "\none\ntwo again\n", "`three` could still change");
    screen.finish(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "\none\ntwo again\nthree\n");
}

#[test]
fn long_lines_are_one_line_again() {
    let line = "word ".repeat(100);
    assert_eq!(clean(&format!("\u{1b}[K{line}\r\nend\r\n")), format!("{}\nend\n", line.trim_end()));
    let wide = "日本語".repeat(9);
    assert_eq!(clean(&format!("\u{1b}[K{wide}\r\n")), format!("{wide}\n"));
}

#[test]
fn a_full_screen_is_what_it_showed_last() {
    let mut bytes = String::from("before\r\n\u{1b}[?1049h");
    for frame in 1..=3 {
        bytes.push_str(&format!("\u{1b}[2J\u{1b}[Htitle {frame}\u{1b}[3;5Hbody {frame}\u{1b}[6;1Hkeys"));
    }
    bytes.push_str("\u{1b}[?1049lafter\r\n");
    assert_eq!(clean(&bytes), "before\r\ntitle 3\n\n    body 3\n\n\nkeys\nafter\n");
}

#[test]
fn a_full_screen_that_is_wiped_before_it_is_left_is_what_it_showed_before() {
    for wipe in ["\u{1b}[1;1H\u{1b}[J", "\u{1b}[2J", "\u{1b}[2J\u{1b}[H\u{1b}[J"] {
        let bytes = format!("\u{1b}[?1049h\u{1b}[Htitle\u{1b}[2;3Hthe answer{wipe}\u{1b}[?1049lbye\r\n");
        assert_eq!(clean(&bytes), "title\n  the answer\nbye\n", "{wipe:?}");
    }
    // What was wiped before something else was drawn is not what it showed last; and a program may wipe row by row.
    let rows = "\u{1b}[?1049h\u{1b}[Hold\u{1b}[2J\u{1b}[Htitle\u{1b}[2;3Hthe answer";
    for wipe in [
        "\u{1b}[2K\u{1b}[1;1H\u{1b}[K",
        "\u{1b}[2;6H\u{1b}[K\u{1b}[1K\u{1b}[H\u{1b}[K",
        "\u{1b}[H\u{1b}[K\u{1b}[2;1H\u{1b}[J",
    ] {
        assert_eq!(clean(&format!("{rows}{wipe}\u{1b}[?1049lbye\r\n")), "title\n  the answer\nbye\n", "{wipe:?}");
    }
    // What was wiped on a screen that was left long ago is not reported again.
    let first = "\u{1b}[?1049h\u{1b}[Hone\u{1b}[2J\u{1b}[?1049l";
    assert_eq!(clean(&format!("{first}\u{1b}[?1049h\u{1b}[?1049lbye\r\n")), "one\nbye\n");
}

#[test]
fn a_program_that_wipes_everything_and_draws_it_anew_says_nothing_twice() {
    let lines: String = (1..=20).map(|number| format!("line {number}\r\n")).collect();
    let bytes = format!("\u{1b}[H{lines}\u{1b}[2J\u{1b}[3J\u{1b}[H{lines}new\r\n");
    let expected: String = (1..=20).map(|number| format!("line {number}\n")).collect::<String>() + "new\n";
    assert_eq!(clean(&bytes), expected);
    // After a new size it leaves some out, and breaks others elsewhere.
    let other = lines.replace("line 3\r\n", "").replace("line 7\r\n", "line\r\n7\r\n");
    let bytes = format!("\u{1b}[H{lines}\u{1b}[H\u{1b}[J{other}new\r\n");
    assert_eq!(clean(&bytes), expected.replace("new\n", "line\n7\nnew\n"));
}

#[test]
fn rows_are_inserted_deleted_and_scrolled_in_a_region() {
    // A program that goes from the last row to the first draws on all of them.
    let whole = |rest: &str| clean(&format!("\u{1b}[6;1H\u{1b}[H{rest}"));
    assert_eq!(whole("a\r\nb\r\nc\u{1b}[2;1H\u{1b}[Lnew"), "a\nnew\nb\nc\n");
    assert_eq!(whole("a\r\nb\r\nc\u{1b}[2;1H\u{1b}[M"), "a\nc\n");
    assert_eq!(whole("abc\u{1b}[1;2H\u{1b}[P\u{1b}[@"), "a c\n");
    assert_eq!(whole("\u{1b}[2;3r\u{1b}[1;1Htop\u{1b}[2;1Hx\r\ny\r\nz\u{1b}[r"), "top\ny\nz\n");
}

#[test]
fn what_no_longer_fits_is_gone() {
    let mut screen = Screen::new(6, 20);
    let mut out = Vec::new();
    screen.push(b"\x1b[6;1H\x1b[Habcdefghijklmnop", &mut out);
    screen.resize(6, 10);
    screen.push(b"\x1b[Hnew\x1b[K", &mut out);
    screen.finish(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "new\n");
}

#[test]
fn combining_marks_stay_with_their_letters() {
    assert_eq!(clean("\u{1b}[Ke\u{301}x\r\n"), "e\u{301}x\n");
}

proptest::proptest! {
    /// No bytes can break it, whatever the size and the pieces.
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), rows in 0u16..5, columns in 0u16..5) {
        let mut screen = Screen::new(rows, columns);
        let mut out = Vec::new();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        screen.push(first, &mut out);
        screen.resize(columns, rows);
        screen.push(second, &mut out);
        screen.finish(&mut out);
    }

    /// Nor can sequences that are meant for it.
    #[test]
    fn any_sequences_are_survived(parts in proptest::collection::vec("(\u{1b}\\[[0-9;?]{0,6}[@-~]|\u{1b}[78DEMc]|[a-z日\r\n\t\u{8}]{1,5})", 0..60)) {
        let mut screen = Screen::new(5, 9);
        let mut out = Vec::new();
        screen.push(parts.concat().as_bytes(), &mut out);
        screen.resize(3, 4);
        screen.push(parts.concat().as_bytes(), &mut out);
        screen.finish(&mut out);
    }
}
