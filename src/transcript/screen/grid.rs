//! The rows of a small terminal: what is where, which of it is final, and what has left it.
//!
//! `vt100`, which shows the agent's screen to people (`ui/tui`), cannot take its place. It has no hook for the moves and
//! erasures by which a line becomes final. Measured on 4 MB of frames and 11 MB of lines it takes 1.8 to 2.6 times as long,
//! before any of that is added. And it drops U+FFFD, ignores CSI s and u, ESC D and E, and puts blank rows on top of a
//! screen that becomes taller, which would come out as lines.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use unicode_width::UnicodeWidthChar as _;

/// The second half of a wide character.
const HALF: char = '\0';
/// A line is handed on in parts of this size.
const LONGEST_LINE: usize = 1024 * 1024;
/// This many lines are known again when a program draws everything again.
const MOST_KNOWN: usize = 5000;
const TAB: usize = 8;

#[derive(Clone, Debug, Default)]
struct GridRow {
    cells: Vec<char>,
    /// Marks over a character, by its place.
    marks: Vec<(usize, char)>,
    /// It continues in the next row.
    wrapped: bool,
    /// It was handed on as it is.
    given: bool,
}

impl GridRow {
    fn text(&self) -> String {
        let mut text = String::with_capacity(self.cells.len());
        for (at, &cell) in self.cells.iter().enumerate() {
            if cell != HALF {
                text.push(cell);
            }
            text.extend(self.marks.iter().filter(|(place, _)| *place == at).map(|(_, mark)| mark));
        }
        if !self.wrapped {
            text.truncate(text.trim_end().len());
        }
        text
    }

    fn is_blank(&self) -> bool {
        self.cells.iter().all(|&cell| cell == ' ')
    }

    fn put(&mut self, at: usize, cell: char) {
        if self.cells.len() <= at {
            self.cells.resize(at + 1, ' ');
        }
        if self.cells[at] != cell {
            self.given = false;
        }
        self.cells[at] = cell;
        self.marks.retain(|(place, _)| *place != at);
    }

    fn clear(&mut self, from: usize, to: usize) {
        for at in from..to.min(self.cells.len()) {
            self.put(at, ' ');
        }
        if to >= self.cells.len() {
            self.wrapped = false;
        }
    }
}

/// Where something is written.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    row: usize,
    column: usize,
    /// The row is full; the next character goes to the next row.
    full: bool,
}

pub(super) struct Grid {
    rows: VecDeque<GridRow>,
    height: usize,
    columns: usize,
    cursor: Cursor,
    saved: Cursor,
    /// The rows that scroll: from, and up to without.
    region: (usize, usize),
    /// The furthest that the program has gone up.
    reach: usize,
    /// The screen below the second one, while that is shown.
    below: Option<(VecDeque<GridRow>, Cursor)>,
    /// What was wiped off the second screen since something was drawn there: many programs tidy up before they leave it.
    tidied: VecDeque<GridRow>,
    /// Lines that are final.
    pub lines: Vec<String>,
    /// A line whose first rows have left the screen.
    unfinished: String,
    hasher: RandomState,
    /// What was handed on, for a program that draws everything again.
    known: Vec<u64>,
    /// Where it is in that, and where that ends.
    again: Option<(usize, usize)>,
}

impl Grid {
    pub(crate) fn new(height: usize, columns: usize) -> Self {
        Self {
            rows: std::iter::repeat_n(GridRow::default(), height).collect(),
            height,
            columns,
            cursor: Cursor::default(),
            saved: Cursor::default(),
            region: (0, height),
            reach: 0,
            below: None,
            tidied: VecDeque::new(),
            lines: Vec::new(),
            unfinished: String::new(),
            hasher: RandomState::new(),
            known: Vec::new(),
            again: None,
        }
    }

    pub(crate) fn resize(&mut self, height: usize, columns: usize) {
        while self.rows.len() > height && self.cursor.row > 0 {
            self.leave();
            self.cursor.row -= 1;
        }
        self.rows.resize_with(height, GridRow::default);
        // What does not fit any more is drawn again, or it is gone.
        self.rows.iter_mut().for_each(|row| row.cells.truncate(columns));
        (self.height, self.columns, self.region) = (height, columns, (0, height));
        self.move_to(self.cursor.row, self.cursor.column);
    }

    /// Hands on the rows that are final: the program has never gone up that far.
    fn settle(&mut self) {
        if self.below.is_some() || self.reach >= self.height {
            return;
        }
        // A line of several rows is final when its last row is.
        let mut end = self.cursor.row.saturating_sub(self.reach);
        while end > 0 && self.rows[end - 1].wrapped {
            end -= 1;
        }
        for at in 0..end {
            self.give(at);
        }
    }

    /// The program has ended: everything is final.
    pub(crate) fn finish(&mut self) {
        self.leave_second_screen();
        self.give_all();
    }

    /// The rows down to the last that has something.
    fn written(&self) -> usize {
        self.rows.iter().rposition(|row| !row.text().is_empty()).map_or(0, |last| last + 1)
    }

