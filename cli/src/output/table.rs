//! Tables that fit. On a terminal columns shrink to what they can bear and then the least important ones go; without
//! a width nothing is ever cut, so that an id that is piped is a whole id.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: usize = 2;

/// Where nothing is cut, a column is as wide as its widest cell, but no wider than this for the sake of a few: what is
/// longer pushes its own row aside and no other.
const ALIGNED_MOST: usize = 48;

/// A column and what it can bear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// What stands above it.
    pub(crate) title: &'static str,
    /// Numbers stand to the right.
    pub(crate) right: bool,
    /// It shrinks down to this many cells; `None` when it must not be cut.
    pub(crate) least: Option<usize>,
    /// Who goes first when there is no room: the highest rank. Rank 0 stays.
    pub(crate) rank: u8,
}

impl Column {
    /// A column that is never cut and never goes.
    pub(crate) const fn fixed(title: &'static str) -> Self {
        Self { title, right: false, least: None, rank: 0 }
    }

    /// A column that shrinks down to `least` cells.
    pub(crate) const fn shrinking(title: &'static str, least: usize) -> Self {
        Self { title, right: false, least: Some(least), rank: 0 }
    }

    /// Aligns to the right.
    pub(crate) const fn right(mut self) -> Self {
        self.right = true;
        self
    }

    /// Lets the column go when there is no room; the highest rank goes first.
    pub(crate) const fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }
}

/// A cell: what it says, and how it is dressed once its width is settled.
pub(crate) struct Cell {
    text: String,
    style: anstyle::Style,
}

impl Cell {
    /// The same cell with another text.
    pub(crate) fn with(&self, change: impl FnOnce(&str) -> String) -> Self {
        Self { text: change(&self.text), style: self.style }
    }

    /// A cell with a style; [`anstyle::Style::new`] for none.
    pub(crate) fn styled(text: impl Into<String>, style: anstyle::Style) -> Self {
        Self { text: text.into(), style }
    }

    /// The same in at most so many cells; whole without a limit.
    fn within(&self, width: Option<usize>) -> Self {
        let text = width.map_or_else(|| self.text.clone(), |width| cut(&self.text, width));
        Self { text, style: self.style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, anstyle::Style::new())
    }
}

/// The lines of a table, its titles first, without line feeds.
pub(crate) fn lines(
    columns: &[Column],
    rows: &[Vec<Cell>],
    title: anstyle::Style,
    width: Option<usize>,
) -> Vec<String> {
    let widths = fit(columns, &natural_widths(columns, rows), width);
    let titles: Vec<Cell> = columns.iter().map(|c| Cell::styled(c.title, title)).collect();
    let cuts = width.is_some();
    let row = |cells: &[Cell]| {
        let texts: Vec<Cell> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| cell.within(width.filter(|_| cuts)))
            .collect();
        one_line(columns, &widths, &texts)
    };
    std::iter::once(row(&titles)).chain(rows.iter().map(|cells| row(cells))).collect()
}

fn natural_widths(columns: &[Column], rows: &[Vec<Cell>]) -> Vec<usize> {
    let widest = |(index, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.text.width());
        cells.chain(std::iter::once(column.title.width())).max().unwrap_or(0)
    };
    columns.iter().enumerate().map(widest).collect()
}

/// The width of each column; `None` for one that has to go.
fn fit(columns: &[Column], natural: &[usize], width: Option<usize>) -> Vec<Option<usize>> {
    let mut kept: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
    let Some(width) = width else {
        kept.iter_mut().for_each(|width| *width = width.map(|width| width.min(ALIGNED_MOST)));
        return kept;
    };
    loop {
        let widths = shrunk(columns, kept.clone(), width);
        if total(&widths) <= width || !drop_one(columns, &mut kept) {
            return widths;
        }
    }
}

/// Takes from the roomiest column, cell by cell, until the row fits or no column has room.
fn shrunk(columns: &[Column], mut widths: Vec<Option<usize>>, width: usize) -> Vec<Option<usize>> {
    let room = |column: &Column, held: Option<usize>| {
        held.zip(column.least).map_or(0, |(held, least)| held.saturating_sub(least))
    };
    while total(&widths) > width {
        let each = columns.iter().zip(widths.iter_mut());
        match each.max_by_key(|(column, held)| room(column, **held)) {
            Some((column, held)) if room(column, *held) > 0 => *held = held.map(|held| held - 1),
            _ => break,
        }
    }
    widths
}

