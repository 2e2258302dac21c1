//! What is written is read: by this crate, and by the reader of the crate `parquet`.

use std::sync::Arc;

use super::{Cells, File, List, NO_SHORT, NO_WORD, NONE, ROWS, encode, write};

use chappe_core::{Purpose, Seed};
use chappe_trace::{Column, Data};
use parquet::basic::{Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// More rows than a page has, and a last page that no group of eight fills.
const MANY: usize = 2 * ROWS + 13;

fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("chappe-chunk-{name}-{}", std::process::id()))
}

fn random(seed: u64, rows: usize, below: u64) -> Vec<i64> {
    let mut stream = Seed(seed).stream(Purpose::Trial(1));
    (0..rows)
        .map(|_| (stream.next_u64() % below) as i64)
        .collect()
}

/// The values of a column and which rows have one, as the crate's own reader gives them.
fn by_crate(reader: ColumnReader, rows: usize) -> (Vec<i16>, Vec<String>) {
    macro_rules! read {
        ($reader:ident, $shown:expr) => {{
            let (mut levels, mut values) = (Vec::new(), Vec::new());
            while levels.len().max(values.len()) < rows {
                let most = rows;
                let (read, ..) = $reader
                    .read_records(most, Some(&mut levels), None, &mut values)
                    .unwrap();
                assert!(read > 0);
            }
            (levels, values.iter().map($shown).collect())
        }};
    }
    match reader {
        ColumnReader::Int32ColumnReader(mut it) => read!(it, |v| v.to_string()),
        ColumnReader::Int64ColumnReader(mut it) => read!(it, |v| v.to_string()),
        ColumnReader::FloatColumnReader(mut it) => read!(it, |v| f64::from(*v).to_string()),
        ColumnReader::DoubleColumnReader(mut it) => read!(it, |v| v.to_string()),
        ColumnReader::BoolColumnReader(mut it) => read!(it, |v| i64::from(*v).to_string()),
        ColumnReader::ByteArrayColumnReader(mut it) => {
            read!(it, |v: &ByteArray| v.as_utf8().unwrap().to_string())
        }
        _ => panic!("a column of an unexpected type"),
    }
}

/// Writes one column and reads it by this crate and by `parquet`'s own reader: both see `expected`, where `None` is a gap.
fn check(name: &str, cells: Cells<'_>, gaps: bool, expected: &[Option<String>]) {
    let path = path(name);
    let chunk = encode("column", cells, gaps);
    write(
        &File::create(&path).unwrap(),
        "table",
        &[("key", "note".into())],
        &[chunk],
    )
    .unwrap();

    let (notes, columns) = crate::reader::read(File::open(&path).unwrap()).unwrap();
    assert_eq!(
        (notes[0].key.as_str(), notes[0].value.as_deref()),
        ("key", Some("note"))
    );
    let shown: Vec<Option<String>> = match &columns[0].data {
        Data::Whole(values) => (values.iter())
            .map(|value| (*value != NONE || !gaps).then(|| value.to_string()))
            .collect(),
        Data::Real(values) => (values.iter())
            .map(|value| (!value.is_nan() || !gaps).then(|| value.to_string()))
            .collect(),
        Data::Word { codes, words } => {
            let word = |code: &u32| words[*code as usize].clone();
            codes.iter().map(|code| Some(word(code))).collect()
        }
    };
    let without = |gap: &Option<String>| match &columns[0].data {
        // A missing word is read as an empty one.
        Data::Word { .. } => Some(gap.clone().unwrap_or_default()),
        _ => gap.clone(),
    };
    assert!(
        shown.iter().cloned().eq(expected.iter().map(without)),
        "{name}"
    );

    let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let column = file.metadata().row_group(0).column(0).column_descr_ptr();
    let pages = file
        .get_row_group(0)
        .unwrap()
        .get_column_page_reader(0)
        .unwrap();
    let (levels, values) = by_crate(get_column_reader(column, pages), expected.len());
    let there: Vec<String> = expected.iter().flatten().cloned().collect();
    assert!(values == there, "{name}");
    if gaps {
        assert!(
            levels
                .iter()
                .map(|level| *level == 1)
                .eq(expected.iter().map(Option::is_some))
        );
    }
    std::fs::remove_file(path).unwrap();
}

