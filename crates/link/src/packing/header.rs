//! TCP header compression: fields that do not differ from the previous packet of the flow are omitted.
//!
//! This is Van Jacobson's scheme (RFC 1144) with timestamps (RFC 7323) and IPv6 added. Of 52 octets it leaves some five for
//! a segment with data and some eight for an acknowledgement. Both ends keep the last header of each flow. They agree,
//! because the packets of a flow arrive once and in order. If they do not agree (an end has restarted, a packet was given
//! up), a count in each short header reveals it, and the next whole header resynchronises them. TCP's checksum is sent
//! unchanged, so the receiving kernel verifies the packet that was sent.
//!
//! ```text
//! 0   short headers of the flow since its last whole one, modulo 256
//! 1   which fields follow: sequence, acknowledgement, window, both stamps, identification, flags
//! 2   TCP's checksum (2)
//!     fields: changes as groups of seven bits, lowest first; window, identification and flags as they are
//!     payload
//! ```

/// Longest header that is kept: IPv6, and TCP with all options.
const HEADER_MAX: usize = 40 + 60;
/// Flags of the fields that a short header contains.
const SEQUENCE: u8 = 1;
const ACKNOWLEDGEMENT: u8 = 2;
const WINDOW: u8 = 4;
const STAMP: u8 = 8;
const ECHO: u8 = 16;
const IDENTIFICATION: u8 = 32;
const FLAGS: u8 = 64;

const TCP: u8 = 6;
/// FIN, SYN, RST and URG: such packets keep their headers.
const RARE: u8 = 0x27;
const ACK: u8 = 0x10;

/// The last header of each flow in one direction, at one end.
#[derive(Clone, Debug)]
pub(crate) struct Headers(Vec<Option<Last>>);

#[derive(Clone, Debug)]
struct Last {
    octets: [u8; HEADER_MAX],
    shape: Shape,
    payload: usize,
    count: u8,
}

/// The layout of a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Octets of the IP header, and of IP and TCP headers together.
    ip: usize,
    all: usize,
    /// Offset of the two timestamps, if the option is there.
    stamps: Option<usize>,
}

impl Headers {
    /// No header is known yet. `flows` is the number of flows.
    pub fn new(flows: usize) -> Headers {
        Headers(vec![None; flows])
    }

    /// Forgets all headers: the next packet of each flow goes with a whole one.
    pub fn clear(&mut self) {
        self.0.fill(None);
    }

    /// Writes the packet with a short header to `out`; false if that is impossible. In either case the packet becomes the
    /// last one of the flow.
    pub fn shorten(&mut self, flow: usize, packet: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(shape) = Shape::of(packet) else {
            return false;
        };
        out.clear();
        let last = self.0.get(flow).and_then(Option::as_ref);
        let short = last.is_some_and(|last| last.shape == shape && last.write(packet, out));
        self.learn(flow, packet, shape, short);
        short
    }

    /// Notes a packet that arrived with a whole header.
    pub fn see(&mut self, flow: usize, packet: &[u8]) {
        if let Some(shape) = Shape::of(packet) {
            self.learn(flow, packet, shape, false);
        }
    }

    /// Restores a packet with a short header to `out` and returns its length; `None` if it does not follow the last one.
    pub fn restore(&mut self, flow: usize, short: &[u8], out: &mut [u8]) -> Option<usize> {
        let last = self.0.get(flow)?.as_ref()?;
        let shape = last.shape;
        let len = last.read(short, out)?;
        self.learn(flow, out.get(..len)?, shape, true);
        Some(len)
    }

    /// Keeps the header. The count restarts with each whole header, which resynchronises the ends.
    fn learn(&mut self, flow: usize, packet: &[u8], shape: Shape, short: bool) {
        let Some(place) = self.0.get_mut(flow) else {
            return;
        };
        let last = place.as_ref().filter(|_| short);
        let count = last.map_or(0, |last| last.count.wrapping_add(1));
        let last = place.get_or_insert(Last {
            octets: [0; HEADER_MAX],
            shape,
            payload: 0,
            count: 0,
        });
        if let (Some(to), Some(from)) = (last.octets.get_mut(..shape.all), packet.get(..shape.all))
        {
            to.copy_from_slice(from);
        }
        (last.shape, last.payload) = (shape, packet.len() - shape.all);
        last.count = count;
    }
}

