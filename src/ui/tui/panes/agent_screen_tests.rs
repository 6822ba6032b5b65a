use proptest::prelude::*;
use ratatui_core::style::Color;

use super::*;
use crate::ui::style::{Glyphs, Palette};

fn theme(palette: Palette) -> Theme {
    Theme::new(palette, Glyphs::UNICODE)
}

/// The screen of a terminal of this many rows and columns that was sent these bytes.
fn told(bytes: &[u8], rows: u16, columns: u16) -> AgentScreen {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("1.stdout"), bytes).unwrap();
    let terminal = Terminal { rows, columns, line_feed: LineFeed::NewLine };
    let mut screen = AgentScreen::open(directory.path(), 1, 1, terminal);
    while screen.play(Duration::from_millis(50)).unwrap() {}
    screen
}

/// What is drawn of it in a pane of this many columns and rows.
fn drawn(screen: &mut AgentScreen, columns: u16, rows: u16, palette: Palette) -> Buffer {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    screen.draw(area, &mut buffer, &theme(palette));
    buffer
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let Rect { width, height, .. } = buffer.area;
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

#[test]
fn what_is_drawn_stands_where_the_agent_put_it_in_its_colours() {
    let bytes = "gone\u{1b}[?1049h\u{1b}[2J\u{1b}[2;3H\u{1b}[1;31mred\u{1b}[0m \u{1b}[38;5;208morange\u{1b}[48;2;1;2;3mon blue\
                 \u{1b}[0m\u{1b}[3;1H\u{1b}[7mreversed\u{1b}[0m\u{1b}[4;1H日本\u{1b}[?25l";
    let mut screen = told(bytes.as_bytes(), 6, 40);
    let buffer = drawn(&mut screen, 40, 6, Palette::Colour);
    assert_eq!(lines(&buffer)[..3], ["", "  red orangeon blue", "reversed"]);
    let of = |x: u16, y: u16| (buffer[(x, y)].fg, buffer[(x, y)].bg, buffer[(x, y)].modifier);
    assert_eq!(of(2, 1), (Color::Indexed(1), Color::Reset, Modifier::BOLD));
    assert_eq!(of(6, 1), (Color::Indexed(208), Color::Reset, Modifier::empty()));
    assert_eq!(of(12, 1), (Color::Indexed(208), Color::Rgb(1, 2, 3), Modifier::empty()));
    assert_eq!(of(0, 2).2, Modifier::REVERSED);
    assert_eq!((buffer[(0, 3)].symbol(), buffer[(2, 3)].symbol()), ("日", "本"));
    let plain = drawn(&mut screen, 40, 6, Palette::Plain);
    assert!(plain.content.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset)));
    assert_eq!(plain[(2, 1)].modifier, Modifier::BOLD);
    let back = format!("{bytes}\u{1b}[?1049l");
    assert_eq!(lines(&drawn(&mut told(back.as_bytes(), 6, 40), 40, 6, Palette::Colour))[0], "gone");
}

#[test]
fn the_cursor_is_seen_unless_the_agent_hides_it() {
    let mut screen = told(b"$ \x1b[7mx\x1b[0m\x1b[1;2H", 3, 10);
    assert_eq!(drawn(&mut screen, 10, 3, Palette::Colour)[(1, 0)].modifier, Modifier::REVERSED);
    let mut on_reversed = told(b"$ \x1b[7mx\x1b[0m\x1b[1;3H", 3, 10);
    assert_eq!(drawn(&mut on_reversed, 10, 3, Palette::Colour)[(2, 0)].modifier, Modifier::empty());
    let mut hidden = told(b"$ \x1b[?25l", 3, 10);
    assert_eq!(drawn(&mut hidden, 10, 3, Palette::Colour)[(2, 0)].modifier, Modifier::empty());
}

#[test]
fn a_line_feed_alone_begins_a_line_unless_a_person_is_at_the_keys() {
    let mut screen = told(b"one\ntwo\r\nthree", 4, 10);
    assert_eq!(lines(&drawn(&mut screen, 10, 4, Palette::Plain))[..3], ["one", "two", "three"]);
    let mut spelled = Vec::new();
    Spelling { line_feed: LineFeed::Down, before: [0; 2] }.spell(b"one\ntwo", &mut spelled);
    assert_eq!(spelled, b"one\ntwo");
}

#[test]
fn both_ways_to_save_the_cursor_are_known_also_in_pieces() {
    let mut spelling = Spelling { line_feed: LineFeed::NewLine, before: [0; 2] };
    let mut parser = vt100::Parser::default();
    for byte in b"ab\x1b[scd\x1b[5;5Hxy\x1b[uCD" {
        let mut spelled = Vec::new();
        spelling.spell(&[*byte], &mut spelled);
        parser.process(&spelled);
    }
    assert_eq!(parser.screen().contents(), "abCD\n\n\n\n    xy");
}

