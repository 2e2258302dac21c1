//! A matrix of delivery ratios in a CSV file: one line for each sender, one number for each receiver.

use std::path::Path;

use super::text::FileText;
use crate::input::InputError;

/// Reads the rows; lines that begin with `#` and empty lines are skipped. The numbers are not checked here.
pub fn read_matrix(path: &Path) -> Result<Vec<Vec<f64>>, InputError> {
    parse(&FileText::read(path)?)
}

pub(super) fn parse(file: &FileText) -> Result<Vec<Vec<f64>>, InputError> {
    let mut rows = Vec::new();
    let mut at = 0;
    for line in file.text.split_inclusive('\n') {
        let content = line.trim();
        if !content.is_empty() && !content.starts_with('#') {
            let mut row = Vec::new();
            let mut start = at;
            for field in line.trim_end().split(',') {
                let end = start + field.len();
                match field.trim().parse::<f64>() {
                    Ok(value) => row.push(value),
                    Err(_) => {
                        let message = format!("`{}` is not a number", field.trim());
                        return Err(file.error_at(
                            start..end,
                            "expected a delivery ratio from 0 to 1",
                            message,
                        ));
                    }
                }
                start = end + 1;
            }
            rows.push(row);
        }
        at += line.len();
    }
    Ok(rows)
}
