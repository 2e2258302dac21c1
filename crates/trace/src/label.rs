//! What a frame is, from its octets.

use chappe_core::{Address, Rate};

/// What a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Its kind in `snake_case`: `data`, `ack`, `rts`, or the name that the protocol gives it.
    pub kind: &'static str,
    /// The node that it is addressed to; `None` for all.
    pub to: Option<u16>,
    /// The part of the transfer: a batch, a stage of a pipeline, a slot.
    pub part: Option<u32>,
    /// Its number: a packet, a sequence number.
    pub number: Option<u32>,
}

/// Tells what a frame is from its PSDU. It is called once for each frame that is sent.
pub type Labeller = fn(Rate, &[u8]) -> Label;

/// What the standards' headers say: 802.15.4 at 250 kbit/s, 802.11 at all other rates.
pub fn standard(rate: Rate, head: &[u8]) -> Label {
    match rate {
        Rate::Oqpsk250 => dot15d4(head),
        _ => dot11(head),
    }
}

/// What an 802.11 data frame carries behind its header and LLC/SNAP; `None` for other frames. The header has 24 octets, or 26 with
/// QoS control (IEEE 802.11-2020, 9.3.2.1).
pub fn carried(rate: Rate, head: &[u8]) -> Option<&[u8]> {
    let control = *head.first()?;
    if rate == Rate::Oqpsk250 || control >> 2 & 3 != 2 {
        return None;
    }
    let header = if control & 0x80 == 0 { 24 } else { 26 };
    // DSAP, SSAP, control, then organisation and EtherType (RFC 1042).
    head.get(header..)?.strip_prefix(&[0xaa, 0xaa, 3])?.get(5..)
}

/// Frame control and the first address (IEEE 802.11-2020, 9.2.4.1).
fn dot11(head: &[u8]) -> Label {
    let Some((&control, &[a, b, c, d, e, f])) = head
        .first()
        .zip(head.get(4..10).and_then(|octets| octets.first_chunk::<6>()))
    else {
        return Label {
            kind: "unknown",
            ..Label::default()
        };
    };
    let kind = match (control >> 2 & 3, control >> 4) {
        (0, _) => "management",
        (1, 11) => "rts",
        (1, 12) => "cts",
        (1, 13) => "ack",
        (1, _) => "control",
        (2, _) => "data",
        _ => "unknown",
    };
    Label {
        kind,
        to: Address::from_eui48([a, b, c, d, e, f]).node_number(),
        ..Label::default()
    }
}

/// Frame type and a short destination address (IEEE 802.15.4-2015, 7.2.2).
fn dot15d4(head: &[u8]) -> Label {
    let (&first, &second) = match head {
        [first, second, ..] => (first, second),
        _ => (&0xff, &0),
    };
    let kind = match first & 7 {
        0 => "beacon",
        1 => "data",
        2 => "ack",
        3 => "command",
        _ => "unknown",
    };
    // Control, sequence number, PAN, then the address if it is short.
    let to = match (second >> 2 & 3, head.get(5..7)) {
        (2, Some(&[low, high])) => Some(u16::from_le_bytes([low, high])),
        _ => None,
    };
    Label {
        kind,
        to: to.filter(|&to| to != 0xffff),
        ..Label::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standards_headers_are_named() {
        let mut ack = vec![0xd4, 0, 0, 0];
        ack.extend(Address::node(3).to_eui48());
        let label = standard(Rate::Dsss2, &ack);
        assert_eq!((label.kind, label.to), ("ack", Some(3)));
        let mut data = vec![0x08, 0, 0, 0];
        data.extend([0xff; 6]);
        let label = standard(Rate::Dsss2, &data);
        assert_eq!((label.kind, label.to), ("data", None));
        let label = standard(Rate::Oqpsk250, &[0x41, 0x88, 1, 0, 0, 7, 0]);
        assert_eq!((label.kind, label.to), ("data", Some(7)));
        for len in 0..12 {
            for octet in 0..=255 {
                carried(Rate::Dsss2, &vec![octet; len]);
                standard(Rate::Dsss2, &vec![octet; len]);
                standard(Rate::Oqpsk250, &vec![octet; len]);
            }
        }
    }

    #[test]
    fn what_a_data_frame_carries_is_behind_its_headers() {
        let llc = [0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5, 7];
        let frame = |control: u8, header: usize| {
            let mut head = vec![0; header];
            head[0] = control;
            head.extend(llc);
            head
        };
        assert_eq!(carried(Rate::Dsss2, &frame(0x08, 24)), Some(&[7][..]));
        assert_eq!(carried(Rate::Dsss2, &frame(0x88, 26)), Some(&[7][..]));
        assert_eq!(carried(Rate::Dsss2, &frame(0xd4, 24)), None);
        assert_eq!(carried(Rate::Oqpsk250, &frame(0x08, 24)), None);
        assert_eq!(carried(Rate::Dsss2, &frame(0x08, 23)), None);
    }
}
