//! As much of a 32-bit ELF file as it takes to weigh a firmware image: sections and function symbols (System V ABI,
//! chapter 4).

/// An ELF file and its section table.
pub struct Elf {
    bytes: Vec<u8>,
    sections: Vec<Section>,
}

#[derive(Clone, Debug)]
struct Section {
    name: String,
    kind: u32,
    flags: u32,
    offset: usize,
    size: u32,
    link: usize,
}

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
/// The section is in memory when the program runs, and it is written to.
const ALLOC: u32 = 2;
const WRITE: u32 = 1;
/// Octets of a section's header, and of a symbol.
const HEADER: usize = 40;
const SYMBOL: usize = 16;
const FUNCTION: u8 = 2;

impl Elf {
    /// Reads the section table of a little-endian 32-bit file.
    pub fn parse(bytes: Vec<u8>) -> Result<Elf, String> {
        if bytes.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 1, 1]) {
            return Err("not a little-endian 32-bit ELF file".to_owned());
        }
        let broken = || "the section table is broken".to_owned();
        let table = word(&bytes, 32).ok_or_else(broken)? as usize;
        let count = usize::from(half(&bytes, 48).ok_or_else(broken)?);
        let names = usize::from(half(&bytes, 50).ok_or_else(broken)?);
        let field = |index: usize, at: usize| {
            word(&bytes, table + index * HEADER + 4 * at).ok_or_else(broken)
        };
        let names = field(names, 4)? as usize;
        let mut sections = Vec::new();
        for index in 0..count {
            sections.push(Section {
                name: text(&bytes, names + field(index, 0)? as usize),
                kind: field(index, 1)?,
                flags: field(index, 2)?,
                offset: field(index, 4)? as usize,
                size: field(index, 5)?,
                link: field(index, 6)? as usize,
            });
        }
        Ok(Elf { bytes, sections })
    }

    /// Octets of code and constants, and of the first values of variables.
    pub fn loaded(&self) -> u32 {
        let there = |s: &&Section| s.kind == PROGBITS && s.flags & ALLOC != 0 && s.name != ".sizes";
        self.sections.iter().filter(there).map(|s| s.size).sum()
    }

    /// Octets of variables, those without a first value included.
    pub fn variables(&self) -> u32 {
        let there = |s: &&Section| s.flags & (ALLOC | WRITE) == ALLOC | WRITE;
        self.sections.iter().filter(there).map(|s| s.size).sum()
    }

    /// Octets of the functions whose mangled names `choose` picks.
    pub fn functions(&self, choose: impl Fn(&str) -> bool) -> u32 {
        let mut places = Vec::new();
        for table in self.sections.iter().filter(|s| s.kind == SYMTAB) {
            let names = self.sections.get(table.link).map_or(0, |s| s.offset);
            for at in (table.offset..table.offset + table.size as usize).step_by(SYMBOL) {
                let (Some(name), Some(value), Some(size)) = (
                    word(&self.bytes, at),
                    word(&self.bytes, at + 4),
                    word(&self.bytes, at + 8),
                ) else {
                    continue;
                };
                let function = self
                    .bytes
                    .get(at + 12)
                    .is_some_and(|info| info & 0xf == FUNCTION);
                if function && choose(&text(&self.bytes, names + name as usize)) {
                    places.push((value, size));
                }
            }
        }
        // One function may have several names.
        places.sort_unstable();
        places.dedup();
        places.iter().map(|(_, size)| size).sum()
    }

    /// The 32-bit words of a section.
    pub fn words(&self, name: &str) -> Result<Vec<u32>, String> {
        let section = self.sections.iter().find(|s| s.name == name);
        let section = section.ok_or_else(|| format!("there is no section {name}"))?;
        let places = (section.offset..section.offset + section.size as usize).step_by(4);
        Ok(places.filter_map(|at| word(&self.bytes, at)).collect())
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A string that ends in zero.
fn text(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest
        .iter()
        .position(|&octet| octet == 0)
        .unwrap_or(rest.len());
    String::from_utf8_lossy(&rest[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a code section of 6 octets, a `.sizes` of two words and one function of 4 octets under two names.
    fn planted() -> Vec<u8> {
        let names = b"\0.text\0.sizes\0.symtab\0.strtab\0memcpy\0copy\0";
        let mut bytes = vec![0; 52];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 1, 1]);
        let mut put = |part: &[u8]| {
            let at = bytes.len() as u32;
            bytes.extend_from_slice(part);
            at
        };
        let code = put(&[0; 6]);
        let sizes = put(&[7, 0, 0, 0, 9, 0, 0, 0]);
        let symbol = |name: u32| [name, 0x101, 4, 2].map(u32::to_le_bytes).concat();
        let symbols = put(&[symbol(30), symbol(37)].concat());
        let strings = put(names);
        let header = |name: u32, kind: u32, flags: u32, at: u32, size: u32, link: u32| {
            [name, kind, flags, 0, at, size, link, 0, 0, 0]
                .map(u32::to_le_bytes)
                .concat()
        };
        let table = put(&[
            header(0, 0, 0, 0, 0, 0),
            header(1, PROGBITS, ALLOC, code, 6, 0),
            header(7, PROGBITS, ALLOC, sizes, 8, 0),
            header(14, SYMTAB, 0, symbols, 32, 4),
            header(22, 3, 0, strings, names.len() as u32, 0),
        ]
        .concat());
        bytes[32..36].copy_from_slice(&table.to_le_bytes());
        bytes[48..50].copy_from_slice(&5u16.to_le_bytes());
        bytes[50..52].copy_from_slice(&4u16.to_le_bytes());
        bytes
    }

    #[test]
    fn code_words_and_functions_are_found() {
        let elf = Elf::parse(planted()).unwrap();
        assert_eq!(elf.loaded(), 6);
        assert_eq!(elf.words(".sizes"), Ok(vec![7, 9]));
        assert!(elf.words(".none").is_err());
        assert_eq!(elf.functions(|name| name == "memcpy"), 4);
        assert_eq!(elf.functions(|_| true), 4);
        assert_eq!(elf.functions(|name| name == "memmove"), 0);
    }

    #[test]
    fn a_cut_file_is_refused_or_empty() {
        let whole = planted();
        for len in 0..whole.len() {
            if let Ok(elf) = Elf::parse(whole[..len].to_vec()) {
                let _ = (elf.loaded(), elf.words(".sizes"), elf.functions(|_| true));
            }
        }
        assert!(Elf::parse(b"\x7fELF\x02\x01".to_vec()).is_err());
    }
}
