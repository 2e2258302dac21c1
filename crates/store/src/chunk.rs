//! A table as a Parquet file. Each column is encoded alone and in memory; the file takes them one after the other.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use chappe_trace::NONE;
use parquet::basic::{Encoding, EncodingMask, LogicalType, Repetition, Type as Physical};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, Type, TypePtr};

use crate::encoding::{put_differences, put_runs, width_of, wrong};

/// Rows of a page: what is encoded at a time.
const ROWS: usize = 1 << 16;

/// Distinct numbers of a column that stands as places in a list of them. More are written as they are.
const DISTINCT: usize = 1 << 15;

/// No word in a column of words, and no number in a list.
pub(crate) const NO_WORD: u32 = u32::MAX;

/// The values of a column, a row each. In a column with gaps [`NONE`], NaN and [`NO_WORD`] stand for no value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cells<'a> {
    /// Whole numbers that 32 bits hold.
    Short(&'a [i64]),
    Long(&'a [i64]),
    /// Numbers that 32 bits hold.
    Single(&'a [f64]),
    Double(&'a [f64]),
    Yes(&'a [bool]),
    /// Rows as places in a list of values.
    Listed {
        codes: &'a [u32],
        list: List<'a>,
    },
}

/// The distinct values of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List<'a> {
    Single(&'a [f64]),
    Double(&'a [f64]),
    Words(&'a [String]),
}

impl List<'_> {
    fn len(&self) -> usize {
        match self {
            List::Single(values) | List::Double(values) => values.len(),
            List::Words(words) => words.len(),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            List::Single(values) => put_singles(out, values),
            List::Double(values) => put_doubles(out, values),
            List::Words(words) => {
                for word in *words {
                    out.extend((word.len() as u32).to_le_bytes());
                    out.extend(word.as_bytes());
                }
            }
        }
    }
}

fn put_singles(out: &mut Vec<u8>, values: &[f64]) {
    out.extend(
        values
            .iter()
            .flat_map(|value| (*value as f32).to_le_bytes()),
    );
}

fn put_doubles(out: &mut Vec<u8>, values: &[f64]) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

impl<'a> Cells<'a> {
    fn physical(&self) -> Physical {
        match self {
            Cells::Short(_) => Physical::INT32,
            Cells::Long(_) => Physical::INT64,
            Cells::Yes(_) => Physical::BOOLEAN,
            Cells::Single(_) => Physical::FLOAT,
            Cells::Double(_) => Physical::DOUBLE,
            Cells::Listed { list, .. } => match list {
                List::Single(_) => Physical::FLOAT,
                List::Double(_) => Physical::DOUBLE,
                List::Words(_) => Physical::BYTE_ARRAY,
            },
        }
    }

    fn encoding(&self) -> Encoding {
        match self {
            Cells::Short(_) | Cells::Long(_) => Encoding::DELTA_BINARY_PACKED,
            Cells::Listed { .. } => Encoding::RLE_DICTIONARY,
            _ => Encoding::PLAIN,
        }
    }

    fn len(&self) -> usize {
        match self {
            Cells::Short(values) | Cells::Long(values) => values.len(),
            Cells::Single(values) | Cells::Double(values) => values.len(),
            Cells::Yes(values) => values.len(),
            Cells::Listed { codes, .. } => codes.len(),
        }
    }

    /// Rows from `first` on, as many as a page has.
    fn page(&self, first: usize) -> Cells<'a> {
        fn part<T>(values: &[T], first: usize) -> &[T] {
            &values[first..values.len().min(first + ROWS)]
        }
        match *self {
            Cells::Short(values) => Cells::Short(part(values, first)),
            Cells::Long(values) => Cells::Long(part(values, first)),
            Cells::Single(values) => Cells::Single(part(values, first)),
            Cells::Double(values) => Cells::Double(part(values, first)),
            Cells::Yes(values) => Cells::Yes(part(values, first)),
            Cells::Listed { codes, list } => Cells::Listed {
                codes: part(codes, first),
                list,
            },
        }
    }

    /// Appends a page's values, with `gaps` after a list of which rows have one.
    fn put(&self, out: &mut Vec<u8>, gaps: bool) {
        match *self {
            Cells::Short(values) | Cells::Long(values) => {
                let given = given(out, values, gaps, |value| *value != NONE);
                let short = matches!(self, Cells::Short(_));
                put_differences(out, given.as_deref().unwrap_or(values), short);
            }
            Cells::Single(values) | Cells::Double(values) => {
                let given = given(out, values, gaps, |value| !value.is_nan());
                let values = given.as_deref().unwrap_or(values);
                match self {
                    Cells::Single(_) => put_singles(out, values),
                    _ => put_doubles(out, values),
                }
            }
            Cells::Yes(values) => out.extend(values.chunks(8).map(|eight| {
                let bits = eight.iter().rev();
                bits.fold(0u8, |octet, &bit| octet << 1 | u8::from(bit))
            })),
            Cells::Listed { codes, list } => {
                let given = given(out, codes, gaps, |code| *code != NO_WORD);
                let width = width_of((list.len() as u64).saturating_sub(1));
                out.push(width as u8);
                put_runs(out, given.as_deref().unwrap_or(codes), width);
            }
        }
    }
}

/// For a column with gaps: appends which rows have a value, and returns the values.
fn given<T: Copy>(
    out: &mut Vec<u8>,
    values: &[T],
    gaps: bool,
    there: impl Fn(&T) -> bool,
) -> Option<Vec<T>> {
    if !gaps {
        return None;
    }
    let levels: Vec<u32> = values.iter().map(|value| there(value).into()).collect();
    let start = out.len();
    out.extend([0; 4]);
    put_runs(out, &levels, 1);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Some(values.iter().copied().filter(there).collect())
}

/// A column as it stands in a file.
#[derive(Debug)]
pub(crate) struct Chunk {
    name: String,
    physical: Physical,
    encoding: Encoding,
    gaps: bool,
    rows: usize,
    octets: Bytes,
    /// The octets of the page of words, which comes first.
    dictionary: Option<usize>,
}

/// The column `name` as it stands in a file; with `gaps`, values may be missing.
pub(crate) fn encode(name: &str, cells: Cells<'_>, gaps: bool) -> Result<Chunk, ParquetError> {
    let (Cells::Single(values) | Cells::Double(values)) = cells else {
        return encode_as(name, cells, gaps);
    };
    let Some((codes, list)) = listed(values, gaps) else {
        return encode_as(name, cells, gaps);
    };
    let list = match cells {
        Cells::Single(_) => List::Single(&list),
        _ => List::Double(&list),
    };
    let codes = &codes;
    encode_as(name, Cells::Listed { codes, list }, gaps)
}

/// Numbers as places in a list of them, if the list is much shorter. With `gaps` NaN is none of them.
fn listed(values: &[f64], gaps: bool) -> Option<(Vec<u32>, Vec<f64>)> {
    let mut list: Vec<f64> = Vec::new();
    let most = DISTINCT.min(values.len() / 2);
    // For each of more slots than values: a place in the list. A value that meets another one in its slot takes the next one.
    let slots = (2 * most).next_power_of_two();
    let mut places = vec![NO_WORD; slots];
    let mut codes = vec![NO_WORD; values.len()];
    for (code, value) in codes.iter_mut().zip(values) {
        if gaps && value.is_nan() {
            continue;
        }
        let bits = value.to_bits();
        // The product's upper bits depend on all bits of the value.
        let mut slot = (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (slots - 1);
        // A free slot has the place of no value.
        *code = loop {
            let place = places[slot];
            match list.get(place as usize) {
                Some(known) if known.to_bits() == bits => break place,
                Some(_) => slot = (slot + 1) & (slots - 1),
                None if list.len() == most => return None,
                None => {
                    places[slot] = list.len() as u32;
                    list.push(*value);
                    break places[slot];
                }
            }
        };
    }
    Some((codes, list))
}

fn encode_as(name: &str, cells: Cells<'_>, gaps: bool) -> Result<Chunk, ParquetError> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let mut dictionary = None;
    let mut put = |page: Page| -> Result<usize, ParquetError> {
        let octets = page.buffer().len();
        let written = pages.write_page(CompressedPage::new(page, octets))?;
        Ok(written.bytes_written as usize)
    };
    let rows = cells.len();
    if let (Cells::Listed { list, .. }, true) = (cells, rows > 0) {
        let mut octets = Vec::new();
        list.put(&mut octets);
        dictionary = Some(put(Page::DictionaryPage {
            buf: octets.into(),
            num_values: list.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        })?);
    }
    for first in (0..rows).step_by(ROWS) {
        let page = cells.page(first);
        // Most columns need less: pages that grow are copied.
        let mut octets = Vec::with_capacity(4 * page.len());
        page.put(&mut octets, gaps);
        put(Page::DataPage {
            buf: octets.into(),
            num_values: page.len() as u32,
            encoding: cells.encoding(),
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })?;
    }
    Ok(Chunk {
        name: name.to_string(),
        physical: cells.physical(),
        encoding: cells.encoding(),
        gaps,
        rows,
        octets: sink.into_inner()?.into(),
        dictionary,
    })
}

impl Chunk {
    fn field(&self) -> Result<TypePtr, ParquetError> {
        let text = (self.physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(&self.name, self.physical)
            .with_repetition(match self.gaps {
                true => Repetition::OPTIONAL,
                false => Repetition::REQUIRED,
            })
            .with_logical_type(text);
        Ok(Arc::new(field.build()?))
    }

    /// What the end of a file says about this column.
    fn closed(&self, column: ColumnDescPtr) -> Result<ColumnCloseResult, ParquetError> {
        let octets = self.octets.len();
        let encodings = [self.encoding, Encoding::RLE, Encoding::PLAIN];
        let words = usize::from(self.dictionary.is_some());
        let metadata = ColumnChunkMetaData::builder(column)
            .set_encodings_mask(EncodingMask::new_from_encodings(
                encodings[..2 + words].iter(),
            ))
            .set_total_compressed_size(octets as i64)
            .set_total_uncompressed_size(octets as i64)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(self.dictionary.unwrap_or(0) as i64)
            .set_dictionary_page_offset(self.dictionary.map(|_| 0));
        Ok(ColumnCloseResult {
            bytes_written: octets as u64,
            rows_written: self.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        })
    }
}

/// Writes columns of equal length as the table `name`, with notes in its metadata.
pub(crate) fn write(
    file: &File,
    name: &str,
    notes: &[(&str, String)],
    chunks: &[Chunk],
) -> Result<(), ParquetError> {
    let note = |(key, value): &(&str, String)| KeyValue::new(key.to_string(), value.clone());
    let notes = notes.iter().map(note).collect();
    let properties = WriterProperties::builder().set_key_value_metadata(Some(notes));
    let fields = chunks.iter().map(Chunk::field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
    let columns = writer.schema_descr().columns().to_vec();
    if chunks.iter().any(|chunk| chunk.rows != chunks[0].rows) {
        return Err(wrong("columns of different lengths"));
    }
    let mut group = writer.next_row_group()?;
    for (chunk, column) in chunks.iter().zip(columns) {
        group.append_column(&chunk.octets, chunk.closed(column)?)?;
    }
    group.close()?;
    writer.close().map(|_| ())
}

#[cfg(test)]
mod tests;
