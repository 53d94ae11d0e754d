//! Plain tables: a header, columns as wide as they need to be.

use std::fmt::{self, Write};

/// Rows of text under a header.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self {
            rows: vec![header.iter().map(|title| title.to_uppercase()).collect()],
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        // A name may contain anything; a line break or an escape sequence must not reach the terminal.
        self.rows
            .push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                write!(line, "{cell:<width$}  ")?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Control characters as escapes.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut shown, c| {
            if c.is_control() {
                shown.extend(c.escape_default());
            } else {
                shown.push(c);
            }
            shown
        })
}

/// A number, or a dash if it is not known.
pub(crate) fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_control_characters_are_shown() {
        let mut table = Table::new(&["name", "holder"]);
        table.row(["event/1".to_owned(), "a".to_owned()]);
        table.row(["x\n\u{1b}[2J".to_owned(), String::new()]);
        let lines: Vec<String> = table.to_string().lines().map(str::to_owned).collect();
        assert_eq!(
            lines,
            ["NAME          HOLDER", "event/1       a", r"x\n\u{1b}[2J"]
        );
    }
}
