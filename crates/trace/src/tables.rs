//! A trace as tables of named columns: what stands on disk and what `chappe view` shows.

use std::borrow::Cow;
use std::collections::HashMap;

use chappe_sim::{Switched, Value};

use crate::rows::{About, NO_FRAME, NodeReading, Trace};

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
        let (codes, words) = numbered(each);
        Data::Word { codes, words }
    }
}

/// Words numbered by their first use: the number of each, and the list of them.
fn numbered<'w>(each: impl Iterator<Item = &'w str>) -> (Vec<u32>, Vec<String>) {
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
    (codes.collect(), words)
}

impl Tables {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// A column as rows give it, in the narrowest type that holds every value: what is written. Where `gaps` is set [`NONE`] and [`NO_SHORT`] stand
/// for no value; NaN always does.
#[derive(Clone, Debug)]
pub enum Values<'a> {
    /// Whole numbers of 32 bits, and whether there are gaps.
    Short(Vec<i32>, bool),
    /// Whole numbers of 64 bits, and whether there are gaps.
    Long(Cow<'a, [i64]>, bool),
    /// Numbers of 32 bits.
    Single(Vec<f32>),
    /// Numbers of 64 bits.
    Double(Cow<'a, [f64]>),
    /// Words, as places in a list.
    Words(Cow<'a, [u32]>, Cow<'a, [String]>),
}

/// No value among whole numbers of 32 bits.
pub const NO_SHORT: i32 = i32::MIN;

/// Numbers that no row lacks. Those above 31 bits are rare.
fn numbers<T>(rows: &[T], value: impl Fn(&T) -> u32) -> Values<'static> {
    optional(rows, |row| Some(value(row)))
}

/// Numbers that rows may lack.
#[inline(always)]
fn optional<T>(rows: &[T], value: impl Fn(&T) -> Option<u32>) -> Values<'static> {
    let (mut all, mut gaps) = (0, false);
    let short = rows.iter().map(|row| match value(row) {
        Some(value) => {
            all |= value;
            value as i32
        }
        None => {
            gaps = true;
            NO_SHORT
        }
    });
    let short = short.collect();
    if i32::try_from(all).is_ok() {
        return Values::Short(short, gaps);
    }
    let long = rows.iter().map(|row| value(row).map_or(NONE, i64::from));
    Values::Long(long.collect(), gaps)
}

/// Times in nanoseconds: of short runs they are short.
fn times<T>(rows: &[T], value: impl Fn(&T) -> u64) -> Values<'static> {
    let mut all = 0;
    let long = rows.iter().map(|row| {
        all |= value(row);
        value(row) as i64
    });
    let long: Cow<'_, [i64]> = long.collect();
    match i32::try_from(all) {
        Ok(_) => Values::Short(long.iter().map(|&value| value as i32).collect(), false),
        Err(_) => Values::Long(long, false),
    }
}

fn singles<T>(rows: &[T], value: impl Fn(&T) -> f32) -> Values<'static> {
    Values::Single(rows.iter().map(value).collect())
}

fn words<'w, T>(rows: &'w [T], value: impl Fn(&'w T) -> &'w str) -> Values<'static> {
    let (codes, words) = numbered(rows.iter().map(value));
    Values::Words(codes.into(), words.into())
}

/// The row of a frame, unless there is none.
fn row_of(place: u32) -> Option<u32> {
    (place != NO_FRAME).then_some(place)
}

impl Values<'_> {
    /// The same in the types of [`Data`].
    fn into_data(self) -> Data {
        match self {
            Values::Short(values, _) => {
                let wide = |&value: &i32| match value {
                    NO_SHORT => NONE,
                    value => value.into(),
                };
                Data::Whole(values.iter().map(wide).collect())
            }
            Values::Long(values, _) => Data::Whole(values.into_owned()),
            Values::Single(values) => Data::Real(values.into_iter().map(f64::from).collect()),
            Values::Double(values) => Data::Real(values.into_owned()),
            Values::Words(codes, words) => Data::Word {
                codes: codes.into_owned(),
                words: words.into_owned(),
            },
        }
    }
}

