//! What a frame of Pacifier is, for traces.

use chappe_core::Rate;
use chappe_pacifier::peek;
use chappe_trace::{Label, carried, standard};

/// What 802.11's header says; a data frame is named by what it carries, and has its batch.
pub fn label(rate: Rate, head: &[u8]) -> Label {
    let outer = standard(rate, head);
    match carried(rate, head).and_then(peek) {
        Some((kind, part)) => Label {
            kind,
            part,
            ..outer
        },
        None => outer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broadcast of node 2 that carries `sdu`.
    fn frame(sdu: &[u8]) -> Vec<u8> {
        let mut head = vec![0x08, 0, 0, 0];
        head.extend([0xff; 6]);
        head.resize(24, 0);
        head.extend([0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5]);
        head.extend(sdu);
        head
    }

    #[test]
    fn frames_are_named_by_what_they_carry() {
        let named = |sdu: &[u8]| {
            let label = label(Rate::Dsss2, &frame(sdu));
            (label.kind, label.part)
        };
        assert_eq!(
            named(&[0x11, 0, 1, 0, 0, 0, 0, 0, 7, 9]),
            ("coded", Some(7))
        );
        assert_eq!(
            named(&[0x12, 0, 1, 0, 0, 0, 5, 4, 0]),
            ("batch_ack", Some(5))
        );
        assert_eq!(named(&[0x13, 0, 0, 0, 1]), ("probe", None));
        assert_eq!(named(&[0x15, 0]), ("report", None));
        assert_eq!(named(&[0x99]), ("data", None));
        assert_eq!(
            label(Rate::Dsss2, &[0xd4, 0, 0, 0, 0, 0, 0, 0, 0, 0]).kind,
            "ack"
        );
    }
}
