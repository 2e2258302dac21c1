//! The application of a scenario's node, which sends objects and receives them.

use std::sync::Arc;

use chappe_core::{Duration, Instant, Wake};
use chappe_tcplp::host::Application;
use chappe_tcplp::tcp::{Socket, State};

/// Readings that the source makes during the run, instead of an object that exists from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sensing {
    /// Octets of a reading.
    pub octets: usize,
    /// Time from one reading to the next.
    pub every: Duration,
    /// Readings that are sent together.
    pub batch: usize,
}

/// The objects that a node sends and receives.
#[derive(Clone, Debug, Default)]
pub struct Role {
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    now: Instant,
}

/// An object that is sent on the connection from `port`.
#[derive(Clone, Debug)]
struct Outgoing {
    port: u16,
    object: Arc<[u8]>,
    sensing: Option<Sensing>,
    written: usize,
}

/// An object that arrives on the connection from its sender's port.
#[derive(Clone, Debug)]
pub struct Incoming {
    from: u16,
    expected: usize,
    /// The octets that have arrived.
    pub octets: Vec<u8>,
    /// When the last octet arrived.
    pub done: Option<Instant>,
}

impl Role {
    /// Sends an object on the connection that will be opened from `port`.
    pub fn send(&mut self, port: u16, object: Arc<[u8]>, sensing: Option<Sensing>) {
        self.outgoing.push(Outgoing {
            port,
            object,
            sensing,
            written: 0,
        });
    }

    /// Receives an object of `expected` octets on the connection that the other end opens from port `from`.
    pub fn receive(&mut self, from: u16, expected: usize) {
        self.incoming.push(Incoming {
            from,
            expected,
            octets: Vec::new(),
            done: None,
        });
    }

    /// The object on the connection from port `from`.
    pub fn received(&self, from: u16) -> Option<&Incoming> {
        self.incoming.iter().find(|incoming| incoming.from == from)
    }
}

impl Outgoing {
    /// Octets that exist at `now`: those of complete batches of readings, or the whole object without readings.
    fn released(&self, now: Instant) -> usize {
        let Some(sensing) = self.sensing else {
            return self.object.len();
        };
        let made = (now.nanos() / sensing.every.nanos()) as usize;
        let octets = made.saturating_mul(sensing.octets);
        if octets >= self.object.len() {
            return self.object.len();
        }
        // Only complete batches; the last one may be shorter, and is released above.
        made / sensing.batch * sensing.batch * sensing.octets
    }

    /// When the next batch is complete.
    fn next_release(&self, now: Instant) -> Option<Instant> {
        let sensing = self.sensing?;
        if self.released(now) == self.object.len() {
            return None;
        }
        let batch = sensing.batch as u64;
        let made = now.nanos() / sensing.every.nanos();
        let all = self.object.len().div_ceil(sensing.octets) as u64;
        let next = ((made / batch + 1) * batch).min(all);
        let since = Duration::from_nanos(next.saturating_mul(sensing.every.nanos()));
        Some(Instant::ZERO + since)
    }

    fn serve(&mut self, now: Instant, socket: &mut Socket<'_>) {
        // Shutting down a connection in SYN-SENT would abandon it.
        if self.written == self.object.len() || socket.state() == State::SynSent {
            return;
        }
        let part = self.object.get(self.written..self.released(now));
        self.written += socket.write(part.unwrap_or_default());
        if self.written == self.object.len() {
            socket.shutdown();
        }
    }
}

impl Incoming {
    fn serve(&mut self, now: Instant, socket: &mut Socket<'_>) {
        let (front, back) = socket.readable();
        let came = front.len() + back.len();
        // Octets beyond the object would be a defect. They are kept, so that the digest shows it.
        self.octets.extend(front.iter().chain(back));
        socket.consume(came);
        if self.octets.len() >= self.expected && self.done.is_none() {
            self.done = Some(now);
        }
    }
}

impl<'a> Application<'a> for Role {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a>]) {
        self.now = now;
        for socket in sockets {
            let flow = socket.flow();
            let (here, there) = (flow.local.port, flow.remote.port);
            let out = self.outgoing.iter_mut().find(|out| out.port == here);
            let incoming = self.incoming.iter_mut().find(|came| came.from == there);
            match (out, incoming) {
                (Some(out), _) => out.serve(now, socket),
                (None, Some(incoming)) => incoming.serve(now, socket),
                (None, None) => {}
            }
            if socket.at_end() {
                socket.close(now);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let next = self.outgoing.iter();
        let at = next.filter_map(|out| out.next_release(self.now)).min()?;
        let why = "readings are due";
        Some(Wake { at, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten readings of 10 octets, one a second, in batches of 4: 40 octets after 4 s, 80 after 8, all after 10.
    #[test]
    fn readings_are_released_in_batches() {
        let out = Outgoing {
            port: 1,
            object: vec![0; 95].into(),
            sensing: Some(Sensing {
                octets: 10,
                every: Duration::from_secs(1),
                batch: 4,
            }),
            written: 0,
        };
        let at = |millis| Instant::from_millis(millis);
        let wanted = [
            (0, 0, Some(4)),
            (3999, 0, Some(4)),
            (4000, 40, Some(8)),
            (8500, 80, Some(10)),
            (10_000, 95, None),
        ];
        for (millis, octets, next) in wanted {
            assert_eq!(out.released(at(millis)), octets, "{millis}");
            let next = next.map(|seconds| at(seconds * 1000));
            assert_eq!(out.next_release(at(millis)), next, "{millis}");
        }
    }
}
