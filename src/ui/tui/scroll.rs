//! Where a pane is, and how it moves: by rows over pages, of which only those in sight are ever asked for.

use std::ops::Range;

use super::rows::Row;

/// Something that is shown row by row. Rows are gathered in pages, which may be many.
pub(crate) trait Pages {
    fn pages(&self) -> Range<usize>;

    /// How many rows a page has.
    fn count(&mut self, page: usize) -> usize;

    fn row(&mut self, page: usize, row: usize) -> Row;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub page: usize,
    pub row: usize,
}

/// The place of a pane in what it shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scroll {
    /// The first row in sight.
    pub top: Place,
    /// The row that is pointed at.
    pub cursor: Place,
    /// How many rows are in sight.
    pub height: usize,
}

impl Scroll {
    /// Moves the cursor by rows; the window follows.
    pub(crate) fn step(&mut self, pages: &mut dyn Pages, rows: isize) {
        self.cursor = walk(pages, self.cursor, rows);
        self.show(pages);
    }

    /// Moves the window by rows; the cursor stays in it.
    pub(crate) fn roll(&mut self, pages: &mut dyn Pages, rows: isize) {
        self.top = walk(pages, self.top, rows);
        self.fill(pages);
        let last = walk(pages, self.top, reach(self.height));
        self.cursor = self.cursor.clamp(self.top, last);
    }

    /// Goes to the first row.
    pub(crate) fn first(&mut self, pages: &mut dyn Pages) {
        self.cursor = Place { page: pages.pages().start, row: 0 };
        self.show(pages);
    }

    /// Goes to the last row.
    pub(crate) fn last(&mut self, pages: &mut dyn Pages) {
        self.cursor = end(pages);
        self.show(pages);
    }

    /// Goes to a place, with some rows before it in sight.
    pub(crate) fn go(&mut self, pages: &mut dyn Pages, place: Place) {
        self.cursor = place;
        self.top = walk(pages, place, -reach(self.height / 3 + 1));
        self.show(pages);
    }

    /// The places in sight, the cursor among them.
    pub(crate) fn in_sight(&mut self, pages: &mut dyn Pages) -> Vec<Place> {
        self.show(pages);
        self.window(pages)
    }

    /// The places in sight, wherever the cursor is.
    pub(crate) fn window(&mut self, pages: &mut dyn Pages) -> Vec<Place> {
        self.top = valid(pages, self.top);
        self.fill(pages);
        let mut places = Vec::with_capacity(self.height);
        let mut place = self.top;
        while places.len() < self.height && place.row < pages.count(place.page) {
            places.push(place);
            let next = walk(pages, place, 1);
            if next == place {
                break;
            }
            place = next;
        }
        places
    }

    /// Puts cursor and window where there are rows, and the cursor into the window.
    pub(crate) fn show(&mut self, pages: &mut dyn Pages) {
        self.cursor = valid(pages, self.cursor);
        self.top = valid(pages, self.top);
        if self.cursor < self.top {
            self.top = self.cursor;
        }
        let earliest = walk(pages, self.cursor, -reach(self.height));
        self.top = self.top.max(earliest);
        self.fill(pages);
    }

    /// No empty rows at the bottom while there are rows above.
    fn fill(&mut self, pages: &mut dyn Pages) {
        let last = end(pages);
        let latest = walk(pages, last, -reach(self.height));
        self.top = self.top.min(latest);
    }
}

fn reach(rows: usize) -> isize {
    isize::try_from(rows.saturating_sub(1)).unwrap_or(0)
}

fn end(pages: &mut dyn Pages) -> Place {
    let range = pages.pages();
    for page in range.clone().rev() {
        let count = pages.count(page);
        if count > 0 {
            return Place { page, row: count - 1 };
        }
    }
    Place { page: range.start, row: 0 }
}

/// The nearest place that there is.
fn valid(pages: &mut dyn Pages, place: Place) -> Place {
    let range = pages.pages();
    if place.page < range.start {
        return Place { page: range.start, row: 0 };
    }
    if place.page >= range.end {
        return end(pages);
    }
    Place { row: place.row.min(pages.count(place.page).saturating_sub(1)), ..place }
}

