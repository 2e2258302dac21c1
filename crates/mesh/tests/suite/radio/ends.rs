//! The programs on a host: one end of a TCP connection, and `ping`.

use chappe_core::{Duration, Instant, Wake};
use chappe_lab_emu::model::{BLOCKS, Packet, Receiver, Sender, TCP_HEADERS};

const IP: usize = 20;
const TCP: usize = 20;
/// Octets of a ping of `iputils`: 56 of payload.
const PING: usize = 84;

/// All programs of a host.
#[derive(Debug, Default)]
pub struct Programs {
    pub flows: Vec<Flow>,
    pub pings: Pings,
}

impl Programs {
    /// A packet for this host; an answer to send.
    pub fn handle(&mut self, now: Instant, packet: &[u8]) -> Option<Vec<u8>> {
        for flow in &mut self.flows {
            flow.handle(now, packet);
        }
        self.pings.handle(now, packet)
    }

    /// The next packet to send.
    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        let ping = self.pings.poll(now);
        ping.or_else(|| self.flows.iter_mut().find_map(|flow| flow.poll(now)))
    }

    pub fn poll_timeout(&self) -> Option<Wake> {
        let flows = self.flows.iter().map(Flow::poll_timeout);
        flows.fold(self.pings.poll_timeout(), Wake::earlier)
    }
}

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Flow {
    me: usize,
    peer: usize,
    end: End,
    /// Segments sent, and those sent before.
    pub sent: u64,
    pub again: u64,
    newest: Option<u32>,
}

#[derive(Debug)]
enum End {
    Sender(Sender),
    Receiver(Receiver),
}

impl Flow {
    pub fn sender(me: usize, to: usize, mtu: usize) -> Flow {
        Flow::new(me, to, End::Sender(Sender::new(me, to, mtu)))
    }

    pub fn receiver(me: usize, from: usize, mtu: usize) -> Flow {
        Flow::new(
            me,
            from,
            End::Receiver(Receiver::new(me, from, mtu - TCP_HEADERS)),
        )
    }

    fn new(me: usize, peer: usize, end: End) -> Flow {
        Flow {
            me,
            peer,
            end,
            sent: 0,
            again: 0,
            newest: None,
        }
    }

    /// Octets of payload received in order.
    pub fn octets(&self) -> u64 {
        match &self.end {
            End::Sender(_) => 0,
            End::Receiver(receiver) => receiver.octets(),
        }
    }

    pub fn is_receiver(&self) -> bool {
        matches!(self.end, End::Receiver(_))
    }

    pub fn handle(&mut self, now: Instant, packet: &[u8]) {
        if let Some(packet) = read(packet, self.peer, self.me) {
            match &mut self.end {
                End::Sender(sender) => sender.handle_ack(now, &packet),
                End::Receiver(receiver) => receiver.handle_data(now, &packet),
            }
        }
    }

    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        let (packet, acks) = match &mut self.end {
            End::Sender(sender) => {
                sender.handle_timeout(now);
                (sender.poll(now)?, false)
            }
            End::Receiver(receiver) => {
                receiver.handle_timeout(now);
                (receiver.poll(now)?, true)
            }
        };
        self.sent += 1;
        if !acks {
            let fresh = self.newest.is_none_or(|newest| packet.number > newest);
            self.again += u64::from(!fresh);
            self.newest = self.newest.max(Some(packet.number));
        }
        Some(write(&packet, acks))
    }

    pub fn poll_timeout(&self) -> Option<Wake> {
        match &self.end {
            End::Sender(sender) => sender.poll_timeout(),
            End::Receiver(receiver) => receiver.poll_timeout(),
        }
    }
}

/// The header of an IPv4 packet from the host at one place to that at another.
fn ip(from: usize, to: usize, protocol: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    (packet[0], packet[8], packet[9]) = (0x45, 64, protocol);
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    packet[12..16].copy_from_slice(&[10, 77, 0, from as u8 + 1]);
    packet[16..20].copy_from_slice(&[10, 77, 0, to as u8 + 1]);
    packet
}

