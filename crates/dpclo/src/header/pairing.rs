//! The frames of DCLO: queues at the beginning of a round, and pairing messages.

use chappe_core::Duration;

use super::{
    Frame, KIND_PAIRING, KIND_PRICES, Malformed, PAIRING, PRICES, QUEUE, Queue, VERSION, Writer,
    queues, split,
};
use crate::baseline::matching::Message;

const REQUEST: u8 = 1;
const PAIRED: u8 = 2;
/// Unit of the time within a round.
const INTO_UNIT: Duration = Duration::from_micros(64);

/// A node's position in DCLO's rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The number of the round.
    pub number: u32,
    /// The time since this round began.
    pub into: Duration,
}

/// The sender's queues at the beginning of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices<'a>(&'a [u8]);

impl<'a> Prices<'a> {
    pub(super) fn parse(octets: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        let (head, rest) = octets
            .split_first_chunk::<PRICES>()
            .ok_or(Malformed::Short)?;
        let [_, count, round @ ..] = *head;
        let (queues, _) = split(rest, usize::from(count) * QUEUE)?;
        Ok(Frame::Prices(Round::from_octets(round), Prices(queues)))
    }

    /// The sender's queues; those not listed are empty.
    pub fn queues(&self) -> impl Iterator<Item = Queue> + 'a {
        queues(self.0)
    }

    /// Writes as many queues as fit, at most 255. Returns the length.
    pub fn emit(
        round: Round,
        queues: impl Iterator<Item = Queue>,
        room: &mut [u8],
    ) -> Option<usize> {
        let most = (room.len().saturating_sub(PRICES) / QUEUE).min(255);
        let mut writer = Writer { room, len: 0 };
        writer.put(&[VERSION << 4 | KIND_PRICES, 0])?;
        writer.put(&round.to_octets())?;
        let mut count = 0u8;
        for queue in queues.take(most) {
            writer.put_queue(queue)?;
            count += 1;
        }
        *writer.room.get_mut(1)? = count;
        Some(writer.len)
    }
}

pub(super) fn parse_pairing(octets: &[u8]) -> Result<Frame<'_>, Malformed> {
    let (head, _) = octets
        .split_first_chunk::<PAIRING>()
        .ok_or(Malformed::Short)?;
    let [_, what, r0, r1, r2, r3, i0, i1, n0, n1] = *head;
    let node = u16::from_be_bytes([n0, n1]);
    let message = match what {
        REQUEST => Message::Request(node),
        PAIRED => Message::Paired(node),
        _ => return Err(Malformed::Version),
    };
    let round = Round::from_octets([r0, r1, r2, r3, i0, i1]);
    Ok(Frame::Pairing(round, message))
}

/// Writes a pairing message. Returns its length.
pub fn emit_pairing(round: Round, message: Message, room: &mut [u8]) -> Option<usize> {
    let (what, node) = match message {
        Message::Request(node) => (REQUEST, node),
        Message::Paired(node) => (PAIRED, node),
    };
    let mut writer = Writer { room, len: 0 };
    writer.put(&[VERSION << 4 | KIND_PAIRING, what])?;
    writer.put(&round.to_octets())?;
    writer.put(&node.to_be_bytes())?;
    Some(writer.len)
}

impl Round {
    fn from_octets([r0, r1, r2, r3, i0, i1]: [u8; 6]) -> Round {
        Round {
            number: u32::from_be_bytes([r0, r1, r2, r3]),
            into: INTO_UNIT * u64::from(u16::from_be_bytes([i0, i1])),
        }
    }

    fn to_octets(self) -> [u8; 6] {
        let [r0, r1, r2, r3] = self.number.to_be_bytes();
        let into = self.into.steps(INTO_UNIT).min(u64::from(u16::MAX)) as u16;
        let [i0, i1] = into.to_be_bytes();
        [r0, r1, r2, r3, i0, i1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Backlog, parse};

    #[test]
    fn rounds_and_pairs_round_trip() {
        let round = Round {
            number: 0x0102_0304,
            into: Duration::from_micros(64 * 300),
        };
        let mut room = [0; 40];
        let told = [4u16, 5].map(|destination| Queue {
            destination,
            backlog: Backlog(destination * 16),
        });
        let len = Prices::emit(round, told.into_iter(), &mut room).unwrap();
        let Ok(Frame::Prices(got, prices)) = parse(&room[..len]) else {
            panic!("prices");
        };
        assert_eq!(got, round);
        assert!(prices.queues().eq(told));
        for message in [Message::Request(7), Message::Paired(300)] {
            let len = emit_pairing(round, message, &mut room).unwrap();
            assert_eq!(parse(&room[..len]), Ok(Frame::Pairing(round, message)));
        }
        room[1] = 3;
        assert_eq!(parse(&room[..10]), Err(Malformed::Version));
    }
}