    fn give_all(&mut self) {
        for at in 0..self.written() {
            self.give(at);
        }
        self.end_line();
    }

    fn give(&mut self, at: usize) {
        if std::mem::replace(&mut self.rows[at].given, true) {
            return;
        }
        let text = self.rows[at].text();
        self.unfinished.push_str(&text);
        if !self.rows[at].wrapped || self.unfinished.len() > LONGEST_LINE {
            let line = std::mem::take(&mut self.unfinished);
            self.hand_on(line);
        }
    }

    fn end_line(&mut self) {
        if !self.unfinished.is_empty() {
            let line = std::mem::take(&mut self.unfinished);
            self.hand_on(line);
        }
    }

    /// A program that has wiped everything away draws it once more: what was handed on is not handed on again.
    fn hand_on(&mut self, line: String) {
        let hash = self.hasher.hash_one(&line);
        if let Some((at, end)) = self.again {
            // Some of it may be left out this time, or look different.
            if let Some(found) = self.known[at..end].iter().position(|known| *known == hash) {
                self.again = Some((at + found + 1, end));
                return;
            }
        }
        if self.known.len() < MOST_KNOWN {
            self.known.push(hash);
        }
        self.lines.push(line);
    }

    /// Everything is going to be wiped away.
    fn wiped(&mut self) {
        if self.below.is_some() {
            (0..self.height).for_each(|row| self.tidy(row));
            return;
        }
        self.again = Some((0, self.known.len()));
        self.unfinished.clear();
    }

    /// A row, or some of it, is going to be wiped away.
    fn tidy(&mut self, row: usize) {
        if self.below.is_none() || self.rows[row].is_blank() {
            return;
        }
        self.tidied.resize_with(self.height, GridRow::default);
        if self.tidied[row].is_blank() {
            self.tidied[row].clone_from(&self.rows[row]);
        }
    }

    /// The first row leaves the screen.
    fn leave(&mut self) {
        if self.below.is_none() {
            self.give(0);
        }
        self.rows.pop_front();
    }

    fn leave_second_screen(&mut self) {
        let Some((rows, cursor)) = self.below.take() else { return };
        // What it showed last is all that a reader will ever know of it.
        let tidied = std::mem::take(&mut self.tidied);
        if self.written() == 0 && !tidied.is_empty() {
            self.rows = tidied;
        }
        self.give_all();
        self.rows = rows;
        self.rows.resize_with(self.height, GridRow::default);
        self.move_to(cursor.row, cursor.column);
    }

    fn scroll_up(&mut self, count: usize) {
        let (top, bottom) = self.region;
        for _ in 0..count.min(self.height) {
            if top == 0 {
                self.leave();
            } else {
                self.rows.remove(top);
            }
            self.rows.insert(bottom - 1, GridRow::default());
        }
    }

    fn scroll_down(&mut self, count: usize) {
        let (top, bottom) = self.region;
        for _ in 0..count.min(self.height) {
            self.rows.remove(bottom - 1);
            self.rows.insert(top, GridRow::default());
        }
    }

    fn line_feed(&mut self) {
        self.cursor.full = false;
        if self.cursor.row + 1 == self.region.1 {
            self.scroll_up(1);
        } else if self.cursor.row + 1 < self.height {
            self.cursor.row += 1;
        }
    }

    fn move_to(&mut self, row: usize, column: usize) {
        let row = row.min(self.height - 1);
        if self.below.is_none() {
            self.reach = self.reach.max(self.cursor.row.saturating_sub(row));
        }
        self.cursor = Cursor { row, column: column.min(self.columns - 1), full: false };
    }

    fn up(&mut self, count: usize) {
        self.move_to(self.cursor.row.saturating_sub(count), self.cursor.column);
    }

    fn erase_display(&mut self, how: u16) {
        let Cursor { row, column, .. } = self.cursor;
        let columns = self.columns;
        match how {
            0 => {
                if (row, column) == (0, 0) {
                    self.wiped();
                }
                (row..self.height).for_each(|row| self.tidy(row));
                self.rows[row].clear(column, columns);
                self.rows.iter_mut().skip(row + 1).for_each(|row| row.clear(0, columns));
            }
            1 => {
                (0..=row).for_each(|row| self.tidy(row));
                self.rows.iter_mut().take(row).for_each(|row| row.clear(0, columns));
                self.rows[row].clear(0, column + 1);
            }
            2 => {
                self.wiped();
                self.rows.iter_mut().for_each(|row| row.clear(0, columns));
            }
            _ => self.wiped(),
        }
    }

    fn erase_line(&mut self, how: u16) {
        let Cursor { row, column, .. } = self.cursor;
        let (from, to) = match how {
            0 => (column, self.columns),
            1 => (0, column + 1),
            _ => (0, self.columns),
        };
        self.tidy(row);
        self.rows[row].clear(from, to);
    }

