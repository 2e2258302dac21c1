//! What a frame in a slot is, for traces.

use chappe_core::Rate;
use chappe_trace::{Label, carried, standard};
use chappe_wildnet::header;

/// What 802.11's header says; a data frame is named by what it carries, and has its sequence number. Not for stations under the DCF,
/// whose frames carry the hosts' packets.
pub fn label(rate: Rate, head: &[u8]) -> Label {
    let outer = standard(rate, head);
    match carried(rate, head).and_then(header::peek) {
        Some((kind, number)) => Label {
            kind,
            number: Some(number),
            ..outer
        },
        None => outer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_wildnet::header::{Frame, Kind};

    #[test]
    fn frames_are_named_by_what_they_carry() {
        let named = |kind: Kind<'_>| {
            let frame = Frame {
                number: 9,
                epoch: 0,
                kind,
                base: 40,
                slot: None,
                ack: None,
                last: false,
            };
            let mut head = vec![0; 24];
            head[0] = 0x08;
            head.extend([0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5]);
            let mut body = [0; 64];
            let len = frame.emit(&mut body).unwrap();
            head.extend(&body[..len]);
            let label = label(Rate::Cck11, &head);
            (label.kind, label.number)
        };
        let body = &[0; 12][..];
        assert_eq!(named(Kind::Data { seq: 42, body }), ("data", Some(42)));
        let repair = Kind::Repair {
            first: 41,
            index: 0,
            cover: &[3],
            coded: body,
        };
        assert_eq!(named(repair), ("repair", Some(41)));
        assert_eq!(named(Kind::Note { next: 43 }), ("note", Some(43)));
    }
}
