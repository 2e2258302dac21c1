//! Addresses in compressed form (RFC 6282, 3.1.1 and 3.2).
//!
//! One function expands every form. Compression tries the forms from the shortest on and takes the first that expands to
//! the address, so every compressed address can be expanded, by construction.

use core::net::Ipv6Addr;

use crate::{Malformed, Reader};

/// A prefix that both ends of a link share under a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The context's number, 0 to 15.
    pub id: u8,
    /// The prefix; bits beyond `len` are ignored.
    pub prefix: Ipv6Addr,
    /// Its length in bits, at most 128.
    pub len: u8,
}

/// The interface identifiers that follow from the link-layer addresses of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Interface identifier of the frame's sender.
    pub source: [u8; 8],
    /// Interface identifier of the frame's receiver.
    pub destination: [u8; 8],
}

/// The short form of a 16-bit address: `0000:00ff:fe00:hhll` (RFC 6282, 3.2.2).
const SHORT: [u8; 6] = [0, 0, 0, 0xff, 0xfe, 0];

impl Context {
    /// Puts the context's bits into an address.
    fn apply(&self, octets: &mut [u8; 16]) {
        let prefix = self.prefix.octets();
        let mut left = u32::from(self.len.min(128));
        for (octet, known) in octets.iter_mut().zip(prefix) {
            let mask = match left {
                0 => return,
                1..=7 => !(0xffu8 >> left),
                _ => 0xff,
            };
            *octet = *octet & !mask | known & mask;
            left = left.saturating_sub(8);
        }
    }
}

/// Octets in line for mode 0 to 3 of a unicast address.
pub(super) const fn unicast_len(stateful: bool, mode: u8) -> usize {
    match mode & 3 {
        0 if stateful => 0,
        0 => 16,
        1 => 8,
        2 => 2,
        _ => 0,
    }
}

/// Expands a unicast address. `inline` holds [`unicast_len`] octets; mode 0 with a context is the unspecified
/// address, which only a source may be.
fn expand_unicast(
    context: Option<&Context>,
    mode: u8,
    inline: &[u8],
    link: Option<[u8; 8]>,
) -> Option<Ipv6Addr> {
    let mut octets = [0; 16];
    let (network, interface) = octets.split_at_mut(8);
    match (mode & 3, context) {
        (0, Some(_)) => return Some(Ipv6Addr::UNSPECIFIED),
        (0, None) => return inline.first_chunk::<16>().map(|all| Ipv6Addr::from(*all)),
        (1, _) => interface.copy_from_slice(inline.first_chunk::<8>()?),
        (2, _) => {
            let (fixed, short) = interface.split_at_mut(6);
            fixed.copy_from_slice(&SHORT);
            short.copy_from_slice(inline.first_chunk::<2>()?);
        }
        _ => interface.copy_from_slice(&link?),
    }
    if let Some(prefix) = network.first_chunk_mut::<2>() {
        *prefix = [0xfe, 0x80];
    }
    if let Some(context) = context {
        // RFC 6282: bits of the context, then those in line, then zeros.
        if let Some(prefix) = network.first_chunk_mut::<2>() {
            *prefix = [0, 0];
        }
        context.apply(&mut octets);
    }
    Some(Ipv6Addr::from(octets))
}

/// A unicast address in its shortest form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unicast {
    pub context: Option<u8>,
    pub mode: u8,
    pub inline: [u8; 16],
}

impl Unicast {
    pub fn inline(&self) -> &[u8] {
        let len = unicast_len(self.context.is_some(), self.mode);
        self.inline.get(..len).unwrap_or_default()
    }
}

