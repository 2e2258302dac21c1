//! What a frame of DPCLO or of a baseline is, for traces.

use chappe_core::Rate;
use chappe_dpclo::header::{Data, Frame, parse};
use chappe_trace::{Label, carried, standard};

/// What 802.11's header says; a data frame is named by what it carries. Packets have their destination as `part`.
pub fn label(rate: Rate, psdu: &[u8]) -> Label {
    let outer = standard(rate, psdu);
    let Some(Ok(frame)) = carried(rate, psdu).map(parse) else {
        return outer;
    };
    let named = |kind| Label { kind, ..outer };
    match frame {
        Frame::Data(data, _) | Frame::Priced(data, _, _) => packet(&data, outer),
        Frame::Probe(_) => named("probe"),
        Frame::Routes(_) => named("routes"),
        Frame::Report(_) => named("report"),
        Frame::Prices(_, _) => named("prices"),
        Frame::Pairing(_, _) => named("pairing"),
        Frame::Request(_) => named("request"),
    }
}

fn packet(data: &Data, outer: Label) -> Label {
    Label {
        kind: if data.empty { "empty" } else { "data" },
        part: Some(data.destination.into()),
        number: Some(data.number),
        ..outer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_dpclo::header::{Backlog, Request};

    fn frame(sdu: &[u8]) -> Vec<u8> {
        let mut psdu = vec![0x88, 0, 0, 0];
        psdu.extend([0xff; 6]);
        psdu.resize(26, 0);
        psdu.extend([0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5]);
        psdu.extend(sdu);
        psdu
    }

    #[test]
    fn frames_are_named_by_what_they_carry() {
        let mut room = [0; 64];
        let data = Data {
            hop_limit: 4,
            first: false,
            source: 1,
            destination: 7,
            flow: 2,
            number: 99,
            backlog: Backlog(0),
            congested: false,
            empty: false,
            room: 3,
            epoch: 0,
        };
        let len = data.emit(&[5; 9], &mut room).unwrap();
        let named = |sdu: &[u8]| {
            let label = label(Rate::Dsss2, &frame(sdu));
            (label.kind, label.part, label.number)
        };
        assert_eq!(named(&room[..len]), ("data", Some(7), Some(99)));
        let request = Request {
            idle: false,
            hop_limit: 3,
            destination: 5,
            seq: 8,
        };
        let len = request.emit(&mut room).unwrap();
        assert_eq!(named(&room[..len]), ("request", None, None));
        assert_eq!(named(&[0x1f; 40]), ("data", None, None));
        for len in 0..40 {
            for octet in 0..=255 {
                label(Rate::Dsss2, &frame(&vec![octet; len]));
            }
        }
    }
}