impl Shape {
    /// The layout of a packet if its header can be compressed or learned.
    fn of(packet: &[u8]) -> Option<Shape> {
        let ip = match packet.first()? {
            0x45 => {
                let header = packet.first_chunk::<20>()?;
                let whole =
                    u16(header, 6) & 0x3fff == 0 && usize::from(u16(header, 2)) == packet.len();
                // The checksum is recomputed at the other end, so a wrong one would be corrected silently.
                (header[9] == TCP && whole && sum(header) == 0).then_some(20)?
            }
            first if first >> 4 == 6 => {
                let header = packet.first_chunk::<40>()?;
                let whole = usize::from(u16(header, 4)) == packet.len() - 40;
                (header[6] == TCP && whole).then_some(40)?
            }
            _ => return None,
        };
        let tcp = packet.get(ip..)?.first_chunk::<20>()?;
        let all = ip + usize::from(tcp[12] >> 4) * 4;
        if all < ip + 20 || all > packet.len() || tcp[13] & RARE != 0 || tcp[13] & ACK == 0 {
            return None;
        }
        Some(Shape {
            ip,
            all,
            stamps: stamps(packet.get(ip + 20..all)?).map(|at| ip + 20 + at),
        })
    }
}

/// The offset of the timestamps among TCP's options.
fn stamps(options: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match (options.get(at)?, options.get(at + 1)) {
            (0, _) => return None,
            (1, _) => at += 1,
            (8, Some(10)) => return options.get(at + 2..at + 10).map(|_| at + 2),
            (_, Some(&len)) if len >= 2 => at += usize::from(len),
            _ => return None,
        }
    }
}

impl Last {
    /// Encodes a packet relative to this header; false if a field differs that short headers do not have.
    fn write(&self, packet: &[u8], out: &mut Vec<u8>) -> bool {
        let Shape { ip, all, stamps } = self.shape;
        let (Some(header), Some(old)) = (packet.get(..all), self.octets.get(..all)) else {
            return false;
        };
        let mut same = [0; HEADER_MAX];
        let Some(same) = same.get_mut(..all) else {
            return false;
        };
        same.copy_from_slice(header);
        for (at, len) in changing(self.shape) {
            same[at..at + len].copy_from_slice(&old[at..at + len]);
        }
        if same != old {
            return false;
        }
        out.extend([self.count, 0]);
        out.extend(&header[ip + 16..ip + 18]);
        let mut fields = 0;
        let mut change = |field: u8, at: usize, expected: u32, out: &mut Vec<u8>| {
            let change = u32(header, at).wrapping_sub(expected);
            if change != 0 {
                fields |= field;
                put(out, change);
            }
        };
        let next = u32(old, ip + 4).wrapping_add(self.payload as u32);
        change(SEQUENCE, ip + 4, next, out);
        change(ACKNOWLEDGEMENT, ip + 8, u32(old, ip + 8), out);
        if let Some(at) = stamps {
            change(STAMP, at, u32(old, at), out);
            change(ECHO, at + 4, u32(old, at + 4), out);
        }
        if header[ip + 14..ip + 16] != old[ip + 14..ip + 16] {
            fields |= WINDOW;
            out.extend(&header[ip + 14..ip + 16]);
        }
        if ip == 20 && u16(header, 4) != u16(old, 4).wrapping_add(1) {
            fields |= IDENTIFICATION;
            out.extend(&header[4..6]);
        }
        if header[ip + 13] != old[ip + 13] {
            fields |= FLAGS;
            out.push(header[ip + 13]);
        }
        out[1] = fields;
        out.extend(&packet[all..]);
        true
    }

