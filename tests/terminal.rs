//! Nothing that an agent prints is obeyed by the user's terminal, in no view.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use fake_agent::says;
use serde_json::json;
use support::Test;

/// What attacks on terminals are made of.
const HOSTILE: &[&str] = &[
    "\u{1b}]0;owned\u{7}",
    "\u{1b}]2;owned\u{1b}\\",
    "\u{1b}]52;c;b3duZWQ=\u{7}",
    "\u{1b}]52;c;?\u{7}",
    "\u{1b}]8;;http://evil.example\u{1b}\\click\u{1b}]8;;\u{1b}\\",
    "\u{1b}]1337;File=name=x:AAAA\u{7}",
    "\u{1b}]777;notify;a;b\u{7}",
    "\u{1b}[2J\u{1b}[H",
    "\u{1b}[1A\u{1b}[2K",
    "\u{1b}[99;99H",
    "\u{1b}[6n",
    "\u{1b}[c",
    "\u{1b}[>c",
    "\u{1b}[?1049h",
    "\u{1b}[?25l",
    "\u{1b}[?2004h",
    "\u{1b}[8;10;10t",
    "\u{1b}[21t",
    "\u{1b}P$q\"p\u{1b}\\",
    "\u{1b}_Gf=100;AAAA\u{1b}\\",
    "\u{1b}^private\u{1b}\\",
    "\u{1b}c",
    "\u{1b}#8",
    "\u{1b}(0",
    "\u{1b}[31;1mred",
    "\u{1b}[38;2;1;2;3m",
    "\u{9b}2J",
    "\u{9d}0;owned\u{9c}",
    "\u{90}x\u{9c}",
    "\u{7}\u{8}\u{8}\u{8}",
    "over\rwritten",
    "\u{b}\u{c}\u{e}\u{f}",
    "\u{202e}gnp.exe\u{202c}",
    "\u{2066}\u{2067}\u{2068}\u{2069}",
    "\u{200e}\u{200f}",
    "\u{7f}\u{0}",
    "\u{85}\u{2028}\u{2029}",
];

#[derive(Default)]
struct Obeyed(Vec<String>);

impl vt100::Callbacks for Obeyed {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("bell".into());
    }
    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("visual bell".into());
    }
    fn resize(&mut self, _: &mut vt100::Screen, _: (u16, u16)) {
        self.0.push("resize".into());
    }
    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("icon".into());
    }
    fn set_window_title(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("title".into());
    }
    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], _: &[u8]) {
        self.0.push("clipboard".into());
    }
    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("paste".into());
    }
}

fn size(number: u16) -> std::num::NonZeroU16 {
    std::num::NonZeroU16::new(number).unwrap()
}

/// Plays what was shown to a terminal, and looks whether it did anything but print.
#[track_caller]
fn is_safe(view: &str, shown: &[u8]) {
    let mut parser = vt100::Parser::new_with_callbacks(size(1500), size(5000), 0, Obeyed::default());
    let text = String::from_utf8(shown.to_vec()).unwrap_or_else(|error| panic!("{view}: not UTF-8: {error}"));
    parser.process(text.replace('\n', "\r\n").as_bytes());
    assert!(parser.callbacks().0.is_empty(), "{view}: the terminal obeyed: {:?}", parser.callbacks().0);
    let screen = parser.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste(), "{view}");
    let (row, _) = screen.cursor_position();
    // The lines of a page are longer than any terminal.
    if !view.contains("html") {
        assert_eq!(usize::from(row), text.matches('\n').count(), "{view}: the cursor was moved");
    }
    // Colours of ralph's own are the only sequences.
    for part in text.split('\u{1b}').skip(1) {
        let end = part.find(|character: char| character.is_ascii_alphabetic()).unwrap();
        let sequence = &part[..=end];
        let is_colour = sequence.starts_with('[') && sequence.ends_with('m');
        assert!(is_colour && sequence.len() <= 4, "{view}: {sequence:?}");
    }
    let bad = |character: char| {
        (character.is_control() && !"\n\u{1b}".contains(character))
            || "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{2028}\u{2029}"
                .contains(character)
    };
    assert_eq!(text.find(bad), None, "{view}");
}

#[test]
fn no_sequence_of_an_agent_reaches_the_terminal() {
    for transcript in ["plain", "rtf1"] {
        let all = HOSTILE.join(" and ");
        let mut iteration = says("Begin.").complains(&all).thinks(&all);
        for hostile in HOSTILE {
            iteration = iteration.prints_raw(format!("{hostile} middle {hostile}\n"));
        }
        iteration = iteration.runs_tool(all.clone(), json!({"command": all})).printing(&all);
        iteration = iteration.says(format!("{all}\n<promise>COMPLETE</promise>"));
        let script = fake_agent::Script::new().iteration(iteration);
        let script = if transcript == "rtf1" { script.dialect(fake_agent::Dialect::Rtf1) } else { script };
        let args = ["--transcript", transcript, "--color", "always", "-n", "1"];
        let ran =
            Test::new().prompt(&format!("Do {}", HOSTILE[2])).agent(script.model(&all).session(&all)).args(&args).run();
        is_safe("run", &ran.output.stdout);
        is_safe("stderr of run", &ran.output.stderr);
        let views: &[&[&str]] = &[
            &["logs", "--color", "always"],
            &["show", "--color", "always"],
            &["show", "--markdown"],
            &["replay", "--color", "always"],
            &["replay", "--with-adapter", "--color", "always"],
            &["replay", "--output", "json"],
            &["runs"],
            &["runs", "--json"],
            &["show", "--json"],
            &["stats"],
            &["stats", "--csv"],
            &["export", "--to", "html"],
            &["export", "--to", "jsonl"],
            &["export", "--to", "otlp"],
        ];
        for args in views {
            let output = ran.test.tool().args(*args).output().unwrap();
            assert!(output.status.success(), "{args:?}: {output:?}");
            is_safe(&args.join(" "), &output.stdout);
        }
    }
}
