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

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

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

    fn physical(&self) -> Physical {
        match self.values {
            Values::Whole(_) => Physical::INT64,
            Values::Real(_) => Physical::DOUBLE,
            Values::Yes(_) => Physical::BOOLEAN,
            Values::Text(_) => Physical::BYTE_ARRAY,
        }
    }
}

/// Writes columns of equal length to a file, completely or not at all.
pub fn write(path: &Path, notes: &[(&str, String)], columns: &[Column]) -> Result<(), StoreError> {
    write_whole(path, |file| {
        encode(file, notes, columns).map_err(|error| io::Error::other(error.to_string()))
    })
}

pub(crate) fn encode(
    file: &mut File,
    notes: &[(&str, String)],
    columns: &[Column],
) -> Result<(), ParquetError> {
    let notes = notes
        .iter()
        .map(|(key, value)| KeyValue::new(key.to_string(), value.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(notes.collect()))
        .build();
    let mut writer = SerializedFileWriter::new(file, schema(columns)?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        write_column(&mut group, column)?;
    }
    group.close()?;
    writer.close().map(|_| ())
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let mut fields = Vec::new();
    for column in columns {
        let repetition = match column.optional {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let text = (column.physical() == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(&column.name, column.physical())
            .with_repetition(repetition)
            .with_logical_type(text)
            .build()?;
        fields.push(Arc::new(field));
    }
    Ok(Arc::new(
        Type::group_type_builder("flow")
            .with_fields(fields)
            .build()?,
    ))
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, &mut File>,
    column: &Column,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General(
            "fewer columns than the schema has".into(),
        ));
    };
    match (writer.untyped(), &column.values) {
        (ColumnWriter::Int64ColumnWriter(out), Values::Whole(values)) => {
            out.write_batch(values, None, None)?;
        }
        (ColumnWriter::BoolColumnWriter(out), Values::Yes(values)) => {
            out.write_batch(values, None, None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(out), Values::Text(values)) => {
            let given: Vec<ByteArray> = values
                .iter()
                .flatten()
                .map(|text| text.as_str().into())
                .collect();
            out.write_batch(&given, levels(values, column).as_deref(), None)?;
        }
        (ColumnWriter::DoubleColumnWriter(out), Values::Real(values)) => {
            let given: Vec<f64> = values.iter().copied().flatten().collect();
            out.write_batch(&given, levels(values, column).as_deref(), None)?;
        }
        _ => {
            return Err(ParquetError::General(
                "a column of an unexpected type".into(),
            ));
        }
    }
    writer.close()
}

/// Which values are there, for a column that may lack some.
fn levels<T>(values: &[Option<T>], column: &Column) -> Option<Vec<i16>> {
    let there = values.iter().map(|value| i16::from(value.is_some()));
    column.optional.then(|| there.collect())
}
