//! What a frame of P³ is, for traces.

use chappe_core::Rate;
use chappe_p3::header::{Header, Kind};
use chappe_trace::Label;

/// The kind, the stage that sends it, and the packet. Short headers, of the improved variant, hold a quarter of the stage
/// only, so none is given.
pub fn label(_: Rate, head: &[u8]) -> Label {
    match head {
        &[first, low, high, ..] if first & 0x80 == 0 => Label {
            kind: if first & 0x40 == 0 { "data" } else { "coded" },
            // The highest bits say which group is left out.
            number: Some(u32::from(u16::from_le_bytes([low, high & 0x3f]))),
            ..Label::default()
        },
        _ => match Header::parse(head) {
            Ok((header, _)) => Label {
                kind: match header.kind {
                    Kind::Plan => "plan",
                    Kind::Data => "data",
                    Kind::Coded => "coded",
                    Kind::Ctrl => "ctrl",
                    Kind::Nack => "nack",
                    Kind::Tally => "tally",
                },
                to: None,
                part: Some(header.hop.into()),
                number: Some(header.sequence.into()),
            },
            Err(_) => Label {
                kind: "unknown",
                ..Label::default()
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_named_by_their_headers() {
        let data = label(Rate::Oqpsk250, &[0xd0, 1, 2, 0, 7, 0, 0]);
        assert_eq!(
            (data.kind, data.part, data.number),
            ("data", Some(2), Some(7))
        );
        assert_eq!(label(Rate::Oqpsk250, &[0x40, 5, 0]).kind, "coded");
        assert_eq!(label(Rate::Oqpsk250, &[0xff; 9]).kind, "unknown");
        assert_eq!(label(Rate::Oqpsk250, &[]).kind, "unknown");
    }
}