/// The shortest form of an address. `link` is what its frame's address stands for; `None` if the form must outlive
/// this link.
pub(super) fn compress_unicast(
    address: Ipv6Addr,
    link: Option<[u8; 8]>,
    contexts: &[Context],
    source: bool,
) -> Unicast {
    let octets = address.octets();
    let form = |context: Option<&Context>, mode: u8| {
        let mut inline = [0; 16];
        let len = unicast_len(context.is_some(), mode);
        let tail = octets.get(16 - len..).unwrap_or_default();
        for (place, &octet) in inline.iter_mut().zip(tail) {
            *place = octet;
        }
        let expanded = expand_unicast(context, mode, &inline, link);
        (expanded == Some(address)).then_some(Unicast {
            context: context.map(|context| context.id),
            mode,
            inline,
        })
    };
    let usable = |context: &&Context| context.id < 16;
    if source && address.is_unspecified() {
        // Any context will do: the form says "unspecified".
        return Unicast {
            context: Some(0),
            mode: 0,
            inline: [0; 16],
        };
    }
    for mode in [3, 2, 1] {
        if let Some(found) = form(None, mode) {
            return found;
        }
        let mut with = contexts.iter().filter(usable);
        if let Some(found) = with.find_map(|context| form(Some(context), mode)) {
            return found;
        }
    }
    Unicast {
        context: None,
        mode: 0,
        inline: octets,
    }
}

/// Reads a unicast address. `context` is `None` without state, otherwise the context's number.
pub(super) fn read_unicast(
    reader: &mut Reader<'_>,
    mode: u8,
    context: Option<u8>,
    contexts: &[Context],
    link: [u8; 8],
    source: bool,
) -> Result<Ipv6Addr, Malformed> {
    let stateful = context.is_some();
    if stateful && mode & 3 == 0 {
        // DAM 00 with a context is reserved; SAM 00 means the unspecified address, whatever the context.
        return match source {
            true => Ok(Ipv6Addr::UNSPECIFIED),
            false => Err(Malformed::Illegal),
        };
    }
    let context = match context {
        None => None,
        Some(id) => Some(
            contexts
                .iter()
                .find(|context| context.id == id)
                .ok_or(Malformed::Illegal)?,
        ),
    };
    let mut inline = [0; 16];
    for place in inline.iter_mut().take(unicast_len(stateful, mode)) {
        *place = reader.octet()?;
    }
    expand_unicast(context, mode, &inline, Some(link)).ok_or(Malformed::Illegal)
}

/// A multicast address without context in its shortest form: mode, octets in line.
pub(super) fn compress_multicast(address: Ipv6Addr) -> (u8, [u8; 16], usize) {
    let octets = address.octets();
    let [_, flags, _, _, _, _, _, _, _, _, _, a, b, c, d, e] = octets;
    let zero = |from: usize, to: usize| {
        octets
            .get(from..to)
            .is_some_and(|middle| middle.iter().all(|&octet| octet == 0))
    };
    let mut inline = [0; 16];
    let mut keep = |kept: &[u8]| {
        for (place, &octet) in inline.iter_mut().zip(kept) {
            *place = octet;
        }
        kept.len()
    };
    let (mode, len) = if flags == 2 && zero(2, 15) {
        (3, keep(&[e]))
    } else if zero(2, 13) {
        (2, keep(&[flags, c, d, e]))
    } else if zero(2, 11) {
        (1, keep(&[flags, a, b, c, d, e]))
    } else {
        (0, keep(&octets))
    };
    (mode, inline, len)
}

/// Reads a multicast address.
pub(super) fn read_multicast(
    reader: &mut Reader<'_>,
    mode: u8,
    context: Option<u8>,
    contexts: &[Context],
) -> Result<Ipv6Addr, Malformed> {
    let octets = match (context, mode & 3) {
        (None, 0) => reader.take()?,
        (None, 1) => {
            let [flags, a, b, c, d, e] = reader.take()?;
            [0xff, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, e]
        }
        (None, 2) => {
            let [flags, c, d, e] = reader.take()?;
            [0xff, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, c, d, e]
        }
        (None, _) => [
            0xff,
            2,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            reader.octet()?,
        ],
        // Unicast-prefix-based (RFC 3306, RFC 3956): ffXX:XXLL:PPPP:PPPP:PPPP:PPPP:XXXX:XXXX.
        (Some(id), 0) => {
            let [a, b, w, x, y, z] = reader.take()?;
            let found = contexts.iter().find(|context| context.id == id);
            let context = found.filter(|context| context.len <= 64);
            let context = context.ok_or(Malformed::Illegal)?;
            let mut prefix = [0; 16];
            context.apply(&mut prefix);
            let [p, q, r, s, t, u, v, o, ..] = prefix;
            [0xff, a, b, context.len, p, q, r, s, t, u, v, o, w, x, y, z]
        }
        (Some(_), _) => return Err(Malformed::Illegal),
    };
    Ok(Ipv6Addr::from(octets))
}