    /// Decodes the output of [`write`](Self::write). It is authentic, but may come from another release, so it is checked.
    fn read(&self, short: &[u8], out: &mut [u8]) -> Option<usize> {
        let Shape { ip, all, stamps } = self.shape;
        let (&[count, fields, high, low], mut rest) = short.split_first_chunk::<4>()?;
        if count != self.count {
            return None;
        }
        let mut header = [0; HEADER_MAX];
        let old = &self.octets;
        header.copy_from_slice(old);
        let mut change = |field: u8, at: usize, expected: u32, rest: &mut &[u8]| {
            let change = if fields & field == 0 { 0 } else { take(rest)? };
            header[at..at + 4].copy_from_slice(&expected.wrapping_add(change).to_be_bytes());
            Some(())
        };
        let next = u32(old, ip + 4).wrapping_add(self.payload as u32);
        change(SEQUENCE, ip + 4, next, &mut rest)?;
        change(ACKNOWLEDGEMENT, ip + 8, u32(old, ip + 8), &mut rest)?;
        if let Some(at) = stamps {
            change(STAMP, at, u32(old, at), &mut rest)?;
            change(ECHO, at + 4, u32(old, at + 4), &mut rest)?;
        }
        if fields & WINDOW != 0 {
            header[ip + 14..ip + 16].copy_from_slice(rest.split_off(..2)?);
        }
        if ip == 20 {
            let usual = u16(old, 4).wrapping_add(1).to_be_bytes();
            let given = fields & IDENTIFICATION != 0;
            let identification = if given { rest.split_off(..2)? } else { &usual };
            header[4..6].copy_from_slice(identification);
        }
        if fields & FLAGS != 0 {
            header[ip + 13] = *rest.split_off_first()?;
        }
        header[ip + 16..ip + 18].copy_from_slice(&[high, low]);
        let len = all + rest.len();
        if ip == 20 {
            header[2..4].copy_from_slice(&u16::try_from(len).ok()?.to_be_bytes());
            header[10..12].fill(0);
            let check = sum(&header[..20]).to_be_bytes();
            header[10..12].copy_from_slice(&check);
        } else {
            header[4..6].copy_from_slice(&u16::try_from(len - 40).ok()?.to_be_bytes());
        }
        let (front, payload) = out.get_mut(..len)?.split_at_mut(all);
        front.copy_from_slice(header.get(..all)?);
        payload.copy_from_slice(rest);
        Some(len)
    }
}

/// Offsets and lengths of the fields that may differ.
fn changing(shape: Shape) -> impl Iterator<Item = (usize, usize)> {
    let Shape { ip, stamps, .. } = shape;
    // IPv4: length and identification, checksum; IPv6: length.
    let below = if ip == 20 {
        [(2, 4), (10, 2)]
    } else {
        [(4, 2), (4, 2)]
    };
    // Sequence and acknowledgement; flags, window and checksum.
    let tcp = [(ip + 4, 8), (ip + 13, 5)];
    below.into_iter().chain(tcp).chain(stamps.map(|at| (at, 8)))
}

fn put(out: &mut Vec<u8>, mut value: u32) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in [0, 7, 14, 21, 28] {
        let octet = *rest.split_off_first()?;
        value |= u32::from(octet & 0x7f) << shift;
        if octet < 0x80 {
            return Some(value);
        }
    }
    None
}

fn u16(octets: &[u8], at: usize) -> u16 {
    let place = octets.get(at..at + 2).and_then(<[u8]>::first_chunk);
    place.map_or(0, |place| u16::from_be_bytes(*place))
}

fn u32(octets: &[u8], at: usize) -> u32 {
    let place = octets.get(at..at + 4).and_then(<[u8]>::first_chunk);
    place.map_or(0, |place| u32::from_be_bytes(*place))
}

