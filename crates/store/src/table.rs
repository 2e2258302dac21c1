//! Any columns as a Parquet file, with notes in its key-value metadata.
//!
//! ```
//! use chappe_store::table::{Column, Values, write};
//!
//! let path = std::env::temp_dir().join(format!("chappe-table-example-{}.parquet", std::process::id()));
//! let power = Column::new("tx_power_dbm", Values::Real(vec![Some(10.0), None])).optional();
//! write(&path, &[("title", "two powers".into())], &[power])?;
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), chappe_store::StoreError>(())
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::chunk::{self, Cells, Chunk, List, NO_WORD};
use crate::{StoreError, write_whole};

/// One column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, with the unit of its values.
    pub name: String,
    /// Its values, one for each row.
    pub values: Values,
    /// Whether a value may be missing.
    optional: bool,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers of 64 bits.
    Whole(Vec<i64>),
    /// Numbers, some of which may be missing.
    Real(Vec<Option<f64>>),
    /// Truth values, none missing.
    Yes(Vec<bool>),
    /// Texts, some of which may be missing.
    Text(Vec<Option<String>>),
}

impl Column {
    /// A column without missing values.
    pub fn new(name: impl Into<String>, values: Values) -> Column {
        let name = name.into();
        Column {
            name,
            values,
            optional: false,
        }
    }

    /// The same column, which may lack values.
    pub fn optional(self) -> Column {
        Column {
            optional: true,
            ..self
        }
    }

    fn has_gaps(&self) -> bool {
        match &self.values {
            Values::Whole(_) | Values::Yes(_) => false,
            Values::Real(values) => values.contains(&None),
            Values::Text(values) => values.contains(&None),
        }
    }

    fn encode(&self) -> Chunk {
        let gaps = self.optional || self.has_gaps();
        let encode = |cells: Cells<'_>| chunk::encode(&self.name, cells, gaps);
        match &self.values {
            Values::Whole(values) => encode(Cells::Long(values)),
            Values::Yes(values) => encode(Cells::Yes(values)),
            Values::Real(values) => {
                let values = values.iter().map(|value| value.unwrap_or(f64::NAN));
                encode(Cells::Double(&values.collect::<Vec<f64>>()))
            }
            Values::Text(texts) => {
                let (codes, words) = numbered(texts);
                let (codes, list) = (&codes, List::Words(&words));
                encode(Cells::Listed { codes, list })
            }
        }
    }
}

/// The distinct texts by their first use, and for each row the place of its text.
fn numbered(texts: &[Option<String>]) -> (Vec<u32>, Vec<String>) {
    let mut places: HashMap<&str, u32> = HashMap::new();
    let mut words = Vec::new();
    let codes = texts.iter().map(|text| {
        let Some(text) = text else {
            return NO_WORD;
        };
        *places.entry(text).or_insert_with(|| {
            words.push(text.clone());
            words.len() as u32 - 1
        })
    });
    (codes.collect(), words)
}

/// Writes columns of equal length to a file, completely or not at all.
pub fn write(path: &Path, notes: &[(&str, String)], columns: &[Column]) -> Result<(), StoreError> {
    write_whole(path, |file| encode(file, notes, columns))
}

pub(crate) fn encode(file: &File, notes: &[(&str, String)], columns: &[Column]) -> io::Result<()> {
    let chunks: Vec<Chunk> = columns.iter().map(Column::encode).collect();
    chunk::write(file, "flow", notes, &chunks)
}
