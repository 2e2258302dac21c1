//! Tables for a terminal: columns as wide as their contents, numbers right-aligned, colour on request.

use std::fmt::Write as _;

/// A table of texts.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Column {
    title: String,
    right: bool,
    /// A narrow terminal omits columns of a higher rank first.
    rank: u8,
}

#[derive(Clone, Debug)]
struct Row {
    cells: Vec<String>,
    bold: bool,
}

impl Table {
    /// A table without columns.
    pub fn new() -> Table {
        Table::default()
    }

    /// Adds a column of words.
    pub fn words(mut self, title: &str) -> Table {
        self.columns.push(Column {
            title: title.into(),
            right: false,
            rank: 0,
        });
        self
    }

    /// Adds a column of numbers. A narrow terminal omits columns of a higher `rank` first, and never those of rank 0. An empty
    /// column of a rank above 0 is not shown.
    pub fn numbers(mut self, title: &str, rank: u8) -> Table {
        self.columns.push(Column {
            title: title.into(),
            right: true,
            rank,
        });
        self
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.push(cells, false);
    }

    /// Adds a row in bold, where colour is allowed.
    pub fn bold_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.push(cells, true);
    }

    fn push(&mut self, cells: impl IntoIterator<Item = String>, bold: bool) {
        let mut cells: Vec<String> = cells.into_iter().collect();
        cells.resize(self.columns.len(), String::new());
        self.rows.push(Row { cells, bold });
    }

    /// The table as text, at most `width` columns wide if omitting columns achieves that.
    pub fn render(&self, width: usize, colour: bool) -> String {
        let shown = self.shown(width);
        let mut text = String::new();
        let titles: Vec<&str> = self
            .columns
            .iter()
            .map(|column| column.title.as_str())
            .collect();
        self.line(&mut text, &shown, &titles, if colour { "2" } else { "" });
        for row in &self.rows {
            let cells: Vec<&str> = row.cells.iter().map(String::as_str).collect();
            self.line(
                &mut text,
                &shown,
                &cells,
                if colour && row.bold { "1" } else { "" },
            );
        }
        text
    }

    /// The columns that fit, with their widths.
    fn shown(&self, width: usize) -> Vec<(usize, usize)> {
        let wide = |index: usize| {
            let cells = self.rows.iter().map(|row| length(&row.cells[index]));
            cells
                .chain([length(&self.columns[index].title)])
                .max()
                .unwrap_or(0)
        };
        let says = |index: &usize| {
            let empty = self.rows.iter().all(|row| row.cells[*index].is_empty());
            self.columns[*index].rank == 0 || self.rows.is_empty() || !empty
        };
        let mut shown: Vec<(usize, usize)> = (0..self.columns.len())
            .filter(says)
            .map(|i| (i, wide(i)))
            .collect();
        while shown.iter().map(|(_, w)| w + 2).sum::<usize>() > width {
            let worst = shown
                .iter()
                .enumerate()
                .max_by_key(|(place, (i, _))| (self.columns[*i].rank, *place));
            match worst {
                Some((place, &(index, _))) if self.columns[index].rank > 0 => shown.remove(place),
                _ => break,
            };
        }
        shown
    }

    fn line(&self, text: &mut String, shown: &[(usize, usize)], cells: &[&str], style: &str) {
        let mut line = String::new();
        for &(index, width) in shown {
            let pad = " ".repeat(width.saturating_sub(length(cells[index])));
            let cell = cells[index];
            let _ = match self.columns[index].right {
                true => write!(line, "  {pad}{cell}"),
                false => write!(line, "  {cell}{pad}"),
            };
        }
        let line = line.trim_end();
        let _ = match style {
            "" => writeln!(text, "{line}"),
            style => writeln!(text, "\u{1b}[{style}m{line}\u{1b}[0m"),
        };
    }
}

/// Columns that a text takes: characters, none of which is wide here.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// A bit rate in kbit/s with a sensible number of digits.
pub fn kbit(bits_per_second: f64) -> String {
    digits(bits_per_second / 1e3)
}

/// Three significant digits, whole numbers from 100.
pub fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 || v == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// `412 ± 6`, both with the digits that the uncertainty allows; without an interval the mean alone.
pub fn with_interval(mean: f64, ci95: Option<f64>) -> String {
    match ci95 {
        None => digits(mean),
        Some(half) => {
            let places = match half.abs().max(mean.abs() / 1000.0) {
                v if v >= 10.0 => 0,
                v if v >= 1.0 => 1,
                _ => 2,
            };
            format!("{mean:.places$} ± {half:.places$}")
        }
    }
}

/// A count with thin groups: `1 204 311`.
pub fn count(value: f64) -> String {
    let plain = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (place, digit) in plain.chars().enumerate() {
        if place > 0 && (plain.len() - place) % 3 == 0 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    if value < 0.0 {
        format!("-{grouped}")
    } else {
        grouped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new()
            .words("system")
            .numbers("goodput", 0)
            .numbers("frames", 1);
        table.row(["Pacifier", "412", "9131"].map(String::from));
        table.bold_row(["MORE", "98.2", "20000"].map(String::from));
        table
    }

    #[test]
    fn columns_line_up() {
        let expected = "  system    goodput  frames\n  Pacifier      412    9131\n  MORE         98.2   20000\n";
        assert_eq!(table().render(80, false), expected);
    }

    #[test]
    fn narrow_terminals_omit_high_ranks_first() {
        let narrow = table().render(22, false);
        assert!(!narrow.contains("frames") && narrow.contains("goodput"));
        assert!(table().render(1, false).contains("goodput"));
        assert!(table().render(80, true).contains("\u{1b}[1m"));
    }

    #[test]
    fn numbers_have_sensible_digits() {
        assert_eq!(with_interval(412.34, Some(6.2)), "412.3 ± 6.2");
        assert_eq!(with_interval(412.34, Some(62.2)), "412 ± 62");
        assert_eq!(with_interval(0.5, None), "0.500");
        assert_eq!(count(1204311.0), "1\u{202f}204\u{202f}311");
        assert_eq!(kbit(223_000.0), "223");
    }
}
