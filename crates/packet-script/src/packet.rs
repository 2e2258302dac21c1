//! The packets of a script: as a line describes them, as octets for the stack, and compared with what it sent.

use std::net::{IpAddr, Ipv6Addr};

use chappe_tcplp::tcp::{
    Ecn, Endpoint, Flags, Flow, Options, PROTOCOL, Range, Segment, Seq, Timestamps,
};

use chappe_wire::ipv6::{self, HEADER_LEN, Header};

/// The IPv6 address of the stack under test.
pub const LOCAL: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
/// The IPv6 address of the script, the stack's peer.
pub const REMOTE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
/// The TCP port of the stack under test.
pub const LOCAL_PORT: u16 = 80;
/// The TCP port of the script, the stack's peer.
pub const REMOTE_PORT: u16 = 50_000;

/// The longest TCP header (RFC 9293, 3.1: a data offset of 15 words).
const TCP_HEADER_MAX: usize = 60;

/// A packet as a line describes it. Numbers are relative to the initial sequence number of the side that owns them.
#[derive(Clone, Debug, Default)]
pub struct PacketSpec {
    /// For a packet of the stack, `None`: the bits are not compared.
    pub ecn: Option<Ecn>,
    pub flags: Flags,
    pub seq: i64,
    pub len: usize,
    pub ack: Option<i64>,
    pub window: Option<u16>,
    pub urgent: u16,
    pub options: OptionsSpec,
}

/// The options of a line. `None`: the line does not mention the option.
#[derive(Clone, Debug, Default)]
pub struct OptionsSpec {
    /// `<...>`: no option is checked, not even SACK.
    pub any: bool,
    /// Of the window only whether it is shut is compared, of the window scale whether it is there, of timestamps that and the
    /// echo: the values are the stack's own affair.
    pub shape: bool,
    pub mss: Option<Option<u16>>,
    pub window_scale: Option<Option<u8>>,
    pub sack_permitted: Option<bool>,
    /// TSval and TSecr; `None` inside: the option must be absent.
    pub timestamps: Option<Option<(u32, u32)>>,
    pub sack: Vec<(i64, i64)>,
}

/// The origins of relative numbers: both initial sequence numbers, and the stack's timestamp clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bases {
    /// The stack's initial sequence number, once seen.
    pub stack: Option<Seq>,
    /// The script's initial sequence number.
    pub script: Seq,
    /// The stack's TSval at the start of the script, once seen.
    pub clock: Option<u32>,
}

/// The octet at `place` of a stream; the first data octet of a connection has place 1, since the SYN has place 0.
pub fn octet(place: i64) -> u8 {
    (place.wrapping_mul(31) ^ (place >> 8)) as u8
}

fn at(base: Seq, relative: i64) -> Seq {
    base + relative as u32
}

impl PacketSpec {
    /// The packet as octets for the stack; an error if no packet can be so.
    pub fn build(&self, bases: &Bases) -> Result<Vec<u8>, String> {
        let payload: Vec<u8> = (0..self.len as i64).map(|n| octet(self.seq + n)).collect();
        let stack = bases.stack.unwrap_or_default();
        let mut options = Options {
            mss: self.options.mss.flatten(),
            window_scale: self.options.window_scale.flatten(),
            sack_permitted: self.options.sack_permitted == Some(true),
            ..Options::default()
        };
        options.timestamps = self
            .options
            .timestamps
            .flatten()
            .map(|(value, echo)| Timestamps {
                value,
                echo: bases.clock.unwrap_or(0).wrapping_add(echo),
            });
        for &(start, end) in &self.options.sack {
            options
                .sack
                .push(Range::new(at(stack, start), at(stack, end)));
        }
        let segment = Segment {
            source_port: REMOTE_PORT,
            destination_port: LOCAL_PORT,
            seq: at(bases.script, self.seq),
            ack: self.ack.map_or(Seq::default(), |ack| at(stack, ack)),
            flags: self.flags,
            window: self.window.unwrap_or(u16::MAX),
            urgent: self.urgent,
            options,
            payload: &payload,
        };
        let mut packet = vec![0; HEADER_LEN + TCP_HEADER_MAX + payload.len()];
        let (_, room) = packet.split_at_mut(HEADER_LEN);
        let len = segment.emit(&flow(), room);
        let len = len.ok_or("its options are too long for a TCP header")?;
        let payload_len = u16::try_from(len).map_err(|_| "longer than IPv6 allows")?;
        packet.truncate(HEADER_LEN + len);
        let header = Header {
            traffic_class: self.ecn.unwrap_or_default().bits(),
            flow_label: 0,
            payload_len,
            next_header: PROTOCOL,
            hop_limit: 64,
            source: REMOTE,
            destination: LOCAL,
        };
        let written = header.emit(&mut packet);
        written.map_err(|error| format!("there is no such packet: {error:?}"))?;
        Ok(packet)
    }

