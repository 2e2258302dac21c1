//! Parquet files column by column: any flat table of whole numbers, numbers, truth values and words.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use chappe_trace::{Column, Data, NONE};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;

/// Rows that are read at a time.
const ROWS: usize = 1 << 16;

/// Rows of a table that is read at most: a file from elsewhere must not exhaust the memory.
const ROWS_MAX: i64 = 200_000_000;

/// The notes and the columns of a file. Truth values become 0 and 1, a missing text an empty one.
pub(crate) fn read(file: File) -> Result<(Vec<KeyValue>, Vec<Column>), ParquetError> {
    let file = Arc::new(file);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&*file)?;
    let whole = metadata.file_metadata();
    if !(0..=ROWS_MAX).contains(&whole.num_rows()) {
        return Err(wrong("more rows than chappe reads"));
    }
    let notes = whole.key_value_metadata().cloned().unwrap_or_default();
    let names = whole.schema_descr().columns().iter();
    let names: Vec<String> = names.map(|column| column.name().to_string()).collect();
    let mut columns = Vec::new();
    for (place, name) in names.into_iter().enumerate() {
        let mut data: Option<Data> = None;
        for group in metadata.row_groups() {
            let column = group.columns().get(place);
            let column = column.ok_or_else(|| wrong("a group of rows lacks a column"))?;
            let rows = usize::try_from(group.num_rows())?;
            // A page at a time. The crate's reader of files would bring its reader of rows along, 30 kB that nothing calls.
            let pages = SerializedPageReader::new(file.clone(), column, rows, None)?;
            let reader = get_column_reader(column.column_descr_ptr(), Box::new(pages));
            append(reader, &mut data)?;
        }
        let data = data.unwrap_or(Data::Whole(Vec::new()));
        columns.push(Column { name, data });
    }
    Ok((notes, columns))
}

fn wrong(why: impl Into<String>) -> ParquetError {
    ParquetError::General(why.into())
}

/// The place of a word in the list, at its end if it is new.
fn place(word: &str, places: &mut HashMap<String, u32>, words: &mut Vec<String>) -> u32 {
    if let Some(&place) = places.get(word) {
        return place;
    }
    let place = words.len() as u32;
    places.insert(word.to_string(), place);
    words.push(word.to_string());
    place
}

/// Appends a column of one row group.
fn append(reader: ColumnReader, data: &mut Option<Data>) -> Result<(), ParquetError> {
    // Values are given where the level is 1.
    fn spread<T: Clone>(levels: &[i16], given: Vec<T>, none: T) -> Vec<T> {
        let mut given = given.into_iter();
        // A column without gaps has no levels.
        if levels.is_empty() {
            return given.collect();
        }
        let each = levels.iter().map(|&level| match level {
            0 => none.clone(),
            _ => given.next().unwrap_or_else(|| none.clone()),
        });
        each.collect()
    }
    macro_rules! all {
        ($reader:ident, $none:expr, $each:expr) => {
            loop {
                let (mut levels, mut given) = (Vec::new(), Vec::new());
                let (rows, _, _) =
                    $reader.read_records(ROWS, Some(&mut levels), None, &mut given)?;
                if rows == 0 {
                    break;
                }
                #[allow(clippy::redundant_closure_call)]
                ($each)(spread(&levels, given, $none));
            }
        };
    }
    match reader {
        ColumnReader::Int64ColumnReader(mut reader) => {
            let Data::Whole(values) = data.get_or_insert(Data::Whole(Vec::new())) else {
                return Err(wrong("a column of two types"));
            };
            all!(reader, NONE, |more: Vec<i64>| values.extend(more));
        }
        ColumnReader::Int32ColumnReader(mut reader) => {
            let Data::Whole(values) = data.get_or_insert(Data::Whole(Vec::new())) else {
                return Err(wrong("a column of two types"));
            };
            loop {
                let (mut levels, mut given) = (Vec::new(), Vec::new());
                let (rows, _, _) =
                    reader.read_records(ROWS, Some(&mut levels), None, &mut given)?;
                if rows == 0 {
                    break;
                }
                let given: Vec<i64> = given.into_iter().map(i64::from).collect();
                values.extend(spread(&levels, given, NONE));
            }
        }
        ColumnReader::FloatColumnReader(mut reader) => {
            let Data::Real(values) = data.get_or_insert(Data::Real(Vec::new())) else {
                return Err(wrong("a column of two types"));
            };
            all!(reader, f32::NAN, |more: Vec<f32>| values
                .extend(more.into_iter().map(f64::from)));
        }
        ColumnReader::BoolColumnReader(mut reader) => {
            let Data::Whole(values) = data.get_or_insert(Data::Whole(Vec::new())) else {
                return Err(wrong("a column of two types"));
            };
            all!(reader, false, |more: Vec<bool>| values
                .extend(more.into_iter().map(i64::from)));
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            let Data::Real(values) = data.get_or_insert(Data::Real(Vec::new())) else {
                return Err(wrong("a column of two types"));
            };
            all!(reader, f64::NAN, |more: Vec<f64>| values.extend(more));
        }
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            let none = || Data::Word {
                codes: Vec::new(),
                words: Vec::new(),
            };
            let Data::Word { codes, words } = data.get_or_insert_with(none) else {
                return Err(wrong("a column of two types"));
            };
            let known = words.iter().cloned().zip(0..);
            let mut places: HashMap<String, u32> = known.collect();
            all!(reader, ByteArray::from(""), |more: Vec<ByteArray>| {
                for word in &more {
                    codes.push(place(word.as_utf8().unwrap_or("?"), &mut places, words));
                }
            });
        }
        _ => return Err(wrong("a column of an unexpected type")),
    }
    Ok(())
}
