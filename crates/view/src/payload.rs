//! What the page gets: a JSON head and typed columns behind it, packed with gzip.
//!
//! ```text
//! octets  0..4  "cpv1"
//!         4..8  octets of the head, little-endian
//!         8..   the head: title, runs (name, about, tables with columns: name, type, offset, gaps, words), figures, live, notes
//!         then  columns, little-endian, each at a multiple of eight from the first such multiple after the head
//! ```
//!
//! A column of whole numbers takes the narrowest unsigned type that holds it; where rows are empty its largest value says
//! so. A column of numbers has 32 bits where that loses nothing.

use std::io::Write as _;

use chappe_trace::{Column, Data, NONE, Table, Tables};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// What a page shows.
#[derive(Debug, Default)]
pub struct Contents {
    /// What the page has as its heading.
    pub title: String,
    /// Recorded runs, with the names that the page gives them.
    pub runs: Vec<(String, Tables)>,
    /// Figures of `chappe lab`, each as its JSON.
    pub figures: Vec<Value>,
    /// Whether the runs go on: the page then asks again each second.
    pub live: bool,
    /// What could not be shown, and why.
    pub notes: Vec<String>,
}

impl Contents {
    /// The data as the page unpacks them.
    pub fn pack(&self) -> Vec<u8> {
        let mut columns = Vec::new();
        let runs: Vec<Value> = self
            .runs
            .iter()
            .map(|(name, run)| {
                let tables: Vec<Value> = run
                    .tables
                    .iter()
                    .map(|table| table_head(table, &mut columns))
                    .collect();
                json!({ "name": name, "about": chappe_store::trace::about_json(&run.about), "tables": tables })
            })
            .collect();
        let head =
            json!({ "title": self.title, "runs": runs, "figures": self.figures, "live": self.live, "notes": self.notes })
                .to_string();
        let mut whole = b"cpv1".to_vec();
        whole.extend_from_slice(&(head.len() as u32).to_le_bytes());
        whole.extend_from_slice(head.as_bytes());
        whole.resize(whole.len().next_multiple_of(8), 0);
        whole.append(&mut columns);
        let mut packer =
            GzEncoder::new(Vec::new(), Compression::new(if self.live { 1 } else { 6 }));
        // Writing to memory does not fail.
        let packed = packer.write_all(&whole).and_then(|()| packer.finish());
        packed.unwrap_or_default()
    }
}

fn table_head(table: &Table, columns: &mut Vec<u8>) -> Value {
    let heads: Vec<Value> = table
        .columns
        .iter()
        .map(|column| column_head(column, columns))
        .collect();
    json!({ "name": table.name, "rows": table.rows(), "columns": heads })
}

/// Appends a column and describes it.
fn column_head(column: &Column, to: &mut Vec<u8>) -> Value {
    to.resize(to.len().next_multiple_of(8), 0);
    let offset = to.len();
    let gaps = matches!(column.data, Data::Whole(_)) && column.data.has_gaps();
    let (kind, words) = match &column.data {
        Data::Whole(values) => (whole(values, gaps, to), None),
        Data::Real(values) => (real(values, to), None),
        Data::Word { codes, words } => {
            let values: Vec<i64> = codes.iter().map(|&code| code.into()).collect();
            (whole(&values, false, to), Some(words))
        }
    };
    json!({ "name": column.name, "type": kind, "offset": offset, "gaps": gaps, "words": words })
}

fn whole(values: &[i64], gaps: bool, to: &mut Vec<u8>) -> &'static str {
    let given = || values.iter().copied().filter(|&value| value != NONE);
    let most = given().max().unwrap_or(0) as u64 + u64::from(gaps);
    if given().any(|value| value < 0) || most > u32::MAX.into() {
        // Times: exact below 2^53 ns, which is 104 days.
        let number = |&value: &i64| {
            if value == NONE {
                f64::from(u32::MAX)
            } else {
                value as f64
            }
        };
        values
            .iter()
            .for_each(|value| to.extend_from_slice(&number(value).to_le_bytes()));
        return "f64";
    }
    // The wanted width's largest value stands for none: -1 cut to it.
    let bits = |value: &i64| {
        if *value == NONE {
            u64::MAX
        } else {
            *value as u64
        }
    };
    match most {
        0..=0xff => {
            to.extend(values.iter().map(|value| bits(value) as u8));
            "u8"
        }
        0x100..=0xffff => {
            values
                .iter()
                .for_each(|value| to.extend_from_slice(&(bits(value) as u16).to_le_bytes()));
            "u16"
        }
        _ => {
            values
                .iter()
                .for_each(|value| to.extend_from_slice(&(bits(value) as u32).to_le_bytes()));
            "u32"
        }
    }
}

fn real(values: &[f64], to: &mut Vec<u8>) -> &'static str {
    let short = |&value: &f64| value.is_nan() || f64::from(value as f32) == value;
    if values.iter().all(short) {
        values
            .iter()
            .for_each(|&value| to.extend_from_slice(&(value as f32).to_le_bytes()));
        return "f32";
    }
    values
        .iter()
        .for_each(|value| to.extend_from_slice(&value.to_le_bytes()));
    "f64"
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn columns_take_the_narrowest_type() {
        let of = |values: &[i64], gaps| {
            let mut to = Vec::new();
            let kind = whole(values, gaps, &mut to);
            (kind, to)
        };
        assert_eq!(of(&[1, 255], false), ("u8", vec![1, 255]));
        // 255 is taken where a row is empty.
        assert_eq!(of(&[255, NONE], true), ("u16", vec![255, 0, 0xff, 0xff]));
        assert_eq!(of(&[254, NONE], true), ("u8", vec![254, 0xff]));
        assert_eq!(of(&[70_000], false).0, "u32");
        assert_eq!(
            of(&[1 << 40], false),
            ("f64", 2f64.powi(40).to_le_bytes().to_vec())
        );
        assert_eq!(of(&[-1], false).0, "f64");
        let mut to = Vec::new();
        assert_eq!(
            (real(&[0.5, f64::NAN], &mut to), real(&[0.1], &mut to)),
            ("f32", "f64")
        );
    }

    #[test]
    fn columns_are_aligned() {
        let table = Table {
            name: "t".into(),
            columns: ["a", "b"]
                .map(|name| Column {
                    name: name.into(),
                    data: Data::Whole(vec![1, 2, 3]),
                })
                .to_vec(),
        };
        let run = Tables {
            tables: vec![table],
            ..Tables::default()
        };
        let contents = Contents {
            title: "x".into(),
            runs: vec![("r".into(), run)],
            ..Contents::default()
        };
        let mut whole = Vec::new();
        GzDecoder::new(&contents.pack()[..])
            .read_to_end(&mut whole)
            .unwrap();
        assert_eq!(&whole[..4], b"cpv1");
        let length = u32::from_le_bytes(whole[4..8].try_into().unwrap()) as usize;
        let head: Value = serde_json::from_slice(&whole[8..8 + length]).unwrap();
        assert_eq!(head["runs"][0]["tables"][0]["columns"][1]["offset"], 8);
        let begin = (8 + length).next_multiple_of(8);
        assert_eq!(&whole[begin + 8..], [1, 2, 3]);
    }
}
