//! What an iteration said and did, page by page. Only pages in sight, and a few around them, are in memory.

use std::collections::HashMap;
use std::ops::Range;

use jiff::Timestamp;

use super::block::{Blocks, Kind};
use super::block_rows::{self, Fold, Folding};
use super::index::Index;
use super::rows::Row;
use super::scroll::{Pages, Place, Scroll};
use super::search::{Direction, Query};
use super::theme::Theme;
use crate::journal::Record;

/// This many pages are kept.
const MOST_PAGES: usize = 24;
/// This many blocks may be opened or closed by hand.
const MOST_TOGGLED: usize = 4096;

/// The pages that were read, and how they are shown.
#[derive(Debug)]
pub(crate) struct Transcript {
    read: HashMap<usize, Page>,
    /// The pages that were used, the newest last.
    used: Vec<usize>,
    columns: usize,
    folding: Folding,
    /// Blocks that someone opened or closed: by the page's offset and the block's number.
    toggled: HashMap<(u64, usize), Fold>,
    /// Counts changes of width and folding.
    version: u64,
    /// The time, while the newest entry is being worked on: tools that run there show it.
    pub now: Option<Timestamp>,
}

/// A page that was read.
#[derive(Debug, Default)]
struct Page {
    from: u64,
    /// It was read up to here.
    to: u64,
    blocks: Blocks,
    /// The rows of each block.
    rows: Vec<Vec<Row>>,
    /// The number of the first row of each block.
    starts: Vec<usize>,
    count: usize,
    version: u64,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self {
            read: HashMap::new(),
            used: Vec::new(),
            columns: 80,
            folding: Folding::default(),
            toggled: HashMap::new(),
            version: 1,
            now: None,
        }
    }

    /// The pages of an entry, as they are shown.
    pub(crate) fn of<'a>(&'a mut self, index: &'a Index, theme: &'a Theme, entry: usize) -> Entry<'a> {
        Entry { pages: index.pages_of(entry), transcript: self, index, theme }
    }
}

/// The transcript of one entry.
pub(crate) struct Entry<'a> {
    transcript: &'a mut Transcript,
    index: &'a Index,
    theme: &'a Theme,
    pages: Range<usize>,
}

