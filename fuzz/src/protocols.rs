//! The protocols' own frames.

use chappe_dpclo::header as dpclo;
use chappe_mesh::announce::Announcement;
use chappe_mesh::frame as mesh;
use chappe_p3::header::{Ctrl, Header, Nack};
use chappe_p3::plan::Plan;
use chappe_pacifier::improved::header as improved;
use chappe_pacifier::paper::header as pacifier;
use chappe_wildnet::header as wildnet;

/// Frames of Pacifier, the paper's and the improved ones.
pub fn pacifier(bytes: &[u8]) {
    let mut room = [0; 4096];
    if let Ok(pacifier::Frame::Ack(ack)) = pacifier::parse(bytes) {
        let len = ack.emit(&mut room).expect("there is room");
        assert_eq!(Ok(pacifier::Frame::Ack(ack)), pacifier::parse(&room[..len]));
    }
    if let Ok(pacifier::Frame::Data(data)) = pacifier::parse(bytes) {
        let _ = (data.last_ack(), data.forwarders(), data.destinations());
        assert!(!data.vector().is_empty() && !data.payload().is_empty());
    }
    if improved::parse(bytes).is_ok() {
        assert!(improved::is_ours(bytes));
    }
}

/// Frames of P³: headers, plans, and reports of what is missing.
pub fn p3(bytes: &[u8]) {
    if let Ok((header, body)) = Header::parse(bytes) {
        let mut room = vec![0; bytes.len()];
        let place = header.emit(&mut room).expect("as long as it was");
        place[..body.len()].copy_from_slice(body);
        assert_eq!(Ok((header, body)), Header::parse(&room));
    }
    let _ = Ctrl::parse(bytes);
    if let Ok(nack) = Nack::parse(7, bytes) {
        let _ = nack.form();
        let _ = (0..=u16::MAX)
            .step_by(251)
            .filter(|offset| nack.is_missing(*offset))
            .count();
    }
    if let Ok(plan) = Plan::parse(7, bytes) {
        let mut room = vec![0; plan.encoded_len()];
        plan.emit(&mut room).expect("as long as it says");
        let again = Plan::parse(7, &room).expect("what is written parses");
        assert_eq!(again.relays(), plan.relays());
        assert_eq!(
            (again.first(), again.payload(), again.cycle(), again.hops()),
            (plan.first(), plan.payload(), plan.cycle(), plan.hops())
        );
    }
}

/// Frames of DPCLO: packets, probes, routes, prices.
pub fn dpclo(bytes: &[u8]) {
    let mut room = [0; 4096];
    match dpclo::parse(bytes) {
        Ok(dpclo::Frame::Data(data, payload)) => {
            let len = data.emit(payload, &mut room).expect("there is room");
            assert_eq!(
                Ok(dpclo::Frame::Data(data, payload)),
                dpclo::parse(&room[..len])
            );
        }
        Ok(dpclo::Frame::Priced(data, stamp, payload)) => {
            let len = data.emit_with(Some(stamp), payload, &mut room);
            assert_eq!(
                Ok(dpclo::Frame::Priced(data, stamp, payload)),
                dpclo::parse(&room[..len.expect("there is room")])
            );
        }
        Ok(dpclo::Frame::Request(request)) => {
            let len = request.emit(&mut room).expect("there is room");
            assert_eq!(
                Ok(dpclo::Frame::Request(request)),
                dpclo::parse(&room[..len])
            );
        }
        Ok(dpclo::Frame::Probe(probe)) => {
            let head = (probe.epoch, probe.number);
            let (counts, queues) = (probe.counts(), probe.queues());
            let len = dpclo::Probe::emit(head, counts, queues, 0, &mut room);
            let mut len = len.expect("there is room");
            if let Some(tariff) = probe.tariff() {
                let (shares, costs, far) = (tariff.shares(), tariff.costs(), tariff.far());
                let end = dpclo::Tariff::emit(tariff.own, shares, costs, far, (len, &mut room));
                len = end.expect("there is room");
            }
            let again = dpclo::parse(&room[..len]);
            assert_eq!(Ok(dpclo::Frame::Probe(probe)), again);
        }
        Ok(dpclo::Frame::Routes(routes)) => {
            let len = dpclo::Routes::emit(&mut routes.iter(), &mut room);
            let again = dpclo::parse(&room[..len.expect("there is room")]);
            assert_eq!(Ok(dpclo::Frame::Routes(routes)), again);
        }
        Ok(dpclo::Frame::Report(report)) => {
            let len = dpclo::Report::emit(report.queues(), &mut room);
            let again = dpclo::parse(&room[..len.expect("there is room")]);
            assert_eq!(Ok(dpclo::Frame::Report(report)), again);
        }
        Ok(dpclo::Frame::Prices(round, prices)) => {
            let len = dpclo::Prices::emit(round, prices.queues(), &mut room);
            let again = dpclo::parse(&room[..len.expect("there is room")]);
            assert_eq!(Ok(dpclo::Frame::Prices(round, prices)), again);
        }
        Ok(dpclo::Frame::Pairing(round, message)) => {
            let len = dpclo::emit_pairing(round, message, &mut room).expect("there is room");
            assert_eq!(
                Ok(dpclo::Frame::Pairing(round, message)),
                dpclo::parse(&room[..len])
            );
        }
        Err(_) => {}
    }
}

/// Frames of WiLDNet's links.
pub fn wildnet(bytes: &[u8]) {
    let Ok(frame) = wildnet::Frame::parse(bytes) else {
        return;
    };
    let mut room = vec![0; frame.len()];
    let len = frame.emit(&mut room).expect("as long as it says");
    assert_eq!(wildnet::Frame::parse(&room[..len]), Ok(frame));
}

/// Frames of the mesh daemon, and the networks that nodes announce in them.
pub fn mesh(bytes: &[u8]) {
    if let Some(frame) = mesh::Frame::parse(bytes) {
        let octets: usize = frame.parts().map(|part| part.body.len()).sum();
        assert!(octets <= bytes.len() && frame.acks().count() <= bytes.len());
        let bodies = frame.parts().map(|part| part.body);
        bodies.for_each(announced);
    }
    announced(bytes);
}

fn announced(body: &[u8]) {
    if let Some(announcement) = Announcement::parse(body) {
        let mut room = [0; 4096];
        let len = announcement.emit(&mut room).expect("there is room");
        assert_eq!(Announcement::parse(&room[..len]), Some(announcement));
    }
}
