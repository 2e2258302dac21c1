//! The probe, which measures links.

use super::{
    COUNT, KIND_PROBE, Malformed, PROBE, QUEUE, Queue, Tariff, VERSION, Writer, queues, split,
};

/// A probe ("ETX message").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe<'a> {
    /// Changes when the sender restarts.
    pub epoch: u8,
    /// The number of this probe.
    pub number: u16,
    counts: &'a [u8],
    queues: &'a [u8],
    tariff: Option<Tariff<'a>>,
}

/// How many of a neighbour's probes the sender received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The number of the neighbour.
    pub node: u16,
    /// Probes of it that were received.
    pub received: u8,
    /// Probes that it sent in the window.
    pub of: u8,
}

impl<'a> Probe<'a> {
    pub(super) fn parse(octets: &'a [u8]) -> Result<Probe<'a>, Malformed> {
        let (head, rest) = octets
            .split_first_chunk::<PROBE>()
            .ok_or(Malformed::Short)?;
        let [_, epoch, n0, n1, counts_of, queues] = *head;
        let (counts, rest) = split(rest, usize::from(counts_of) * COUNT)?;
        let (listed, told) = (usize::from(counts_of), usize::from(queues));
        let (queues, tail) = split(rest, told * QUEUE)?;
        let probe = Probe {
            epoch,
            number: u16::from_be_bytes([n0, n1]),
            counts,
            queues,
            tariff: Tariff::parse(tail, listed, told),
        };
        match probe.counts().all(|count| count.received <= count.of) {
            true => Ok(probe),
            false => Err(Malformed::Contradiction),
        }
    }

    /// The counts of probes that the sender received, one for each neighbour.
    pub fn counts(&self) -> impl Iterator<Item = Count> + 'a {
        let (entries, _) = self.counts.as_chunks::<COUNT>();
        entries.iter().map(|&[n0, n1, received, of]| Count {
            node: u16::from_be_bytes([n0, n1]),
            received,
            of,
        })
    }

    /// Airtime and prices, if the sender tells them.
    pub fn tariff(&self) -> Option<Tariff<'a>> {
        self.tariff
    }

    /// The sender's longest queues.
    pub fn queues(&self) -> impl Iterator<Item = Queue> + 'a {
        queues(self.queues)
    }

    /// Writes a probe and pads it to `octets`. Returns its length, or `None` if the buffer is too small.
    pub fn emit(
        (epoch, number): (u8, u16),
        counts: impl Iterator<Item = Count>,
        queues: impl Iterator<Item = Queue>,
        octets: usize,
        room: &mut [u8],
    ) -> Option<usize> {
        let mut writer = Writer { room, len: 0 };
        let [n0, n1] = number.to_be_bytes();
        writer.put(&[VERSION << 4 | KIND_PROBE, epoch, n0, n1, 0, 0])?;
        let (mut listed, mut told) = (0u8, 0u8);
        for count in counts.take(255) {
            writer.put(&count.node.to_be_bytes())?;
            writer.put(&[count.received, count.of])?;
            listed += 1;
        }
        for queue in queues.take(255) {
            writer.put_queue(queue)?;
            told += 1;
        }
        writer.room.get_mut(4..6)?.copy_from_slice(&[listed, told]);
        while writer.len < octets {
            writer.put(&[0])?;
        }
        Some(writer.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Backlog, Frame, parse};

    #[test]
    fn probes_round_trip() {
        let counts =
            [(7, 9, 10), (300, 0, 10)].map(|(node, received, of)| Count { node, received, of });
        let told = [Queue {
            destination: 4,
            backlog: Backlog::from_packets(2.5),
        }];
        let mut room = [0; 200];
        let len = Probe::emit(
            (3, 0x0102),
            counts.into_iter(),
            told.into_iter(),
            134,
            &mut room,
        );
        assert_eq!(len, Some(134));
        let Ok(Frame::Probe(probe)) = parse(&room[..134]) else {
            panic!("a probe");
        };
        assert_eq!((probe.epoch, probe.number), (3, 0x0102));
        assert!(probe.counts().eq(counts));
        assert!(probe.queues().eq(told));
        assert_eq!(parse(&room[..17]), Err(Malformed::Short));
        room[8] = 11;
        assert_eq!(parse(&room[..134]), Err(Malformed::Contradiction));
    }
}
