//! A trace as tables of named columns: what stands on disk and what `chappe view` shows.

use std::collections::HashMap;

use chappe_sim::{Switched, Value};

use crate::rows::{About, NO_FRAME, Trace};

/// No value in a column of whole numbers.
pub const NONE: i64 = i64::MIN;

/// Words whose place in memory is remembered while they are numbered.
const FEW: usize = 16;

/// Tables, and what they are about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// What the rows are about.
    pub about: About,
    /// The tables, in the order of [`TABLES`].
    pub tables: Vec<Table>,
}

/// The names of the tables.
pub const TABLES: [&str; 5] = ["frames", "receptions", "switches", "readings", "links"];

/// Columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name, one of [`TABLES`].
    pub name: String,
    /// Its columns, all of one length.
    pub columns: Vec<Column>,
}

/// A column with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, with the unit at its end where it has one.
    pub name: String,
    /// Its values, one for each row.
    pub data: Data,
}

/// The values of a column.
#[derive(Clone, Debug)]
pub enum Data {
    /// Whole numbers; [`NONE`] where there is none.
    Whole(Vec<i64>),
    /// Numbers; NaN where there is none.
    Real(Vec<f64>),
    /// Words, as places in a list.
    Word {
        /// For each row the place of its word.
        codes: Vec<u32>,
        /// The distinct words that the codes number.
        words: Vec<String>,
    },
}

impl PartialEq for Data {
    /// Equal where the bits are: NaN stands for no value.
    fn eq(&self, other: &Data) -> bool {
        match (self, other) {
            (Data::Whole(a), Data::Whole(b)) => a == b,
            (Data::Real(a), Data::Real(b)) => {
                let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                bits(a) == bits(b)
            }
            (Data::Word { codes: a, words: v }, Data::Word { codes: b, words: w }) => {
                a == b && v == w
            }
            _ => false,
        }
    }
}

impl Table {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.data.len())
    }

    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&Data> {
        let named = self.columns.iter().find(|column| column.name == name);
        named.map(|column| &column.data)
    }
}

impl Data {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Data::Whole(values) => values.len(),
            Data::Real(values) => values.len(),
            Data::Word { codes, .. } => codes.len(),
        }
    }

    /// Whether a row has no value.
    pub fn has_gaps(&self) -> bool {
        match self {
            Data::Whole(values) => values.contains(&NONE),
            Data::Real(values) => values.iter().any(|value| value.is_nan()),
            Data::Word { .. } => false,
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words as they come, numbered by their first use.
    pub fn of_words<'w>(each: impl Iterator<Item = &'w str>) -> Data {
        let mut places: HashMap<&str, u32> = HashMap::new();
        let mut words = Vec::new();
        // Names of kinds and causes stand in few places of memory, where they are found without hashing.
        let mut met: Vec<(&str, u32)> = Vec::new();
        let codes = each.map(|word| {
            if let Some((_, code)) = met.iter().find(|(known, _)| std::ptr::eq(*known, word)) {
                return *code;
            }
            let code = *places.entry(word).or_insert_with(|| {
                words.push(word.to_string());
                words.len() as u32 - 1
            });
            if met.len() < FEW {
                met.push((word, code));
            }
            code
        });
        Data::Word {
            codes: codes.collect(),
            words,
        }
    }
}

impl Tables {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

fn whole<T>(name: &str, rows: &[T], value: impl Fn(&T) -> i64) -> Column {
    Column {
        name: name.into(),
        data: Data::Whole(rows.iter().map(value).collect()),
    }
}

fn real<T>(name: &str, rows: &[T], value: impl Fn(&T) -> f64) -> Column {
    Column {
        name: name.into(),
        data: Data::Real(rows.iter().map(value).collect()),
    }
}

fn words<'w, T>(name: &str, rows: &'w [T], value: impl Fn(&'w T) -> &'w str) -> Column {
    Column {
        name: name.into(),
        data: Data::of_words(rows.iter().map(value)),
    }
}

fn optional(value: Option<impl Into<i64>>) -> i64 {
    value.map_or(NONE, Into::into)
}

fn frame(place: u32) -> i64 {
    if place == NO_FRAME {
        NONE
    } else {
        place.into()
    }
}

impl Trace {
    /// The same as tables. Their columns are described in `docs/view.md`.
    pub fn tables(&self) -> Tables {
        let table = |name: &str| {
            let columns = (0..).map_while(|place| self.column(name, place));
            Table {
                name: name.into(),
                columns: columns.collect(),
            }
        };
        Tables {
            about: self.about.clone(),
            tables: TABLES.into_iter().map(table).collect(),
        }
    }