#[test]
fn a_small_pane_shows_the_part_with_the_cursor_and_its_window_moves() {
    let rows = (1..=20).map(|row| format!("\u{1b}[{row};1Hrow {row}\u{1b}[{row};30Hend {row}"));
    let rows = rows.collect::<Vec<_>>().concat();
    let mut screen = told(format!("{rows}\u{1b}[18;1H").as_bytes(), 20, 40);
    let seen = |screen: &mut AgentScreen| {
        let lines = lines(&drawn(screen, 12, 5, Palette::Plain));
        lines.first().unwrap().trim_end_matches(['┃', ' ']).to_owned()
    };
    assert_eq!(seen(&mut screen), "row 14", "the cursor is in the last row in sight");
    screen.roll(-3);
    assert_eq!(seen(&mut screen), "row 11");
    screen.roll(1000);
    assert_eq!(seen(&mut screen), "row 16");
    screen.first();
    assert_eq!(seen(&mut screen), "row 1");
    while screen.slide(1) {
        seen(&mut screen);
    }
    assert!(seen(&mut screen).ends_with("end 1"));
    assert!(!screen.slide(1) && screen.slide(-1), "at its side it lets others have the key");
    screen.follow();
    assert_eq!(seen(&mut screen), "row 14");
    let mut large = told(b"small", 3, 10);
    assert_eq!(lines(&drawn(&mut large, 40, 10, Palette::Plain))[0], "small");
}

#[test]
fn half_a_wide_character_is_not_shown() {
    let mut screen = told("a日本".as_bytes(), 2, 8);
    assert_eq!(drawn(&mut screen, 2, 2, Palette::Plain)[(1, 0)].symbol(), " ");
    screen.window = Window::At(0, 2);
    assert_eq!(lines(&drawn(&mut screen, 4, 2, Palette::Plain))[0].trim_start(), "本");
}

#[test]
fn what_is_not_there_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let terminal = Terminal { rows: 0, columns: u16::MAX, line_feed: LineFeed::NewLine };
    let mut screen = AgentScreen::open(directory.path(), 1, 1, terminal);
    assert!(screen.play(Duration::from_millis(1)).is_err());
    assert_eq!(screen.trouble(), Some("the agent's screen was deleted"));
    drawn(&mut screen, 10, 5, Palette::Plain);
}

/// Sequences that terminals have trouble with, and some that they must not pass on.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![Just(0_u32), 1..5_u32, 20..90_u32, Just(65_535), Just(4_000_000_000)];
    let action = proptest::sample::select(&b"@ABCDEFGHIJKLMPSTXZ`abcdefghlmnqrstu"[..]);
    let sequence = (proptest::sample::select(&["", "?", ">", "!"][..]), number.clone(), number, action);
    let sequence = sequence
        .prop_map(|(sign, one, two, action)| format!("\u{1b}[{sign}{one};{two}{}", char::from(action)).into_bytes());
    let mode = proptest::sample::select(&[1_u32, 3, 5, 6, 7, 25, 47, 69, 1000, 1047, 1048, 1049, 2004, 2026][..]);
    let mode = (mode, prop_oneof![Just('h'), Just('l')]);
    let text = proptest::sample::select(
        &[
            "日",
            "👩\u{200d}👩",
            "e\u{301}",
            "❤\u{fe0f}",
            "\u{202e}",
            "a\u{202e}b",
            "\u{feff}",
            "\u{200f}",
            "ខ",
            "\u{17d8}",
            "\t",
            "\n",
            "\r",
            "\u{8}",
            "\u{1b}7",
            "\u{1b}8",
            "\u{1b}M",
            "\u{1b}D",
            "\u{1b}c",
            "\u{1b}#8",
            "\u{1b}(0",
            "\u{9b}2J",
            "\u{1b}]52;c;b3du\u{7}",
            "\u{1b}]0;owned\u{7}",
            "\u{1b}Pq",
            "\u{1b}\\",
            "a long run of words",
        ][..],
    );
    prop_oneof![
        4 => sequence,
        1 => mode.prop_map(|(mode, to)| format!("\u{1b}[?{mode}{to}").into_bytes()),
        4 => text.prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("RALPH_SCREEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64)
    ))]

    #[test]
    fn no_bytes_break_it_and_none_that_a_terminal_obeys_are_drawn(
        parts in proptest::collection::vec(hostile(), 0..60),
        size in (0..12_u16, 0..24_u16),
        pane in (1..12_u16, 1..24_u16),
        roll in -5..5_isize,
    ) {
        let mut screen = told(&parts.concat(), size.0, size.1);
        screen.slide(roll);
        screen.roll(roll);
        for palette in [Palette::Colour, Palette::Plain] {
            let buffer = drawn(&mut screen, pane.1, pane.0, palette);
            let obeyed = buffer.content.iter().flat_map(|cell| cell.symbol().chars()).find(|letter| is_obeyed(*letter));
            prop_assert_eq!(obeyed, None);
        }
        prop_assert!(!screen.text().chars().any(|letter| letter != '\n' && is_obeyed(letter)));
    }
}
