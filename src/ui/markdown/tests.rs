use super::*;
use crate::ui::style::Palette;

fn rendered(text: &str, columns: usize) -> Vec<Styled> {
    let mut markdown = Markdown::new(Glyphs::UNICODE);
    let mut out = Vec::new();
    for line in text.lines() {
        if markdown.is_plain(line) {
            out.push(Styled::new(line, Ink::None));
        } else {
            markdown.line(line, columns, &mut out);
        }
    }
    markdown.end(columns, &mut out);
    out
}

fn words(text: &str, columns: usize) -> Vec<String> {
    rendered(text, columns).iter().map(|line| line.text().trim_end().to_owned()).collect()
}

fn painted(line: &str) -> String {
    rendered(line, 80)[0].painted(Palette::Colour).replace('\u{1b}', "^")
}

#[test]
fn stress_code_and_links_have_their_inks() {
    for (line, expected) in [
        ("plain", "plain"),
        ("a **bold** word", "a ^[1mbold^[0m word"),
        ("an *italic* or _italic_ word", "an ^[3mitalic^[0m or ^[3mitalic^[0m word"),
        ("***both***", "^[1m^[3mboth^[0m"),
        ("**bold and *both***", "^[1mbold and ^[0m^[1m^[3mboth^[0m"),
        ("run `cargo *x*`", "run ^[36mcargo *x*^[0m"),
        ("`` a`b ``", "^[36ma`b^[0m"),
        ("~~gone~~", "^[9mgone^[0m"),
        ("see [the docs](https://a.example)", "see ^[4mthe docs^[0m^[2m (https://a.example)^[0m"),
        ("# Title", "^[1m^[4mTitle^[0m"),
        ("### Deep **er** ###", "^[1mDeep er^[0m"),
        ("> said", "^[2m▎ said^[0m"),
        ("- item", "^[2m• ^[0mitem"),
        ("  12. item", "  ^[2m12. ^[0mitem"),
    ] {
        assert_eq!(painted(line), expected, "{line}");
    }
}

#[test]
fn what_only_looks_like_markdown_stays_as_it_is() {
    for line in [
        "LOOP_COMPLETE and snake_case_name",
        "2 * 3 * 4",
        "a ** b",
        "an open `tick",
        "an open **star",
        "[not](a link)",
        "[x] done",
        "#hashtag",
        "-5 degrees",
        "1.5 times",
        "<promise>COMPLETE</promise>",
        "**",
        "a || b",
        "__init__.py is a file_",
    ] {
        assert_eq!(words(line, 80), [line]);
    }
    assert_eq!(words(r"\*kept\* and \`this\`", 80), ["*kept* and `this`"]);
}

#[test]
fn code_has_a_gutter_and_is_not_read() {
    let text = "Look:\n```rust\nlet **a** = 1;\n\n| x | y |\n```\nDone.";
    assert_eq!(words(text, 80), ["Look:", "▏ rust", "▏ let **a** = 1;", "▏", "▏ | x | y |", "Done."]);
    assert_eq!(words("~~~\n```\n~~~\nx", 80), ["▏ ```", "x"]);
}

#[test]
fn differences_are_coloured_in_a_fence_and_outside() {
    let lines = rendered("```diff\n-old\n+new\nodd\n+more\n```\n- item", 80);
    let inks: Vec<String> = lines.iter().map(|line| line.painted(Palette::Colour).replace('\u{1b}', "^")).collect();
    assert!(
        inks[1].contains("^[31m-old") && inks[2].contains("^[32m+new") && inks[4].contains("^[32m+more"),
        "{inks:?}"
    );
    assert!(inks[5].contains("• "), "a list after it is a list: {inks:?}");
}

#[test]
fn tables_line_up_and_break_inside_their_cells() {
    let text =
        "| name | what it does | n |\n|---|:--|--:|\n| `a` | short | 1 |\n| bb | rather long words here | 22 |\nend";
    let wide = ["name │ what it does           │  n", "─".repeat(34).as_str(), "a    │ short                  │  1"]
        .map(str::to_owned);
    assert_eq!(words(text, 80)[..3], wide);
    assert_eq!(words(text, 80)[3..], ["bb   │ rather long words here │ 22", "end"]);
    let narrow = words(text, 24);
    assert!(narrow.iter().all(|line| crate::ui::text::width(line) <= 24), "{narrow:#?}");
    assert!(narrow.contains(&"     │ words here   │".to_owned()), "{narrow:#?}");
    let hopeless = "| a | b | c | d |\n|-|-|-|-|\n| 123456789 | 123456789 | 123456789 | 123456789 |";
    assert_eq!(words(hopeless, 24)[0], "| a | b | c | d |", "no room: as it was written");
}

#[test]
fn a_table_that_somebody_waits_for_is_shown_and_goes_on_with_its_columns() {
    let mut markdown = Markdown::new(Glyphs::UNICODE);
    let mut out = Vec::new();
    for line in ["| name | n |", "|---|---|", "| a | 1 |"] {
        markdown.line(line, 80, &mut out);
    }
    assert!(out.is_empty(), "held until its columns are known");
    markdown.pause(80, &mut out);
    markdown.line("| bb | 2 |", 80, &mut out);
    let shown: Vec<&str> = out.iter().map(|line| line.text().trim_end()).collect();
    assert_eq!(shown, ["name │ n", "────────", "a    │ 1", "bb   │ 2"]);
}

#[test]
fn a_hostile_line_costs_little() {
    let start = std::time::Instant::now();
    for line in ["*a".repeat(2000), "[".repeat(4000), "`".repeat(3999) + " x", "_*~`[".repeat(800), "**a ".repeat(1000)]
    {
        let _ = rendered(&line, 80);
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
}

proptest::proptest! {
    /// Whatever comes, every letter of it is shown, in its order.
    #[test]
    fn no_letter_gets_lost(lines in proptest::collection::vec(r"[a-z*_`~\[\]()|#>\\ -]{0,40}", 0..12)) {
        let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
        let text = lines.join("\n");
        let shown: String = rendered(&text, 30).iter().flat_map(|line| line.split(30)).map(|row| letters(row.text())).collect();
        let mut wanted: Vec<char> = letters(&text).chars().collect();
        let mut found: Vec<char> = shown.chars().collect();
        // Cells that break into rows change the order within a table.
        wanted.sort_unstable();
        found.sort_unstable();
        proptest::prop_assert_eq!(found, wanted);
    }
}