    /// Compares with what the stack sent; the error names the field.
    pub fn compare(&self, sent: &[u8], bases: &mut Bases, elapsed_ms: u32) -> Result<(), String> {
        let (ecn, segment) = split(sent).ok_or("not an IPv6 packet with TCP")?;
        let segment = Segment::parse_checked(segment, &flow()).map_err(|e| format!("{e:?}"))?;
        if segment.flags.has(Flags::SYN) && bases.stack.is_none() {
            bases.stack = Some(segment.seq);
        }
        if let (None, Some(timestamps)) = (bases.clock, segment.options.timestamps) {
            bases.clock = Some(timestamps.value.wrapping_sub(elapsed_ms));
        }
        let stack = bases.stack.unwrap_or_default();
        // Signed, so that a number before the initial one prints as a small negative one.
        let got = |seq: Seq| i64::from(seq.since(stack) as i32);
        let theirs = |seq: Seq| i64::from(seq.since(bases.script) as i32);
        same(
            "ports",
            (LOCAL_PORT, REMOTE_PORT),
            (segment.source_port, segment.destination_port),
        )?;
        if let Some(want) = self.ecn {
            same("ECN bits", want, ecn)?;
        }
        // RFC 9293, 3.9.1.2 leaves much of PSH to the stack, so it is compared only where a line has it.
        let push = match self.flags.has(Flags::PSH) {
            true => Flags::NONE,
            false => Flags::PSH,
        };
        same(
            "flags",
            self.flags.to_string(),
            segment.flags.without(push).to_string(),
        )?;
        // A reset before any SYN has no number line of the stack to be compared with.
        if !self.flags.has(Flags::RST) || bases.stack.is_some() {
            same("sequence number", at(stack, self.seq), segment.seq).map_err(|_| {
                format!(
                    "sequence number: {} instead of {}",
                    got(segment.seq),
                    self.seq
                )
            })?;
        }
        same("length", self.len, segment.payload.len())?;
        if let Some(ack) = self.ack {
            same("acknowledgement", ack, theirs(segment.ack))?;
        }
        match self.window {
            None => {}
            Some(window) if self.options.shape => {
                same("a shut window", window == 0, segment.window == 0)?;
            }
            Some(window) => same("window", window, segment.window)?,
        }
        let wrong = |(n, &o): (usize, &u8)| o != octet(self.seq + n as i64);
        if let Some((n, _)) = segment.payload.iter().enumerate().find(|&pair| wrong(pair)) {
            return Err(format!("octet {n} of the payload is wrong"));
        }
        self.options.compare(&segment.options, bases)
    }
}

impl OptionsSpec {
    fn compare(&self, sent: &Options, bases: &Bases) -> Result<(), String> {
        if self.any {
            return Ok(());
        }
        if let Some(mss) = self.mss {
            same("MSS", mss, sent.mss)?;
        }
        if let Some(scale) = self.window_scale {
            let sent = match self.shape {
                true => sent.window_scale.and(scale.or(Some(0))),
                false => sent.window_scale,
            };
            same("window scale", scale, sent)?;
        }
        if let Some(permitted) = self.sack_permitted {
            same("SACK permitted", permitted, sent.sack_permitted)?;
        }
        if let Some(timestamps) = self.timestamps {
            let clock = bases.clock.unwrap_or(0);
            let relative = |t: Timestamps| match self.shape {
                true => (0, t.echo),
                false => (t.value.wrapping_sub(clock), t.echo),
            };
            same("timestamps", timestamps, sent.timestamps.map(relative))?;
        }
        let relative = |seq: Seq| i64::from(seq.since(bases.script) as i32);
        let blocks = sent.sack.as_slice().iter();
        let blocks: Vec<_> = blocks
            .map(|b| (relative(b.start), relative(b.end)))
            .collect();
        same("SACK blocks", self.sack.clone(), blocks)
    }
}

/// A packet that the stack sent, in one line and in the script's relative numbers.
pub fn describe(sent: &[u8], bases: &Bases) -> String {
    let Some((ecn, segment)) = split(sent) else {
        return "not TCP".into();
    };
    let Ok(segment) = Segment::parse(segment) else {
        return "not TCP".into();
    };
    let base = bases.stack.unwrap_or(segment.seq);
    let seq = i64::from(segment.seq.since(base) as i32);
    let ack = i64::from(segment.ack.since(bases.script) as i32);
    let len = segment.payload.len() as i64;
    let mut text = format!(
        "{:?} {} {seq}:{}({len}) ack {ack} win {}",
        ecn,
        segment.flags,
        seq + len,
        segment.window
    );
    if let Some(timestamps) = segment.options.timestamps {
        let value = timestamps.value.wrapping_sub(bases.clock.unwrap_or(0));
        text += &format!(" ts {value} ecr {}", timestamps.echo);
    }
    for block in segment.options.sack.as_slice() {
        let edge = |seq: Seq| i64::from(seq.since(bases.script) as i32);
        text += &format!(" sack {}:{}", edge(block.start), edge(block.end));
    }
    text
}

/// The flow as the stack sees it.
fn flow() -> Flow {
    Flow::new(
        Endpoint::new(IpAddr::V6(LOCAL), LOCAL_PORT),
        Endpoint::new(IpAddr::V6(REMOTE), REMOTE_PORT),
    )
}

/// ECN bits and segment of an IPv6 packet with TCP.
fn split(packet: &[u8]) -> Option<(Ecn, &[u8])> {
    let (header, upper) = ipv6::parse(packet).ok()?;
    let tcp = upper.protocol == PROTOCOL;
    tcp.then_some((Ecn::from_bits(header.traffic_class), upper.packet))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, want: T, got: T) -> Result<(), String> {
    match want == got {
        true => Ok(()),
        false => Err(format!("{what}: {got:?} instead of {want:?}")),
    }
}