impl Entry<'_> {
    /// Shows it in this many columns. What the cursor pointed at stays where it is.
    pub(crate) fn widen(&mut self, columns: usize, scroll: &mut Scroll) {
        if self.transcript.columns != columns {
            self.keep(scroll, |transcript| transcript.columns = columns);
        }
    }

    /// Opens or closes the block at the cursor.
    pub(crate) fn toggle(&mut self, scroll: &mut Scroll) {
        let place = scroll.cursor;
        let (Some(block), page) = (self.block_at(place), place.page) else { return };
        let folding = self.transcript.folding;
        let Some(read) = self.transcript.read.get(&page) else { return };
        let key = (read.from, block);
        let now = self.transcript.toggled.get(&key).copied();
        let now = now.unwrap_or_else(|| folding.of(&read.blocks.all[block].kind));
        if self.transcript.toggled.len() >= MOST_TOGGLED {
            self.transcript.toggled.clear();
        }
        self.keep(scroll, |transcript| {
            transcript.toggled.insert(key, now.toggled());
        });
    }

    /// Folds differently from now on.
    pub(crate) fn fold(&mut self, scroll: &mut Scroll, change: impl FnOnce(&mut Folding)) {
        self.keep(scroll, |transcript| {
            change(&mut transcript.folding);
            transcript.toggled.clear();
        });
    }

    /// Opens a block, so that all of it can be seen.
    pub(crate) fn open(&mut self, page: usize, block: usize) {
        self.load(page);
        if let Some(read) = self.transcript.read.get_mut(&page) {
            self.transcript.toggled.insert((read.from, block), Fold::Open);
            read.version = 0;
        }
    }

    /// Changes how rows are laid out, and finds the cursor's and the window's block again.
    fn keep(&mut self, scroll: &mut Scroll, change: impl FnOnce(&mut Transcript)) {
        let places = [scroll.cursor, scroll.top].map(|place| (place, self.block_at(place)));
        let below = self.distance(scroll.top, scroll.cursor, scroll.height);
        change(self.transcript);
        self.transcript.version += 1;
        let [cursor, top] = places.map(|(place, block)| match block {
            Some(block) => self.place_of(place.page, block),
            None => place,
        });
        (scroll.cursor, scroll.top) = (cursor, top);
        let now = self.distance(scroll.top, scroll.cursor, scroll.height);
        // The block stays on its row of the screen where it can.
        if now != below {
            scroll.top = scroll.cursor;
            let mut probe = Scroll { cursor: scroll.cursor, top: scroll.cursor, height: 1 };
            probe.step(self, -isize::try_from(below).unwrap_or(0));
            scroll.top = probe.cursor;
        }
        scroll.show(self);
    }

    fn distance(&mut self, from: Place, to: Place, most: usize) -> usize {
        let mut probe = Scroll { cursor: from, top: from, height: 1 };
        (0..most)
            .find(|_| {
                let there = probe.cursor >= to;
                probe.step(self, 1);
                there
            })
            .unwrap_or(0)
    }

    /// The block at a place.
    pub(crate) fn block_at(&mut self, place: Place) -> Option<usize> {
        self.load(place.page);
        let page = self.transcript.read.get(&place.page)?;
        let block = page.starts.partition_point(|start| *start <= place.row).checked_sub(1)?;
        (place.row < page.count).then_some(block)
    }

    /// Where a block begins.
    pub(crate) fn place_of(&mut self, page: usize, block: usize) -> Place {
        self.load(page);
        let row = self.transcript.read.get(&page).and_then(|page| page.starts.get(block)).copied().unwrap_or(0);
        Place { page, row }
    }

    /// The place of a record.
    pub(crate) fn place_at(&mut self, offset: u64) -> Place {
        let page = self.index.page_at(offset);
        self.load(page);
        let block = self
            .transcript
            .read
            .get(&page)
            .map_or(0, |page| page.blocks.all.partition_point(|block| block.at <= offset).saturating_sub(1));
        self.place_of(page, block)
    }

    /// The text of the block at a place.
    pub(crate) fn text_at(&mut self, place: Place) -> Option<String> {
        let block = self.block_at(place)?;
        let page = self.transcript.read.get(&place.page)?;
        page.blocks.all.get(block).map(block_rows::text)
    }

    /// The next tool before or behind a place.
    pub(crate) fn next_tool(&mut self, place: Place, direction: Direction) -> Option<Place> {
        let here = self.block_at(place).unwrap_or(0);
        let pages: Vec<usize> = match direction {
            Direction::Forward => (place.page..self.pages.end).collect(),
            Direction::Backward => (self.pages.start..=place.page).rev().collect(),
        };
        for page in pages {
            self.load(page);
            let Some(read) = self.transcript.read.get(&page) else { continue };
            let is_tool = |block: &usize| matches!(read.blocks.all[*block].kind, Kind::Tool(_));
            let mut range = 0..read.blocks.all.len();
            let found = match (direction, page == place.page) {
                (Direction::Forward, true) => (here + 1..range.end).find(is_tool),
                (Direction::Forward, false) => range.find(is_tool),
                (Direction::Backward, true) => (0..here.min(range.end)).rev().find(is_tool),
                (Direction::Backward, false) => range.rev().find(is_tool),
            };
            if let Some(block) = found {
                return Some(self.place_of(page, block));
            }
        }
        None
    }

    /// The blocks of a page whose text has something, in order.
    pub(crate) fn blocks_with(&mut self, page: usize, mut has: impl FnMut(&str) -> bool) -> Vec<usize> {
        self.read(page);
        let Some(read) = self.transcript.read.get(&page) else { return Vec::new() };
        let all = read.blocks.all.iter().enumerate();
        all.filter(|(_, block)| has(&block_rows::text(block))).map(|(at, _)| at).collect()
    }

    /// Where something is found on a page: a block and a row of it. Blocks that hide it count as if they were open.
    pub(crate) fn hits(&mut self, page: usize, query: &Query) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        for block in self.blocks_with(page, |text| query.is_in(text)) {
            let Some(read) = self.transcript.read.get(&page) else { break };
            let fold = self.transcript.toggled.get(&(read.from, block)).copied();
            let fold = fold.unwrap_or_else(|| self.transcript.folding.of(&read.blocks.all[block].kind));
            let rows_with = |fold| -> Vec<(usize, usize)> {
                let rows = block_rows::rows(&read.blocks.all[block], fold, self.transcript.columns, self.theme, None);
                let found = rows.iter().enumerate().filter(|(_, row)| query.is_in(&row.text()));
                found.map(|(row, _)| (block, row)).collect()
            };
            let mut found = rows_with(fold);
            if found.is_empty() {
                found = rows_with(Fold::Open);
            }
            if found.is_empty() {
                found.push((block, 0));
            }
            hits.append(&mut found);
        }
        hits
    }

    /// The block at a place, and the row of it.
    pub(crate) fn row_at(&mut self, place: Place) -> (usize, usize) {
        let block = self.block_at(place).unwrap_or(0);
        let start = self.place_of(place.page, block).row;
        (block, place.row.saturating_sub(start))
    }

    /// The rows of a block, with the place of the first.
    pub(crate) fn rows_of(&mut self, page: usize, block: usize) -> (Place, Vec<Row>) {
        let place = self.place_of(page, block);
        let rows = self.transcript.read.get(&page).and_then(|page| page.rows.get(block)).cloned().unwrap_or_default();
        (place, rows)
    }

    /// Writes the text of a page.
    pub(crate) fn write(&mut self, page: usize, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        self.read(page);
        let Some(read) = self.transcript.read.get(&page) else { return Ok(()) };
        read.blocks.all.iter().try_for_each(|block| writeln!(out, "{}\n", block_rows::text(block).trim_end()))
    }

    /// Reads a page, or what is new on it.
    fn read(&mut self, number: usize) {
        let Self { transcript, index, .. } = self;
        let range = index.page(number);
        let page = transcript.read.entry(number).or_insert_with(|| Page {
            from: range.start,
            to: range.start,
            blocks: Blocks::of(&index.run().workspace),
            ..Page::default()
        });
        if page.to < range.end {
            // What cannot be read now is asked for again with the next row.
            let bytes = index.bytes(page.to..range.end).unwrap_or_default();
            let mut at = page.to;
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                if let Ok(record) = Record::read_line(line.strip_suffix(b"\n").unwrap_or(line)) {
                    page.blocks.see(&record, at);
                }
                at += line.len() as u64;
            }
            page.to = at;
        }
        if transcript.used.last() != Some(&number) {
            transcript.used.retain(|used| *used != number);
            transcript.used.push(number);
            if transcript.used.len() > MOST_PAGES {
                let oldest = transcript.used.remove(0);
                transcript.read.remove(&oldest);
            }
        }
    }

    /// Reads a page and lays out its rows.
    fn load(&mut self, number: usize) {
        self.read(number);
        let Self { transcript, theme, .. } = self;
        let Some(page) = transcript.read.get_mut(&number) else { return };
        let changed = page.blocks.take_changed();
        if page.version != transcript.version || changed.is_some() {
            let first = if page.version == transcript.version { changed.unwrap_or(0) } else { 0 };
            page.version = transcript.version;
            page.rows.truncate(first);
            for (at, block) in page.blocks.all.iter().enumerate().skip(first) {
                let fold = transcript.toggled.get(&(page.from, at)).copied();
                let fold = fold.unwrap_or_else(|| transcript.folding.of(&block.kind));
                page.rows.push(block_rows::rows(block, fold, transcript.columns, theme, None));
            }
            page.count = 0;
            page.starts.clear();
            for rows in &page.rows {
                page.starts.push(page.count);
                page.count += rows.len();
            }
        }
    }
}

impl Pages for Entry<'_> {
    fn pages(&self) -> Range<usize> {
        self.pages.clone()
    }

    fn count(&mut self, page: usize) -> usize {
        self.load(page);
        self.transcript.read.get(&page).map_or(0, |page| page.count)
    }

    fn row(&mut self, page: usize, row: usize) -> Row {
        let Some(block) = self.block_at(Place { page, row }) else { return Row::default() };
        let Some(read) = self.transcript.read.get(&page) else { return Row::default() };
        let is_newest = self.pages.end == self.index.page_count();
        if let (Kind::Tool(tool), Some(now), true) = (&read.blocks.all[block].kind, self.transcript.now, is_newest)
            && tool.call.status.is_none()
            && row == read.starts[block]
        {
            // Its time passes without a record.
            let rows =
                block_rows::rows(&read.blocks.all[block], Fold::Folded, self.transcript.columns, self.theme, Some(now));
            return rows.into_iter().next().unwrap_or_default();
        }
        read.rows[block].get(row - read.starts[block]).cloned().unwrap_or_default()
    }
}
