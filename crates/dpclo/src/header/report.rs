//! The report of changed queues, for neighbours that do not overhear.

use super::{Backlog, KIND_REPORT, Malformed, REPORT, REPORTED, ROOM_MAX, VERSION, Writer, split};

/// Queues that have changed since their lengths were last broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a>(&'a [u8]);

/// A queue of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The destination of the queue.
    pub destination: u16,
    /// The length of the queue.
    pub backlog: Backlog,
    /// How many more packets it can take; [`ROOM_MAX`] means that many or more.
    pub room: u8,
}

impl<'a> Report<'a> {
    pub(super) fn parse(octets: &'a [u8]) -> Result<Report<'a>, Malformed> {
        let (&[_, count], rest) = octets
            .split_first_chunk::<REPORT>()
            .ok_or(Malformed::Short)?;
        let (queues, _) = split(rest, usize::from(count) * REPORTED)?;
        let report = Report(queues);
        match report.queues().all(|queue| queue.room <= ROOM_MAX) {
            true => Ok(report),
            false => Err(Malformed::Contradiction),
        }
    }

    /// The queues of the report.
    pub fn queues(&self) -> impl Iterator<Item = Reported> + 'a {
        let (entries, _) = self.0.as_chunks::<REPORTED>();
        entries.iter().map(|&[d0, d1, l0, l1, room]| Reported {
            destination: u16::from_be_bytes([d0, d1]),
            backlog: Backlog(u16::from_be_bytes([l0, l1])),
            room,
        })
    }

    /// Writes a report of as many queues as fit, at most 255. Returns its length.
    pub fn emit(queues: impl Iterator<Item = Reported>, room: &mut [u8]) -> Option<usize> {
        let most = (room.len().saturating_sub(REPORT) / REPORTED).min(255);
        let mut writer = Writer { room, len: 0 };
        writer.put(&[VERSION << 4 | KIND_REPORT, 0])?;
        let mut count = 0u8;
        for queue in queues.take(most) {
            writer.put(&queue.destination.to_be_bytes())?;
            writer.put(&queue.backlog.0.to_be_bytes())?;
            writer.put(&[queue.room.min(ROOM_MAX)])?;
            count += 1;
        }
        *writer.room.get_mut(1)? = count;
        Some(writer.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Frame, parse};

    #[test]
    fn a_report_matches_the_layout_and_takes_what_fits() {
        let queue = |destination| Reported {
            destination,
            backlog: Backlog(0x21),
            room: 7,
        };
        let mut room = [0; 2 + 2 * 5 + 4];
        let len = Report::emit((1..9).map(queue), &mut room).unwrap();
        let want = [0x16, 2, 0, 1, 0, 0x21, 7, 0, 2, 0, 0x21, 7];
        assert_eq!(room[..len], want);
        let Ok(Frame::Report(report)) = parse(&want) else {
            panic!("a report");
        };
        assert!(report.queues().eq((1..3).map(queue)));
        assert_eq!(parse(&want[..11]), Err(Malformed::Short));
        room[6] = 64;
        assert_eq!(parse(&room[..len]), Err(Malformed::Contradiction));
    }
}