fn drop_one(columns: &[Column], kept: &mut [Option<usize>]) -> bool {
    let present = columns.iter().zip(kept.iter_mut()).filter(|(_, width)| width.is_some());
    match present.filter(|(column, _)| column.rank > 0).max_by_key(|(column, _)| column.rank) {
        Some((_, width)) => {
            *width = None;
            true
        }
        None => false,
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let held: Vec<usize> = widths.iter().flatten().copied().collect();
    held.iter().sum::<usize>() + GAP * held.len().saturating_sub(1)
}

fn one_line(columns: &[Column], widths: &[Option<usize>], cells: &[Cell]) -> String {
    let mut line = String::new();
    let mut owed = 0;
    for ((column, width), cell) in columns.iter().zip(widths).zip(cells) {
        let Some(width) = *width else { continue };
        let padding = width.saturating_sub(cell.text.width());
        let before = if column.right { padding } else { 0 };
        line.extend(std::iter::repeat_n(' ', owed + before));
        line.push_str(&dress(&cell.text, cell.style));
        owed = GAP + padding - before;
    }
    line
}

/// Text in a style, or plain when the style is none.
pub(crate) fn dress(text: &str, style: anstyle::Style) -> String {
    if style == anstyle::Style::new() || text.is_empty() {
        return text.to_owned();
    }
    format!("{style}{text}{style:#}")
}

/// Text in at most `width` cells; what was cut shows as `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let cells = c.width().unwrap_or(0);
        if cells > left {
            break;
        }
        left -= cells;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::shrinking("SESSION", 10),
        Column::fixed("N").right(),
        Column::fixed("KIND").rank(2),
        Column::shrinking("TITLE", 8).rank(1),
    ];

    fn check(width: Option<usize>, expect: &str) {
        let rows = [
            vec!["agent:main:main".into(), "7".into(), "main".into(), "The release notes".into()],
            vec![
                "telegram:1".into(),
                "12345".into(),
                "other".into(),
                "日本語のとても長い題".into(),
            ],
        ];
        let got = lines(&COLUMNS, &rows, anstyle::Style::new(), width);
        if let Some(width) = width {
            assert!(got.iter().all(|line| line.width() <= width), "{got:#?}");
        }
        assert_eq!(format!("\n{}", got.join("\n")), expect);
    }

    /// Nothing is cut when there is no width: that is what a pipe gets.
    #[test]
    fn whole_without_a_width() {
        check(
            None,
            "
SESSION              N  KIND   TITLE
agent:main:main      7  main   The release notes
telegram:1       12345  other  日本語のとても長い題",
        );
    }

    /// One long cell does not push the rows of the others apart.
    #[test]
    fn one_long_cell() {
        let long = "x".repeat(1_000);
        let rows = [vec![long.as_str().into(), "1".into()], vec!["short".into(), "2".into()]];
        let columns = [Column::fixed("KEY"), Column::fixed("N").right()];
        let got = lines(&columns, &rows, anstyle::Style::new(), None);
        assert_eq!(got[1], format!("{long}  1"));
        assert_eq!(got[2], format!("short{}2", " ".repeat(ALIGNED_MOST - 5 + GAP)));
    }

    /// The roomiest columns give first.
    #[test]
    fn columns_shrink() {
        check(
            Some(40),
            "
SESSION            N  KIND   TITLE
agent:main:m…      7  main   The releas…
telegram:1     12345  other  日本語のと…",
        );
    }

    /// Then whole columns go, the least important first.
    #[test]
    fn columns_go() {
        check(
            Some(32),
            "
SESSION            N  TITLE
agent:main:m…      7  The relea…
telegram:1     12345  日本語の…",
        );
        check(
            Some(20),
            "
SESSION            N
agent:main:m…      7
telegram:1     12345",
        );
    }

    /// Wide characters count two cells and are never split.
    #[test]
    fn cut_counts_cells() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "");
    }
}
