//! The frame of a routing update, written and parsed.

use super::{KIND_ROUTES, Malformed, Metric, ROUTE, ROUTES, VERSION, Writer, split};

/// A routing update: the sender's routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routes<'a>(&'a [u8]);

/// The sender's route to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The node that the route leads to.
    pub destination: u16,
    /// The destination's own sequence number.
    pub seq: u16,
    /// The path length, in ETX.
    pub metric: Metric,
    /// The next hop; the destination itself at the destination.
    pub via: u16,
}

impl<'a> Routes<'a> {
    pub(super) fn parse(octets: &'a [u8]) -> Result<Routes<'a>, Malformed> {
        let (&[_, count], rest) = octets
            .split_first_chunk::<ROUTES>()
            .ok_or(Malformed::Short)?;
        let (routes, _) = split(rest, usize::from(count) * ROUTE)?;
        Ok(Routes(routes))
    }

    /// The routes of the update.
    pub fn iter(&self) -> impl Iterator<Item = Route> + 'a {
        let (entries, _) = self.0.as_chunks::<ROUTE>();
        entries
            .iter()
            .map(|&[d0, d1, s0, s1, m0, m1, v0, v1]| Route {
                destination: u16::from_be_bytes([d0, d1]),
                seq: u16::from_be_bytes([s0, s1]),
                metric: Metric(u16::from_be_bytes([m0, m1])),
                via: u16::from_be_bytes([v0, v1]),
            })
    }

    /// Writes an update of as many routes as fit, at most 255. Returns its length.
    pub fn emit(routes: &mut dyn Iterator<Item = Route>, room: &mut [u8]) -> Option<usize> {
        let most = (room.len().saturating_sub(ROUTES) / ROUTE).min(255);
        let mut writer = Writer { room, len: 0 };
        writer.put(&[VERSION << 4 | KIND_ROUTES, 0])?;
        let mut count = 0u8;
        for route in routes.take(most) {
            writer.put(&route.destination.to_be_bytes())?;
            writer.put(&route.seq.to_be_bytes())?;
            writer.put(&route.metric.0.to_be_bytes())?;
            writer.put(&route.via.to_be_bytes())?;
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
    fn an_update_takes_what_fits() {
        let route = |destination| Route {
            destination,
            seq: 2,
            metric: Metric(512),
            via: 5,
        };
        let mut room = [0; 2 + 3 * 8 + 7];
        let mut routes = (0..9).map(route);
        assert_eq!(Routes::emit(&mut routes, &mut room), Some(26));
        assert_eq!(
            routes.next(),
            Some(route(3)),
            "the rest is for the next one"
        );
        let Ok(Frame::Routes(routes)) = parse(&room[..26]) else {
            panic!("an update");
        };
        assert!(routes.iter().eq((0..3).map(route)));
    }
}