    fn second_screen(&mut self, on: bool) {
        if !on {
            return self.leave_second_screen();
        }
        if self.below.is_none() {
            self.settle();
            let blank = std::iter::repeat_n(GridRow::default(), self.height).collect();
            self.below = Some((std::mem::replace(&mut self.rows, blank), self.cursor));
            self.cursor = Cursor::default();
        }
    }

    fn insert_or_delete_rows(&mut self, scroll: fn(&mut Self, usize), count: usize) {
        let region = self.region;
        if (region.0..region.1).contains(&self.cursor.row) {
            // Rows that are taken out here do not leave at the top.
            self.region.0 = self.cursor.row.max(1);
            scroll(self, count);
            self.region = region;
        }
    }
}

impl vte::Perform for Grid {
    fn print(&mut self, character: char) {
        let width = character.width().unwrap_or(0);
        if width == 0 {
            let at = self.cursor.column.saturating_sub(usize::from(!self.cursor.full));
            self.rows[self.cursor.row].marks.push((at, character));
            return;
        }
        if self.cursor.full || self.cursor.column + width > self.columns {
            self.rows[self.cursor.row].wrapped = true;
            self.line_feed();
            self.cursor.column = 0;
        }
        if character != ' ' {
            self.tidied.clear();
        }
        let Cursor { row, column, .. } = self.cursor;
        self.rows[row].put(column, character);
        if width == 2 && column + 1 < self.columns {
            self.rows[row].put(column + 1, HALF);
        }
        self.cursor.full = column + width >= self.columns;
        self.cursor.column = (column + width).min(self.columns - 1);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            // The agent's terminal is raw, and changes no line end: a tool that knows nothing of it means both by one.
            b'\n' | 0x0b | 0x0c => {
                self.line_feed();
                self.cursor.column = 0;
                self.settle();
            }
            b'\r' => (self.cursor.column, self.cursor.full) = (0, false),
            0x08 => (self.cursor.column, self.cursor.full) = (self.cursor.column.saturating_sub(1), false),
            b'\t' => self.cursor.column = ((self.cursor.column / TAB + 1) * TAB).min(self.columns - 1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &vte::Params, signs: &[u8], _ignore: bool, action: char) {
        let number = |at: usize| params.iter().nth(at).and_then(|param| param.first().copied()).unwrap_or(0);
        let count = usize::from(number(0).max(1));
        let Cursor { row, column, .. } = self.cursor;
        match (signs, action) {
            (b"?", 'h' | 'l') if params.iter().any(|param| matches!(param, [47 | 1047 | 1049])) => {
                self.second_screen(action == 'h');
            }
            ([], 'A') => self.up(count),
            ([], 'B' | 'e') => self.move_to(row + count, column),
            ([], 'C' | 'a') => self.move_to(row, column + count),
            ([], 'D') => self.move_to(row, column.saturating_sub(count)),
            ([], 'E') => self.move_to(row + count, 0),
            ([], 'F') => self.move_to(row.saturating_sub(count), 0),
            ([], 'G' | '`') => self.move_to(row, count - 1),
            ([], 'H' | 'f') => self.move_to(count - 1, usize::from(number(1).max(1)) - 1),
            ([], 'd') => self.move_to(count - 1, column),
            ([], 'J') => self.erase_display(number(0)),
            ([], 'K') => self.erase_line(number(0)),
            ([], 'L') => self.insert_or_delete_rows(Self::scroll_down, count),
            ([], 'M') => self.insert_or_delete_rows(Self::scroll_up, count),
            ([], 'S') => self.scroll_up(count),
            ([], 'T') => self.scroll_down(count),
            ([], 'X') => self.rows[row].clear(column, column + count),
            ([], 'P') => {
                let cells = &mut self.rows[row].cells;
                let end = (column + count).min(cells.len());
                cells.drain(column.min(end)..end);
                self.rows[row].given = false;
            }
            ([], '@') => {
                let blanks = count.min(self.columns - column);
                let cells = &mut self.rows[row].cells;
                let at = column.min(cells.len());
                cells.splice(at..at, std::iter::repeat_n(' ', blanks));
                cells.truncate(self.columns);
                self.rows[row].given = false;
            }
            ([], 'r') => {
                let bottom = match usize::from(number(1)) {
                    0 => self.height,
                    bottom => bottom.min(self.height),
                };
                self.region = if count < bottom { (count - 1, bottom) } else { (0, self.height) };
                self.move_to(0, 0);
            }
            ([], 's') => self.saved = self.cursor,
            ([], 'u') => self.move_to(self.saved.row, self.saved.column),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, signs: &[u8], _ignore: bool, byte: u8) {
        match (signs, byte) {
            ([], b'7') => self.saved = self.cursor,
            ([], b'8') => self.move_to(self.saved.row, self.saved.column),
            ([], b'D') => self.line_feed(),
            ([], b'E') => {
                self.line_feed();
                self.cursor.column = 0;
            }
            ([], b'M') if self.cursor.row == self.region.0 => self.scroll_down(1),
            ([], b'M') => self.up(1),
            ([], b'c') => {
                self.erase_display(2);
                self.move_to(0, 0);
            }
            _ => {}
        }
    }
}