/// IPv4's checksum over a header of even length: 0 if the header's own is right (RFC 1071).
fn sum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|word| u32::from(u16(word, 0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// A segment with stamps; `six`: over IPv6.
    fn segment(six: bool, fields: [u32; 6], payload: &[u8]) -> Vec<u8> {
        let [seq, ack, window, stamp, echo, identification] = fields;
        let mut packet = if six {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, 6, 64];
            ip.extend([0xfd; 32]);
            let len = (32 + payload.len()) as u16;
            ip[4..6].copy_from_slice(&len.to_be_bytes());
            ip
        } else {
            let mut ip = vec![
                0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ];
            ip[2..4].copy_from_slice(&((52 + payload.len()) as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&(identification as u16).to_be_bytes());
            let check = sum(&ip);
            ip[10..12].copy_from_slice(&check.to_be_bytes());
            ip
        };
        packet.extend([0x14, 0x51, 0x9c, 0x40]);
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([0x80, 0x10]);
        packet.extend((window as u16).to_be_bytes());
        packet.extend([0xab, payload.len() as u8, 0, 0, 1, 1, 8, 10]);
        packet.extend(stamp.to_be_bytes());
        packet.extend(echo.to_be_bytes());
        packet.extend(payload);
        packet
    }

    /// Goal: what comes out is what went in, and a flow's usual packets are short. Method: a transfer with a
    /// retransmission, wrapped numbers and a changed window, over both versions of IP.
    #[test]
    fn a_flow_round_trips() {
        for six in [false, true] {
            let (mut near, mut far) = (Headers::new(64), Headers::new(64));
            let (mut short, mut whole) = (Vec::new(), [0; 2048]);
            let mut seq = u32::MAX - 5_000;
            for i in 0..200u32 {
                let again = if i == 50 { 2_896 } else { 0 };
                let fields = [seq.wrapping_sub(again), 7, 500 + i / 60, i / 3, i / 5, i];
                let packet = segment(six, fields, &[i as u8; 1448]);
                seq = seq.wrapping_add(1448).wrapping_sub(again);
                let is_short = near.shorten(9, &packet, &mut short);
                assert_eq!(is_short, i > 0);
                if is_short {
                    assert!(
                        short.len() <= 1448 + if i % 50 == 0 { 13 } else { 8 },
                        "{i}: {}",
                        short.len()
                    );
                    let len = far.restore(9, &short, &mut whole).unwrap();
                    assert_eq!(whole[..len], packet);
                } else {
                    far.see(9, &packet);
                }
            }
        }
    }

    /// A packet that is missing is noticed, whole ones bring the ends together again.
    #[test]
    fn a_header_out_of_sequence_is_not_restored() {
        let (mut near, mut far) = (Headers::new(1), Headers::new(1));
        let (mut short, mut whole) = (Vec::new(), [0; 2048]);
        let packet = |i: u32| segment(false, [i, 7, 5, i, 1, i], &[3; 9]);
        near.shorten(0, &packet(0), &mut short);
        far.see(0, &packet(0));
        assert!(near.shorten(0, &packet(1), &mut short));
        assert!(near.shorten(0, &packet(2), &mut short));
        assert_eq!(far.restore(0, &short, &mut whole), None);
        near.clear();
        assert!(!near.shorten(0, &packet(3), &mut short));
        far.see(0, &packet(3));
        assert!(near.shorten(0, &packet(4), &mut short));
        let len = far.restore(0, &short, &mut whole).unwrap();
        assert_eq!(whole[..len], packet(4));
    }

    #[test]
    fn unusual_packets_keep_their_headers() {
        let (mut near, mut short) = (Headers::new(1), Vec::new());
        let plain = segment(false, [1, 2, 3, 4, 5, 6], &[1; 50]);
        near.shorten(0, &plain, &mut short);
        let changed = |at: usize, to: u8| {
            let mut packet = plain.clone();
            packet[at] = to;
            packet
        };
        // Another host, another protocol, FIN, a fragment, a wrong checksum of IP.
        for packet in [
            changed(15, 9),
            changed(9, 17),
            changed(33, 0x11),
            changed(6, 0x20),
            changed(11, 0),
        ] {
            assert!(!near.clone().shorten(0, &packet, &mut short));
        }
        assert!(near.shorten(0, &plain, &mut short));
    }

    #[test]
    fn random_octets_never_panic() {
        let mut random = Seed(4).stream(Purpose::Trial(0));
        let mut far = Headers::new(1);
        far.see(0, &segment(false, [1, 2, 3, 4, 5, 6], &[1; 50]));
        let (mut octets, mut whole) = ([0; 40], [0; 80]);
        for _ in 0..20_000 {
            random.fill(&mut octets);
            octets[0] = 0;
            let len = random.below(41) as usize;
            let _ = far.clone().restore(0, &octets[..len], &mut whole);
            octets[0] = 0x45;
            far.clone().see(0, &octets[..len]);
        }
    }
}
