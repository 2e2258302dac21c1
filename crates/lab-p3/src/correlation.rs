//! The study of Table II: one initiator, ten relays that repeat its packet at one instant, ten receivers, 30 m by 30 m.
//!
//! The paper gives neither positions nor power. Here the three kinds of nodes are one behind the other, and the power gives a
//! link of 12 m a margin of 3 dB, so that the second hop is needed.

use chappe_core::{
    Channel, Duration, Instant, Purpose, RadioEvent, RadioNode, RadioRequest, Seed, Transmit, Wake,
};
use chappe_lab::run::RunError;
use chappe_p3::timing::MODE;
use chappe_sim::{AirTime, Medium, Position, Profile, Simulator, World};

/// Nodes that repeat the packet at one instant.
const RELAYS: usize = 10;
/// Nodes whose losses are compared.
pub const RECEIVERS: usize = 10;
/// Time from one packet to the next.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time from the end of a frame to its repetition: 802.15.4's turnaround of 12 symbols.
const TURNAROUND: Duration = Duration::from_micros(192);
/// Octets of a frame without its check sequence; the paper gives no size.
const OCTETS: usize = 125;
/// The link that the power is chosen for: its length in metres, its margin above the sensitivity in decibels.
const LINK: (f64, f64) = (12.0, 3.0);

/// Sends `packets` packets on a channel over a layout drawn from `seed`. Returns the packets of each receiver: 1 if received,
/// 0 if lost.
pub fn observe(channel: Channel, packets: u32, seed: Seed) -> Result<Vec<Vec<f64>>, RunError> {
    let defect = |error: &dyn std::fmt::Display| RunError::Defect(error.to_string());
    let mut profile = Profile::named("cc2420-indoor").ok_or_else(|| defect(&"no profile"))?;
    let (metres, margin) = LINK;
    profile.power = profile.power_for(0.5, MODE, OCTETS + 2)
        + profile.path_loss.loss(metres)
        + chappe_core::Db(margin);
    profile.power_max = profile.power;
    let mut random = seed.stream(Purpose::Topology);
    let mut place = |from: f64, to: f64| {
        Position::new(
            from + random.fraction() * (to - from),
            random.fraction() * 30.0,
        )
    };
    let mut places = vec![Position::new(0.0, 15.0)];
    places.extend((0..RELAYS).map(|_| place(6.0, 16.0)));
    places.extend((0..RECEIVERS).map(|_| place(16.0, 30.0)));
    let medium = Medium::geometric(&places, &profile, seed).map_err(|error| defect(&error))?;
    let node = |number: usize| {
        Box::new(Node {
            part: match number {
                0 => Part::Initiator,
                n if n <= RELAYS => Part::Relay,
                _ => Part::Receiver,
            },
            channel: Some(channel),
            packets,
            next: 0,
            send: None,
            heard: vec![0.0; packets as usize],
        })
    };
    let nodes = (0..places.len()).map(node).collect();
    let mut simulator =
        Simulator::new(World::new(medium), nodes, seed, ()).map_err(|error| defect(&error))?;
    simulator.run_until(AirTime::ZERO + INTERVAL * u64::from(packets + 1));
    let (nodes, ..) = simulator.into_parts();
    Ok(nodes
        .into_iter()
        .skip(1 + RELAYS)
        .map(|node| node.heard)
        .collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Initiator,
    Relay,
    Receiver,
}

/// A node of the study.
struct Node {
    part: Part,
    /// The channel to tune to at the start; `None` afterwards.
    channel: Option<Channel>,
    packets: u32,
    /// The initiator's next packet.
    next: u32,
    /// A packet to send: its number, hop and instant.
    send: Option<(u32, u8, Instant)>,
    heard: Vec<f64>,
}

impl Node {
    fn due(&self) -> Instant {
        Instant::ZERO + INTERVAL * u64::from(self.next + 1)
    }
}

impl RadioNode for Node {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        let RadioEvent::Received(frame) = event else {
            return;
        };
        let Some(&[hop, a, b, c, d]) = frame.psdu.first_chunk::<5>() else {
            return;
        };
        let number = u32::from_le_bytes([a, b, c, d]);
        match (self.part, hop) {
            (Part::Relay, 0) => self.send = Some((number, 1, now + TURNAROUND)),
            (Part::Receiver, 1) => {
                if let Some(heard) = self.heard.get_mut(number as usize) {
                    *heard = 1.0;
                }
            }
            _ => {}
        }
    }

    fn poll_radio(&mut self, _: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        if let Some(channel) = self.channel.take() {
            return Some(RadioRequest::Tune(channel));
        }
        let (number, hop, at) = self.send.take()?;
        let frame = psdu.get_mut(..OCTETS)?;
        frame.fill(0x5a);
        frame[0] = hop;
        frame[1..5].copy_from_slice(&number.to_le_bytes());
        Some(RadioRequest::Transmit(Transmit {
            at,
            len: OCTETS,
            mode: MODE,
            power: None,
        }))
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.part == Part::Initiator && self.next < self.packets && now >= self.due() {
            self.send = Some((self.next, 0, now));
            self.next += 1;
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let waits = self.part == Part::Initiator && self.next < self.packets;
        waits.then(|| Wake {
            at: self.due(),
            why: "packet",
        })
    }
}