/// This many rows on, or back; as far as there are rows.
fn walk(pages: &mut dyn Pages, from: Place, rows: isize) -> Place {
    let range = pages.pages();
    let mut place = from;
    let mut left = rows.unsigned_abs();
    while left > 0 {
        if rows > 0 {
            let after = pages.count(place.page).saturating_sub(place.row + 1);
            if after >= left {
                place.row += left;
                break;
            }
            let Some(next) = (place.page + 1..range.end).find(|&page| pages.count(page) > 0) else {
                place.row += after;
                break;
            };
            left -= after + 1;
            place = Place { page: next, row: 0 };
        } else {
            if place.row >= left {
                place.row -= left;
                break;
            }
            let Some(next) = (range.start..place.page).rev().find(|&page| pages.count(page) > 0) else {
                place.row = 0;
                break;
            };
            left -= place.row + 1;
            place = Place { page: next, row: pages.count(next) - 1 };
        }
    }
    place
}

/// Rows that are all there: a single page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing(pub Vec<Row>);

impl Pages for Listing {
    fn pages(&self) -> Range<usize> {
        0..1
    }

    fn count(&mut self, _: usize) -> usize {
        self.0.len()
    }

    fn row(&mut self, _: usize, row: usize) -> Row {
        self.0.get(row).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of different lengths, one of them empty.
    struct Some(Vec<usize>);

    impl Pages for Some {
        fn pages(&self) -> Range<usize> {
            0..self.0.len()
        }

        fn count(&mut self, page: usize) -> usize {
            self.0[page]
        }

        fn row(&mut self, _: usize, _: usize) -> Row {
            Row::default()
        }
    }

    fn place(page: usize, row: usize) -> Place {
        Place { page, row }
    }

    #[test]
    fn steps_cross_pages_and_stop_at_the_ends() {
        let mut pages = Some(vec![3, 0, 2, 4]);
        let mut scroll = Scroll { height: 4, ..Scroll::default() };
        scroll.step(&mut pages, 4);
        assert_eq!((scroll.cursor, scroll.top), (place(2, 1), place(0, 1)));
        scroll.step(&mut pages, 100);
        assert_eq!((scroll.cursor, scroll.top), (place(3, 3), place(3, 0)));
        scroll.step(&mut pages, -5);
        assert_eq!((scroll.cursor, scroll.top), (place(2, 0), place(2, 0)));
        scroll.step(&mut pages, -100);
        assert_eq!((scroll.cursor, scroll.top), (place(0, 0), place(0, 0)));
        assert_eq!(scroll.in_sight(&mut pages), [place(0, 0), place(0, 1), place(0, 2), place(2, 0)]);
    }

    #[test]
    fn rolling_takes_the_cursor_along_only_where_it_must() {
        let mut pages = Some(vec![10]);
        let mut scroll = Scroll { height: 4, ..Scroll::default() };
        scroll.step(&mut pages, 2);
        scroll.roll(&mut pages, 1);
        assert_eq!((scroll.top.row, scroll.cursor.row), (1, 2));
        scroll.roll(&mut pages, 3);
        assert_eq!((scroll.top.row, scroll.cursor.row), (4, 4));
        scroll.roll(&mut pages, 50);
        assert_eq!((scroll.top.row, scroll.cursor.row), (6, 6));
    }

    #[test]
    fn what_shrinks_leaves_no_empty_window() {
        let mut pages = Some(vec![100]);
        let mut scroll = Scroll { height: 10, ..Scroll::default() };
        scroll.last(&mut pages);
        pages.0[0] = 12;
        scroll.show(&mut pages);
        assert_eq!((scroll.top.row, scroll.cursor.row), (2, 11));
        let mut nothing = Some(vec![0]);
        scroll.show(&mut nothing);
        assert_eq!(scroll.in_sight(&mut nothing), []);
    }
}
