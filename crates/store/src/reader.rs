//! Parquet files column by column: any flat table of whole numbers, numbers, truth values and words.
//!
//! The crate `parquet` finds and unpacks the pages; what stands in them is read here, in every encoding that it or [`crate::chunk`] has
//! written into files of Chappe.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use chappe_trace::{Column, Data, NONE};
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::encoding::{Octets, differences, runs, wrong};

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
    let mut columns = Vec::new();
    for (place, column) in whole.schema_descr().columns().iter().enumerate() {
        let mut reading = Reading::new(column.physical_type(), whole.num_rows() as usize)?;
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(wrong("a column that is no flat one"));
        }
        for group in metadata.row_groups() {
            let chunk = group.columns().get(place);
            let chunk = chunk.ok_or_else(|| wrong("a group of rows lacks a column"))?;
            // The crate panics at these.
            let places = [
                Some(chunk.data_page_offset()),
                chunk.dictionary_page_offset(),
            ];
            if chunk.compressed_size() < 0 || places.into_iter().flatten().any(|at| at < 0) {
                return Err(wrong("a column before the file's beginning"));
            }
            let rows = usize::try_from(group.num_rows())?;
            let mut pages = SerializedPageReader::new(file.clone(), chunk, rows, None)?;
            reading.dictionary.clear();
            while let Some(page) = pages.get_next_page()? {
                reading.page(page, column.max_def_level() > 0)?;
            }
        }
        columns.push(Column {
            name: column.name().to_string(),
            data: reading.data,
        });
    }
    Ok((notes, columns))
}

/// A column that is being read. Its values are 64 bits until they are in their place: a whole number, the bits of a number, or a word's
/// place in the list.
struct Reading {
    physical: Physical,
    /// Rows that may still come.
    left: usize,
    dictionary: Vec<u64>,
    /// The places of words.
    places: HashMap<String, u32>,
    data: Data,
}

impl Reading {
    fn new(physical: Physical, rows: usize) -> Result<Reading, ParquetError> {
        Ok(Reading {
            physical,
            left: rows,
            dictionary: Vec::new(),
            places: HashMap::new(),
            data: match physical {
                Physical::INT32 | Physical::INT64 | Physical::BOOLEAN => Data::Whole(Vec::new()),
                Physical::FLOAT | Physical::DOUBLE => Data::Real(Vec::new()),
                Physical::BYTE_ARRAY => Data::Word {
                    codes: Vec::new(),
                    words: Vec::new(),
                },
                _ => return Err(wrong("a column of an unexpected type")),
            },
        })
    }

    fn page(&mut self, page: Page, gaps: bool) -> Result<(), ParquetError> {
        let (rows, encoding) = (page.num_values() as usize, page.encoding());
        let mut octets = Octets(page.buffer());
        if let Page::DictionaryPage { .. } = page {
            // A value has an octet at least, so the page's size bounds their number.
            self.dictionary = self.plain(&mut octets, rows)?;
            return Ok(());
        }
        if rows > self.left {
            return Err(wrong("more rows than the file says"));
        }
        self.left -= rows;
        let levels = match (&page, gaps) {
            (_, false) => None,
            (
                Page::DataPageV2 {
                    def_levels_byte_len,
                    ..
                },
                _,
            ) => Some(octets.take(*def_levels_byte_len as usize)?),
            _ => {
                let length = octets.length()?;
                Some(octets.take(length)?)
            }
        };
        let levels = levels
            .map(|levels| runs(&mut Octets(levels), 1, rows))
            .transpose()?;
        let there = levels.as_ref().map_or(rows, |levels| {
            levels.iter().filter(|level| **level > 0).count()
        });
        let given = self.values(&mut octets, encoding, there)?;
        match levels {
            None => self.append(given.into_iter().map(Some)),
            Some(levels) => {
                let mut given = given.into_iter();
                self.append(levels.into_iter().map(|level| match level {
                    0 => None,
                    _ => given.next(),
                }));
            }
        }
        Ok(())
    }

    /// The values of a page.
    fn values(
        &mut self,
        octets: &mut Octets<'_>,
        encoding: Encoding,
        count: usize,
    ) -> Result<Vec<u64>, ParquetError> {
        let short = self.physical == Physical::INT32;
        let whole = short || self.physical == Physical::INT64;
        match encoding {
            Encoding::PLAIN => self.plain(octets, count),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                // A page without values may lack the width as well.
                let width = match count {
                    0 => 0,
                    _ => octets.take(1)?[0],
                };
                let codes = runs(octets, width.into(), count)?;
                let value = |code: u32| self.dictionary.get(code as usize).copied();
                let values = codes.into_iter().map(value);
                let values = values.collect::<Option<_>>();
                values.ok_or_else(|| wrong("a value that the dictionary lacks"))
            }
            Encoding::DELTA_BINARY_PACKED if whole => {
                let values = differences(octets, count, short)?;
                Ok(values.into_iter().map(|value| value as u64).collect())
            }
            _ => Err(wrong(format!("a column in encoding {encoding}"))),
        }
    }

    fn plain(&mut self, octets: &mut Octets<'_>, count: usize) -> Result<Vec<u64>, ParquetError> {
        fn each<const N: usize>(
            octets: &mut Octets<'_>,
            count: usize,
            value: impl Fn([u8; N]) -> u64,
        ) -> Result<Vec<u64>, ParquetError> {
            let (values, _) = octets.take(count.saturating_mul(N))?.as_chunks();
            Ok(values.iter().map(|octets| value(*octets)).collect())
        }
        match self.physical {
            Physical::INT32 => each(octets, count, |four| {
                i64::from(i32::from_le_bytes(four)) as u64
            }),
            Physical::FLOAT => each(octets, count, |four| {
                f64::from(f32::from_le_bytes(four)).to_bits()
            }),
            Physical::INT64 | Physical::DOUBLE => each(octets, count, u64::from_le_bytes),
            Physical::BOOLEAN => {
                let bits = octets.take(count.div_ceil(8))?;
                let bit = |place: usize| u64::from(bits[place / 8] >> (place % 8) & 1);
                Ok((0..count).map(bit).collect())
            }
            _ => {
                let mut places = Vec::new();
                for _ in 0..count {
                    let length = octets.length()?;
                    let word = std::str::from_utf8(octets.take(length)?);
                    places.push(self.place(word.unwrap_or("?")).into());
                }
                Ok(places)
            }
        }
    }

    /// The place of a word in the list, at its end if it is new.
    fn place(&mut self, word: &str) -> u32 {
        let Data::Word { words, .. } = &mut self.data else {
            return 0;
        };
        if let Some(&place) = self.places.get(word) {
            return place;
        }
        let place = words.len() as u32;
        self.places.insert(word.to_string(), place);
        words.push(word.to_string());
        place
    }

    fn append(&mut self, values: impl Iterator<Item = Option<u64>>) {
        match &mut self.data {
            Data::Whole(all) => all.extend(values.map(|value| value.map_or(NONE, |it| it as i64))),
            Data::Real(all) => {
                all.extend(values.map(|value| value.map_or(f64::NAN, f64::from_bits)))
            }
            Data::Word { .. } => {
                let values: Vec<Option<u64>> = values.collect();
                let none = values.contains(&None).then(|| self.place(""));
                if let Data::Word { codes, .. } = &mut self.data {
                    let code = |value: Option<u64>| value.map_or(none.unwrap_or(0), |it| it as u32);
                    codes.extend(values.into_iter().map(code));
                }
            }
        }
    }
}