impl Data {
    /// The same in the narrowest types.
    pub fn values(&self) -> Values<'_> {
        match self {
            Data::Whole(values) => {
                let gaps = values.contains(&NONE);
                // The least of 32 bits would stand for no value.
                let narrow = |&value: &i64| match value {
                    NONE => Some(NO_SHORT),
                    value => i32::try_from(value).ok().filter(|&it| it != NO_SHORT),
                };
                match values.iter().map(narrow).collect() {
                    Some(short) => Values::Short(short, gaps),
                    None => Values::Long(values.into(), gaps),
                }
            }
            Data::Real(values) => Values::Double(values.into()),
            Data::Word { codes, words } => Values::Words(codes.into(), words.into()),
        }
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
        let (name, values) = self.values(table, place)?;
        Some(Column {
            name: name.into(),
            data: values.into_data(),
        })
    }

    /// The same in the narrowest types: its name and its values.
    pub fn values(&self, table: &str, place: usize) -> Option<(&'static str, Values<'static>)> {
        match table {
            "frames" => self.frame_values(place),
            "receptions" => self.reception_values(place),
            "switches" => self.switch_values(place),
            "readings" => self.reading_values(place),
            "links" => self.link_values(place),
            _ => None,
        }
    }

    fn frame_values(&self, place: usize) -> Option<(&'static str, Values<'static>)> {
        let rows = &self.frames[..];
        Some(match place {
            0 => ("node", numbers(rows, |row| row.node)),
            1 => ("number", numbers(rows, |row| row.number)),
            2 => ("start_ns", times(rows, |row| row.start.nanos())),
            3 => ("airtime_ns", times(rows, |row| row.airtime.nanos())),
            4 => ("octets", numbers(rows, |row| row.octets)),
            5 => ("channel", numbers(rows, |row| row.channel.into())),
            6 => ("kind", words(rows, |row| row.label.kind)),
            7 => ("to", optional(rows, |row| row.label.to.map(u32::from))),
            8 => ("part", optional(rows, |row| row.label.part)),
            9 => ("packet", optional(rows, |row| row.label.number)),
            _ => return None,
        })
    }

    fn reception_values(&self, place: usize) -> Option<(&'static str, Values<'static>)> {
        let rows = &self.receptions[..];
        Some(match place {
            0 => ("frame", optional(rows, |row| row_of(row.frame))),
            1 => ("node", numbers(rows, |row| row.node)),
            2 => ("from", numbers(rows, |row| row.from)),
            3 => ("start_ns", times(rows, |row| row.start.nanos())),
            4 => ("known_ns", times(rows, |row| row.at.nanos())),
            5 => ("power_dbm", singles(rows, |row| row.power_dbm)),
            6 => ("sinr_db", singles(rows, |row| row.sinr_db)),
            7 => (
                "outcome",
                words(rows, |row| match row.outcome {
                    Ok(()) => "received",
                    Err(why) => why.name(),
                }),
            ),
            8 => ("culprit", optional(rows, |row| row_of(row.culprit))),
            _ => return None,
        })
    }

    fn switch_values(&self, place: usize) -> Option<(&'static str, Values<'static>)> {
        let rows = &self.switches[..];
        Some(match place {
            0 => ("at_ns", times(rows, |row| row.at.nanos())),
            1 => ("node", numbers(rows, |row| row.node)),
            2 => (
                "to",
                words(rows, |row| match row.to {
                    Switched::On => "on",
                    Switched::Asleep => "asleep",
                    Switched::Down => "down",
                }),
            ),
            _ => return None,
        })
    }

    fn reading_values(&self, place: usize) -> Option<(&'static str, Values<'static>)> {
        let rows = &self.readings[..];
        let number = |row: &NodeReading| match row.value {
            Value::Number(value) => value,
            Value::Word(_) => f64::NAN,
        };
        Some(match place {
            0 => ("at_ns", times(rows, |row| row.at.nanos())),
            1 => ("node", numbers(rows, |row| row.node)),
            2 => ("name", words(rows, |row| row.name)),
            3 => ("part", numbers(rows, |row| row.part)),
            4 => ("value", Values::Double(rows.iter().map(number).collect())),
            5 => (
                "word",
                words(rows, |row| match row.value {
                    Value::Number(_) => "",
                    Value::Word(word) => word,
                }),
            ),
            _ => return None,
        })
    }

    fn link_values(&self, place: usize) -> Option<(&'static str, Values<'static>)> {
        let rows = &self.links[..];
        Some(match place {
            0 => ("from", numbers(rows, |row| row.from)),
            1 => ("to", numbers(rows, |row| row.to)),
            2 => ("delivery", singles(rows, |row| row.delivery)),
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