/// A segment with the fields of the model: numbers count segments, and the options hold a time and SACK blocks.
fn write(model: &Packet, acks: bool) -> Vec<u8> {
    let mut packet = ip(model.from, model.to, 6, model.len);
    let head = if acks {
        model.len - IP
    } else {
        TCP_HEADERS - IP
    };
    let number = model.number.to_be_bytes();
    let place = if acks { 8 } else { 4 };
    let tcp = &mut packet[IP..];
    tcp[place..place + 4].copy_from_slice(&number);
    (tcp[12], tcp[13]) = ((head as u8 / 4) << 4, 0x10);
    tcp[TCP..TCP + 8].copy_from_slice(&model.stamp.nanos().to_be_bytes());
    let blocks = tcp[TCP + 8..head].chunks_exact_mut(8);
    for (room, (first, end)) in blocks.zip(model.blocks) {
        room[..4].copy_from_slice(&first.to_be_bytes());
        room[4..].copy_from_slice(&end.to_be_bytes());
    }
    packet
}

fn read(packet: &[u8], from: usize, to: usize) -> Option<Packet> {
    let places = [packet[15], packet[19]] == [from as u8 + 1, to as u8 + 1];
    (packet[9] == 6 && places).then_some(())?;
    let word = |octets: &[u8]| u32::from_be_bytes(octets[..4].try_into().unwrap());
    let tcp = &packet[IP..];
    let head = usize::from(tcp[12] >> 4) * 4;
    let acks = head == tcp.len();
    let stamp = u64::from_be_bytes(tcp[TCP..TCP + 8].try_into().unwrap());
    let mut blocks = [(0, 0); BLOCKS];
    for (block, room) in blocks.iter_mut().zip(tcp[TCP + 8..head].chunks_exact(8)) {
        *block = (word(room), word(&room[4..]));
    }
    Some(Packet {
        from,
        to,
        len: packet.len(),
        number: word(if acks { &tcp[8..] } else { &tcp[4..] }),
        stamp: Instant::from_nanos(stamp),
        blocks,
    })
}

/// `ping`, and the kernel's answers.
#[derive(Debug, Default)]
pub struct Pings {
    ends: (usize, usize),
    next: Option<Instant>,
    every: Duration,
    /// Pings sent, and the round-trip times of those that were answered, in seconds.
    pub sent: u64,
    pub round_trips: Vec<f64>,
    /// When the first answer came.
    pub first: Option<Instant>,
}

impl Pings {
    pub fn new(now: Instant, from: usize, to: usize, every: Duration) -> Pings {
        Pings {
            ends: (from, to),
            next: Some(now),
            every,
            ..Pings::default()
        }
    }

    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        let due = self.next.filter(|&at| at <= now)?;
        self.next = Some(due + self.every);
        self.sent += 1;
        let mut packet = ip(self.ends.0, self.ends.1, 1, PING);
        packet[20] = 8;
        packet[28..36].copy_from_slice(&now.nanos().to_be_bytes());
        Some(packet)
    }

    /// Notes an answer; answers a ping.
    pub fn handle(&mut self, now: Instant, packet: &[u8]) -> Option<Vec<u8>> {
        (packet.get(9) == Some(&1)).then_some(())?;
        let mut answer = packet.to_vec();
        if packet[20] == 8 {
            answer[20] = 0;
            answer[12..16].copy_from_slice(&packet[16..20]);
            answer[16..20].copy_from_slice(&packet[12..16]);
            return Some(answer);
        }
        let sent = u64::from_be_bytes(packet[28..36].try_into().ok()?);
        let took = now.saturating_since(Instant::from_nanos(sent));
        self.round_trips.push(took.as_secs_f64());

        self.first.get_or_insert(now);
        None
    }

    pub fn poll_timeout(&self) -> Option<Wake> {
        self.next.map(|at| Wake { at, why: "ping" })
    }
}
