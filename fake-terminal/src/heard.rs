//! What a program tells a terminal beside what it prints, and what it asks it.

use std::fmt::Write as _;

/// What the program printed and asked the terminal.
#[derive(Debug, Default)]
pub struct Heard {
    /// What was put on the clipboard, as it came: base64.
    pub copied: Vec<Vec<u8>>,
    /// What else a terminal would have done, by name.
    pub others: Vec<&'static str>,
    answers: String,
}

impl Heard {
    /// What has to be answered by now.
    pub(crate) fn answers(&mut self) -> String {
        std::mem::take(&mut self.answers)
    }
}

impl vt100::Callbacks for Heard {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.others.push("bell");
    }

    fn resize(&mut self, _: &mut vt100::Screen, _: (u16, u16)) {
        self.others.push("resize");
    }

    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.others.push("icon");
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.others.push("title");
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.copied.push(data.to_vec());
    }

    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.others.push("paste");
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        sign: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        kind: char,
    ) {
        match (sign, params, kind) {
            // Where is the cursor?
            (None, [[6]], 'n') => {
                let (row, column) = screen.cursor_position();
                let _ = write!(self.answers, "\x1b[{};{}R", row + 1, column + 1);
            }
            // What are you? One of the oldest.
            (None, [] | [[0]], 'c') => self.answers.push_str("\x1b[?6c"),
            _ => {}
        }
    }
}
