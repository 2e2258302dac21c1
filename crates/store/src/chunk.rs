//! A table as a Parquet file. Each column is encoded alone and in memory; the file takes them one after the other.
//!
//! The numbers of fields and names are those of the format's description, `parquet.thrift`
//! (<https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>).

use std::fs::File;
use std::io::{self, Write};

use chappe_trace::{NO_SHORT, NONE};

use crate::encoding::{put_long_differences, put_runs, put_short_differences, width_of};
use crate::thrift::{Fields, put_record};

/// Rows of a page: what is encoded at a time.
const ROWS: usize = 1 << 16;

/// Distinct numbers of a column that stands as places in a list of them. More are written as they are.
const DISTINCT: usize = 1 << 15;
/// Values after which a list is given up if most of them were distinct.
const TRIED: usize = 1 << 12;

/// No word in a column of words, and no number in a list.
pub(crate) const NO_WORD: u32 = u32::MAX;

/// The values of a column, a row each. In a column with gaps [`NO_SHORT`], [`NONE`], NaN and [`NO_WORD`] stand for no value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cells<'a> {
    Short(&'a [i32]),
    Long(&'a [i64]),
    Single(&'a [f32]),
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
    Single(&'a [f32]),
    Double(&'a [f64]),
    Words(&'a [String]),
}

/// Types of values, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Physical {
    Boolean = 0,
    Int32 = 1,
    Int64 = 2,
    Float = 4,
    Double = 5,
    ByteArray = 6,
}

/// How values stand in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Plain = 0,
    Rle = 3,
    DeltaBinaryPacked = 5,
    RleDictionary = 8,
}

/// Kinds of pages, by their numbers.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
/// Whether a column may lack values.
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
/// Octets that are text, for readers of the first version.
const UTF8: i32 = 0;
const UNCOMPRESSED: i32 = 0;
/// How a file begins and ends.
const MAGIC: &[u8] = b"PAR1";

/// A number with a fraction.
trait Real: Copy {
    fn bits(self) -> u64;
    fn is_none(self) -> bool;
    fn put(out: &mut Vec<u8>, values: &[Self]);
}

impl Real for f32 {
    fn bits(self) -> u64 {
        self.to_bits().into()
    }

    fn is_none(self) -> bool {
        self.is_nan()
    }

    fn put(out: &mut Vec<u8>, values: &[f32]) {
        out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
}

impl Real for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }

    fn is_none(self) -> bool {
        self.is_nan()
    }

    fn put(out: &mut Vec<u8>, values: &[f64]) {
        out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
}

impl List<'_> {
    fn len(&self) -> usize {
        match self {
            List::Single(values) => values.len(),
            List::Double(values) => values.len(),
            List::Words(words) => words.len(),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            List::Single(values) => Real::put(out, values),
            List::Double(values) => Real::put(out, values),
            List::Words(words) => {
                for word in *words {
                    out.extend((word.len() as u32).to_le_bytes());
                    out.extend(word.as_bytes());
                }
            }
        }
    }
}

impl<'a> Cells<'a> {
    fn physical(&self) -> Physical {
        match self {
            Cells::Short(_) => Physical::Int32,
            Cells::Long(_) => Physical::Int64,
            Cells::Yes(_) => Physical::Boolean,
            Cells::Single(_) => Physical::Float,
            Cells::Double(_) => Physical::Double,
            Cells::Listed { list, .. } => match list {
                List::Single(_) => Physical::Float,
                List::Double(_) => Physical::Double,
                List::Words(_) => Physical::ByteArray,
            },
        }
    }

    fn encoding(&self) -> Encoding {
        match self {
            Cells::Short(_) | Cells::Long(_) => Encoding::DeltaBinaryPacked,
            Cells::Listed { .. } => Encoding::RleDictionary,
            _ => Encoding::Plain,
        }
    }

    fn len(&self) -> usize {
        match self {
            Cells::Short(values) => values.len(),
            Cells::Long(values) => values.len(),
            Cells::Single(values) => values.len(),
            Cells::Double(values) => values.len(),
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
            Cells::Short(values) => {
                let given = given(out, values, gaps, |value| *value != NO_SHORT);
                put_short_differences(out, given.as_deref().unwrap_or(values));
            }
            Cells::Long(values) => {
                let given = given(out, values, gaps, |value| *value != NONE);
                put_long_differences(out, given.as_deref().unwrap_or(values));
            }
            Cells::Single(values) => {
                let given = given(out, values, gaps, |value| !value.is_nan());
                Real::put(out, given.as_deref().unwrap_or(values));
            }
            Cells::Double(values) => {
                let given = given(out, values, gaps, |value| !value.is_nan());
                Real::put(out, given.as_deref().unwrap_or(values));
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
    octets: Vec<u8>,
    /// The octets of the page of a list, which comes first.
    dictionary: Option<usize>,
}

/// The column `name` as it stands in a file; with `gaps`, values may be missing. Numbers with a fraction become a list where that is shorter.
pub(crate) fn encode(name: &str, cells: Cells<'_>, gaps: bool) -> Chunk {
    match cells {
        Cells::Single(values) => {
            if let Some((codes, list)) = listed(values, gaps) {
                let (codes, list) = (&codes, List::Single(&list));
                return encode_as(name, Cells::Listed { codes, list }, gaps);
            }
        }
        Cells::Double(values) => {
            if let Some((codes, list)) = listed(values, gaps) {
                let (codes, list) = (&codes, List::Double(&list));
                return encode_as(name, Cells::Listed { codes, list }, gaps);
            }
        }
        _ => {}
    }
    encode_as(name, cells, gaps)
}

/// Numbers as places in a list of them, if the list is much shorter. With `gaps` NaN is none of them.
fn listed<T: Real>(values: &[T], gaps: bool) -> Option<(Vec<u32>, Vec<T>)> {
    let most = DISTINCT.min(values.len() / 2);
    let (first, others) = values.split_at(values.len().min(TRIED));
    let mut distinct = Distinct::new();
    let mut codes = Vec::with_capacity(values.len());
    for part in [first, others] {
        for value in part {
            if gaps && value.is_none() {
                codes.push(NO_WORD);
                continue;
            }
            let place = distinct.place(*value);
            if place as usize >= most {
                return None;
            }
            codes.push(place);
        }
        if !others.is_empty() && codes.len() == TRIED && distinct.list.len() > TRIED / 2 {
            return None;
        }
    }
    Some((codes, distinct.list))
}

/// Distinct numbers in the order of their first use.
struct Distinct<T> {
    list: Vec<T>,
    /// At least twice as many as numbers: a number's place in the list, or none. One that meets another in its slot takes the next one.
    slots: Vec<u32>,
}

impl<T: Real> Distinct<T> {
    fn new() -> Distinct<T> {
        Distinct {
            list: Vec::new(),
            slots: vec![NO_WORD; 64],
        }
    }

    /// The number's place in the list, at its end if it is new.
    #[inline]
    fn place(&mut self, value: T) -> u32 {
        let slot = self.slot(value.bits());
        match self.slots[slot] {
            NO_WORD => self.enter(value, slot),
            place => place,
        }
    }

    /// Where a number stands among the slots, or should.
    #[inline]
    fn slot(&self, bits: u64) -> usize {
        let last = self.slots.len() - 1;
        // The product's upper bits depend on all bits of the value.
        let mut slot = (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & last;
        while let Some(known) = self.list.get(self.slots[slot] as usize)
            && known.bits() != bits
        {
            slot = (slot + 1) & last;
        }
        slot
    }

    fn enter(&mut self, value: T, slot: usize) -> u32 {
        let place = self.list.len() as u32;
        self.slots[slot] = place;
        self.list.push(value);
        if 2 * self.list.len() > self.slots.len() {
            self.slots = vec![NO_WORD; 2 * self.slots.len()];
            for place in 0..self.list.len() {
                let slot = self.slot(self.list[place].bits());
                self.slots[slot] = place as u32;
            }
        }
        place
    }
}

fn encode_as(name: &str, cells: Cells<'_>, gaps: bool) -> Chunk {
    let rows = cells.len();
    // Most columns need less: pages that grow are copied.
    let mut octets = Vec::with_capacity(4 * rows);
    let mut page = Vec::with_capacity(4 * rows.min(ROWS));
    let mut dictionary = None;
    if let (Cells::Listed { list, .. }, true) = (cells, rows > 0) {
        list.put(&mut page);
        put_page(&mut octets, DICTIONARY_PAGE, &page, |header| {
            header.record(7, |list_page| {
                list_page.short(1, list.len() as i32);
                list_page.short(2, Encoding::Plain as i32);
                list_page.truth(3, false);
            });
        });
        dictionary = Some(octets.len());
    }
    for first in (0..rows).step_by(ROWS) {
        let part = cells.page(first);
        page.clear();
        part.put(&mut page, gaps);
        put_page(&mut octets, DATA_PAGE, &page, |header| {
            header.record(5, |data_page| {
                data_page.short(1, part.len() as i32);
                data_page.short(2, part.encoding() as i32);
                // The levels of repetition and definition.
                data_page.short(3, Encoding::Rle as i32);
                data_page.short(4, Encoding::Rle as i32);
            });
        });
    }
    Chunk {
        name: name.to_string(),
        physical: cells.physical(),
        encoding: cells.encoding(),
        gaps,
        rows,
        octets,
        dictionary,
    }
}

/// Appends a page with its header, of which `fill` writes what pages of its kind have alone.
fn put_page(out: &mut Vec<u8>, kind: i32, page: &[u8], fill: impl FnOnce(&mut Fields<'_>)) {
    put_record(out, |header| {
        header.short(1, kind);
        // With compression and without.
        header.short(2, page.len() as i32);
        header.short(3, page.len() as i32);
        fill(header);
    });
    out.extend_from_slice(page);
}

impl Chunk {
    /// What the schema says of this column.
    fn put_field(&self, field: &mut Fields<'_>) {
        field.short(1, self.physical as i32);
        field.short(3, if self.gaps { OPTIONAL } else { REQUIRED });
        field.text(4, &self.name);
        if self.physical == Physical::ByteArray {
            field.short(6, UTF8);
            // The logical type of a string, which has no parts.
            field.record(10, |logical| logical.record(1, |_| {}));
        }
    }

    /// What the end of a file says about this column, which begins at `start`.
    fn put_end(&self, column: &mut Fields<'_>, start: usize) {
        // An offset of metadata outside the file's end, which there are none of.
        column.long(2, 0);
        column.record(3, |column| {
            column.short(1, self.physical as i32);
            let encodings = [self.encoding, Encoding::Rle, Encoding::Plain].map(|it| it as i32);
            column.shorts(2, &encodings[..2 + usize::from(self.dictionary.is_some())]);
            column.texts(3, &[&self.name]);
            column.short(4, UNCOMPRESSED);
            column.long(5, self.rows);
            column.long(6, self.octets.len());
            column.long(7, self.octets.len());
            column.long(9, start + self.dictionary.unwrap_or(0));
            if self.dictionary.is_some() {
                column.long(11, start);
            }
        });
    }
}

/// Writes columns of equal length as the table `name`, with notes in its metadata.
pub(crate) fn write(
    mut file: &File,
    name: &str,
    notes: &[(&str, String)],
    chunks: &[Chunk],
) -> io::Result<()> {
    let rows = chunks.first().map_or(0, |chunk| chunk.rows);
    if chunks.iter().any(|chunk| chunk.rows != rows) {
        return Err(io::Error::other("columns of different lengths"));
    }
    file.write_all(MAGIC)?;
    let mut at = MAGIC.len();
    let mut placed = Vec::new();
    for chunk in chunks {
        file.write_all(&chunk.octets)?;
        placed.push((at, chunk));
        at += chunk.octets.len();
    }
    let mut end = Vec::new();
    put_record(&mut end, |whole| {
        whole.short(1, VERSION);
        // The root of the schema, then its fields.
        let fields: Vec<Option<&Chunk>> =
            [None].into_iter().chain(chunks.iter().map(Some)).collect();
        whole.records(2, &fields, |field, chunk| match chunk {
            Some(chunk) => chunk.put_field(field),
            None => {
                field.text(4, name);
                field.short(5, chunks.len() as i32);
            }
        });
        whole.long(3, rows);
        whole.records(4, &[()], |group, ()| {
            group.records(1, &placed, |column, (at, chunk)| chunk.put_end(column, *at));
            group.long(2, at - MAGIC.len());
            group.long(3, rows);
        });
        whole.records(5, notes, |note, (key, value)| {
            note.text(1, key);
            note.text(2, value);
        });
        whole.text(6, CREATOR);
    });
    let length = end.len() as u32;
    end.extend(length.to_le_bytes());
    end.extend(MAGIC);
    file.write_all(&end)
}

/// The version of the format, and the program as readers look for it.
const VERSION: i32 = 1;
const CREATOR: &str = concat!("chappe version ", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests;