    /// One column of the table of this name; `None` behind the last one. All tables together take as much memory as the rows.
    pub fn column(&self, table: &str, place: usize) -> Option<Column> {
        match table {
            "frames" => self.frame_column(place),
            "receptions" => self.reception_column(place),
            "switches" => self.switch_column(place),
            "readings" => self.reading_column(place),
            "links" => self.link_column(place),
            _ => None,
        }
    }

    fn frame_column(&self, place: usize) -> Option<Column> {
        let rows = &self.frames;
        Some(match place {
            0 => whole("node", rows, |row| row.node.into()),
            1 => whole("number", rows, |row| row.number.into()),
            2 => whole("start_ns", rows, |row| row.start.nanos() as i64),
            3 => whole("airtime_ns", rows, |row| row.airtime.nanos() as i64),
            4 => whole("octets", rows, |row| row.octets.into()),
            5 => whole("channel", rows, |row| row.channel.into()),
            6 => words("kind", rows, |row| row.label.kind),
            7 => whole("to", rows, |row| optional(row.label.to)),
            8 => whole("part", rows, |row| optional(row.label.part)),
            9 => whole("packet", rows, |row| optional(row.label.number)),
            _ => return None,
        })
    }

    fn reception_column(&self, place: usize) -> Option<Column> {
        let rows = &self.receptions;
        Some(match place {
            0 => whole("frame", rows, |row| frame(row.frame)),
            1 => whole("node", rows, |row| row.node.into()),
            2 => whole("from", rows, |row| row.from.into()),
            3 => whole("start_ns", rows, |row| row.start.nanos() as i64),
            4 => whole("known_ns", rows, |row| row.at.nanos() as i64),
            5 => real("power_dbm", rows, |row| row.power_dbm.into()),
            6 => real("sinr_db", rows, |row| row.sinr_db.into()),
            7 => words("outcome", rows, |row| match row.outcome {
                Ok(()) => "received",
                Err(why) => why.name(),
            }),
            8 => whole("culprit", rows, |row| frame(row.culprit)),
            _ => return None,
        })
    }

    fn switch_column(&self, place: usize) -> Option<Column> {
        let rows = &self.switches;
        Some(match place {
            0 => whole("at_ns", rows, |row| row.at.nanos() as i64),
            1 => whole("node", rows, |row| row.node.into()),
            2 => words("to", rows, |row| match row.to {
                Switched::On => "on",
                Switched::Asleep => "asleep",
                Switched::Down => "down",
            }),
            _ => return None,
        })
    }

    fn reading_column(&self, place: usize) -> Option<Column> {
        let rows = &self.readings;
        Some(match place {
            0 => whole("at_ns", rows, |row| row.at.nanos() as i64),
            1 => whole("node", rows, |row| row.node.into()),
            2 => words("name", rows, |row| row.name),
            3 => whole("part", rows, |row| row.part.into()),
            4 => real("value", rows, |row| match row.value {
                Value::Number(value) => value,
                Value::Word(_) => f64::NAN,
            }),
            5 => words("word", rows, |row| match row.value {
                Value::Number(_) => "",
                Value::Word(word) => word,
            }),
            _ => return None,
        })
    }

    fn link_column(&self, place: usize) -> Option<Column> {
        let rows = &self.links;
        Some(match place {
            0 => whole("from", rows, |row| row.from.into()),
            1 => whole("to", rows, |row| row.to.into()),
            2 => real("delivery", rows, |row| row.delivery.into()),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_numbered_by_first_use() {
        let data = Data::of_words(["b", "a", "b"].into_iter());
        let words = vec!["b".to_string(), "a".to_string()];
        assert_eq!(
            data,
            Data::Word {
                codes: vec![0, 1, 0],
                words
            }
        );
    }

    #[test]
    fn columns_of_a_table_are_equally_long() {
        let tables = Trace::default().tables();
        assert_eq!(tables.tables.len(), TABLES.len());
        for table in &tables.tables {
            assert!(table.columns.iter().all(|column| column.data.is_empty()));
            assert_eq!(table.rows(), 0);
        }
    }
}