/// Every kind of column, with and without gaps, of no row, one, few, and more than a page: this crate's reader and `parquet`'s
/// own read what was written.
#[test]
fn other_readers_read_what_is_written() {
    for rows in [0, 1, 9, MANY] {
        let some = random(1, rows, 3);
        let whole = random(2, rows, 1 << 20);
        let gap = |row: usize, gaps: bool| gaps && (some[row] == 0 || row / 1000 % 3 == 1);
        for gaps in [false, true] {
            let name = |kind: &str| format!("{kind}-{rows}-{gaps}");
            let shown = |value: &dyn Fn(usize) -> String| -> Vec<Option<String>> {
                (0..rows)
                    .map(|row| (!gap(row, gaps)).then(|| value(row)))
                    .collect()
            };
            for (kind, add) in [("short", -(1 << 19)), ("long", 1 << 45)] {
                let value = |row: usize| whole[row] + add;
                let long: Vec<i64> = (0..rows)
                    .map(|row| if gap(row, gaps) { NONE } else { value(row) })
                    .collect();
                let short = (long.iter()).map(|value| i32::try_from(*value).unwrap_or(NO_SHORT));
                let short: Vec<i32> = short.collect();
                let cells = match kind {
                    "short" => Cells::Short(&short),
                    _ => Cells::Long(&long),
                };
                check(
                    &name(kind),
                    cells,
                    gaps,
                    &shown(&|row| value(row).to_string()),
                );
            }
            // Few distinct numbers, and too many for a list.
            for distinct in [7, 1 << 20] {
                let value = |row: usize| (whole[row] % distinct) as f64 / 8.0;
                let values: Vec<f64> = (0..rows)
                    .map(|row| if gap(row, gaps) { f64::NAN } else { value(row) })
                    .collect();
                let expected = shown(&|row| value(row).to_string());
                let kind = |kind: &str| name(&format!("{kind}-{distinct}"));
                let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
                check(&kind("single"), Cells::Single(&singles), gaps, &expected);
                check(&kind("double"), Cells::Double(&values), gaps, &expected);
            }
            for count in [1, 5] {
                let words: Vec<String> = (0..count).map(|place| format!("word {place}")).collect();
                let code = |row: usize| (whole[row] % count) as u32;
                let codes: Vec<u32> = (0..rows)
                    .map(|row| if gap(row, gaps) { NO_WORD } else { code(row) })
                    .collect();
                let cells = Cells::Listed {
                    codes: &codes,
                    list: List::Words(&words),
                };
                let expected = shown(&|row| words[code(row) as usize].clone());
                check(&name(&format!("words-{count}")), cells, gaps, &expected);
            }
        }
        let yes: Vec<bool> = some.iter().map(|value| *value == 0).collect();
        let expected: Vec<Option<String>> = (yes.iter())
            .map(|value| Some(i64::from(*value).to_string()))
            .collect();
        check(&format!("yes-{rows}"), Cells::Yes(&yes), false, &expected);
    }
}

/// Values that are no number stand as they are in a column without gaps.
#[test]
fn no_number_is_a_value_where_no_gap_may_be() {
    let values = [f64::NAN, -0.0, f64::INFINITY, 0.0];
    let expected = values.map(|value| Some(value.to_string()));
    check("nan", Cells::Double(&values), false, &expected);
}

/// Writes a column by the crate's own writer, with lists of values and without, in pages of both versions.
fn by_crates_writer<T: DataType>(
    name: &str,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Vec<Column> {
    use parquet::file::properties::WriterVersion;
    let mut all = Vec::new();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for listed in [true, false] {
            let path = path(name);
            let properties = WriterProperties::builder()
                .set_compression(parquet::basic::Compression::SNAPPY)
                .set_writer_version(version)
                .set_dictionary_enabled(listed)
                .set_data_page_row_count_limit(1000);
            let field = Type::primitive_type_builder("column", T::get_physical_type())
                .with_repetition(match levels {
                    Some(_) => Repetition::OPTIONAL,
                    None => Repetition::REQUIRED,
                });
            let fields = vec![Arc::new(field.build().unwrap())];
            let schema = Type::group_type_builder("table")
                .with_fields(fields)
                .build();
            let mut writer = SerializedFileWriter::new(
                File::create(&path).unwrap(),
                Arc::new(schema.unwrap()),
                Arc::new(properties.build()),
            )
            .unwrap();
            // Two groups of rows.
            for _ in 0..2 {
                let mut group = writer.next_row_group().unwrap();
                let mut column = group.next_column().unwrap().unwrap();
                column
                    .typed::<T>()
                    .write_batch(values, levels, None)
                    .unwrap();
                column.close().unwrap();
                group.close().unwrap();
            }
            writer.close().unwrap();
            let second = version == WriterVersion::PARQUET_2_0;
            let read = crate::reader::read(File::open(&path).unwrap());
            std::fs::remove_file(path).unwrap();
            match (T::get_physical_type(), second && !listed) {
                // Encodings of the second version for texts and truth values, which no file of Chappe has had.
                (Physical::BYTE_ARRAY, true) => assert!(read.is_err()),
                (Physical::BOOLEAN, _) if second => assert!(read.is_err()),
                _ => all.extend(read.unwrap().1),
            }
        }
    }
    all
}

