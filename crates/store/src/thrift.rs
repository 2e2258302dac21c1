//! Records in Thrift's compact protocol, in which Parquet describes files and pages: as much of it as files of Chappe need.
//!
//! A field is one octet, its kind and how far its number is above the one before, and its value behind it. A record ends with a zero.
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.)

use crate::encoding::{put_varint, put_zigzag};

/// Kinds of values, by their numbers.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The fields of one record, written in the order of their numbers.
pub(crate) struct Fields<'o> {
    out: &'o mut Vec<u8>,
    last: u8,
}

/// Appends a record with the fields that `fill` writes.
pub(crate) fn put_record(out: &mut Vec<u8>, fill: impl FnOnce(&mut Fields<'_>)) {
    let mut fields = Fields { out, last: 0 };
    fill(&mut fields);
    fields.out.push(0);
}

impl Fields<'_> {
    fn head(&mut self, number: u8, kind: u8) {
        self.out.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    /// A number of 32 bits, or one of a list of names.
    pub(crate) fn short(&mut self, number: u8, value: i32) {
        self.head(number, I32);
        put_zigzag(self.out, value.into());
    }

    pub(crate) fn long(&mut self, number: u8, value: usize) {
        self.head(number, I64);
        put_zigzag(self.out, value as i64);
    }

    pub(crate) fn truth(&mut self, number: u8, value: bool) {
        self.head(number, if value { TRUE } else { FALSE });
    }

    pub(crate) fn text(&mut self, number: u8, text: &str) {
        self.head(number, BINARY);
        put_text(self.out, text);
    }

    pub(crate) fn record(&mut self, number: u8, fill: impl FnOnce(&mut Fields<'_>)) {
        self.head(number, STRUCT);
        put_record(self.out, fill);
    }

    /// A list of names, by their numbers.
    pub(crate) fn shorts(&mut self, number: u8, values: &[i32]) {
        self.list(number, I32, values, |out, &value| {
            put_zigzag(out, value.into())
        });
    }

    pub(crate) fn texts(&mut self, number: u8, texts: &[&str]) {
        self.list(number, BINARY, texts, |out, text| put_text(out, text));
    }

    pub(crate) fn records<T>(
        &mut self,
        number: u8,
        items: &[T],
        fill: impl Fn(&mut Fields<'_>, &T),
    ) {
        self.list(number, STRUCT, items, |out, item| {
            put_record(out, |fields| fill(fields, item));
        });
    }

    fn list<T>(&mut self, number: u8, kind: u8, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
        self.head(number, LIST);
        match items.len() {
            count @ 0..15 => self.out.push((count as u8) << 4 | kind),
            count => {
                self.out.push(15 << 4 | kind);
                put_varint(self.out, count as u64);
            }
        }
        items.iter().for_each(|item| put(self.out, item));
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand from the protocol's description: heads, zigzag numbers, a short list and one of more than 14.
    #[test]
    fn records_stand_as_the_protocol_says() {
        let mut out = Vec::new();
        put_record(&mut out, |fields| {
            fields.short(1, -1);
            fields.long(3, 300);
            fields.truth(4, true);
            fields.text(5, "ab");
            fields.record(7, |inner| inner.truth(1, false));
            fields.shorts(8, &[0, 2]);
            fields.texts(9, &["c"]);
        });
        let expected = [
            0x15, 1, 0x26, 0xd8, 4, 0x11, 0x18, 2, b'a', b'b', 0x2c, 0x12, 0, 0x19, 0x25, 0, 4,
            0x19, 0x18, 1, b'c', 0,
        ];
        assert_eq!(out, expected);
        let mut out = Vec::new();
        put_record(&mut out, |fields| fields.shorts(1, &[0; 15]));
        assert_eq!((&out[..3], out.len()), (&[0x19, 0xf5, 15][..], 19));
    }
}