/// Files that the crate's own writer made, as all of Chappe did at first: the same values come back from every form.
#[test]
fn files_of_the_crates_writer_are_read() {
    let whole = random(3, 3001, 50);
    let levels: Vec<i16> = random(4, 3001, 2)
        .iter()
        .map(|level| *level as i16)
        .collect();
    let there = levels.iter().filter(|level| **level == 1).count();
    fn gapped<T: Copy>(levels: &[i16], values: &[T], none: T) -> Vec<T> {
        let mut values = values.iter().copied();
        let rows = levels.iter().map(|level| match level {
            0 => none,
            _ => values.next().unwrap(),
        });
        rows.collect::<Vec<T>>().repeat(2)
    }
    let short: Vec<i32> = whole.iter().map(|value| *value as i32).collect();
    for column in by_crates_writer::<Int32Type>("int32", &short, None) {
        assert_eq!(column.data, Data::Whole(whole.repeat(2)));
    }
    let long = &whole[..there];
    for column in by_crates_writer::<Int64Type>("int64", long, Some(&levels)) {
        assert_eq!(column.data, Data::Whole(gapped(&levels, long, NONE)));
    }
    let real: Vec<f64> = whole.iter().map(|value| *value as f64 / 4.0).collect();
    for column in by_crates_writer::<DoubleType>("double", &real[..there], Some(&levels)) {
        assert_eq!(
            column.data,
            Data::Real(gapped(&levels, &real[..there], f64::NAN))
        );
    }
    let single: Vec<f32> = real.iter().map(|value| *value as f32).collect();
    for column in by_crates_writer::<FloatType>("float", &single, None) {
        assert_eq!(column.data, Data::Real(real.repeat(2)));
    }
    let yes: Vec<bool> = whole.iter().map(|value| *value < 20).collect();
    let expected: Vec<i64> = yes.iter().map(|yes| i64::from(*yes)).collect();
    for column in by_crates_writer::<BoolType>("bool", &yes, None) {
        assert_eq!(column.data, Data::Whole(expected.repeat(2)));
    }
    let words: Vec<String> = whole.iter().map(|value| format!("w{value}")).collect();
    let arrays: Vec<ByteArray> = words.iter().map(|word| word.as_str().into()).collect();
    let columns = by_crates_writer::<ByteArrayType>("words", &arrays[..there], Some(&levels));
    assert!(!columns.is_empty());
    for column in columns {
        let Data::Word { codes, words: list } = &column.data else {
            panic!("not words");
        };
        let read: Vec<&str> = codes
            .iter()
            .map(|code| list[*code as usize].as_str())
            .collect();
        let given: Vec<&str> = words[..there].iter().map(String::as_str).collect();
        assert_eq!(read, gapped(&levels, &given, ""));
    }
}

/// A file with any octet changed gives an error or some values, without a panic.
#[test]
fn damaged_files_are_read_without_a_panic() {
    let path = path("damaged");
    let values = random(5, 300, 1000);
    let words = ["a".to_string(), "bc".to_string()];
    let codes: Vec<u32> = values.iter().map(|value| (*value % 2) as u32).collect();
    let list = List::Words(&words);
    let chunks = [
        encode("whole", Cells::Long(&values), true),
        encode(
            "word",
            Cells::Listed {
                codes: &codes,
                list,
            },
            false,
        ),
    ];
    write(&File::create(&path).unwrap(), "table", &[], &chunks).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for place in 0..whole.len() {
        for change in [1u8, 0x80, 0xff] {
            let mut octets = whole.clone();
            octets[place] ^= change;
            std::fs::write(&path, octets).unwrap();
            let _ = crate::reader::read(File::open(&path).unwrap());
        }
    }
    std::fs::remove_file(path).unwrap();
}
