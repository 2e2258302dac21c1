//! The pages of a mote, by HTTP and by CoAP, and the fixed buffer they are written to.

use core::fmt::{self, Write};

use chappe_core::{Duration, Instant};

use crate::tcp::TcpInfo;

/// Octets of `/50k`; the octet at position `n` is [`octet(n)`](super::octet).
pub const BULK_LEN: u32 = 50_000;

/// A page, the same by HTTP and by CoAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// `/`: an index for a browser.
    Index,
    /// `/50k`: a large body.
    Bulk,
    /// `/sensors`: what the node measures: its uptime, radio and counters.
    Sensors,
    /// `/info`: the TCP connection that the request came by.
    Info,
    /// `/.well-known/core`: the resources, for a CoAP client (RFC 6690).
    Core,
}

/// The facts about a node that pages show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub node: u16,
    pub now: Instant,
    /// How long the radio had been on, and when that was noted.
    pub radio: (Duration, Instant),
    pub requests: u32,
    pub sunk: u64,
    pub tcp: Option<TcpInfo>,
}

/// Text in a fixed buffer. Writing more than fits is an error and changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<const N: usize> {
    octets: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub const EMPTY: Self = Text {
        octets: [0; N],
        len: 0,
    };

    pub fn as_bytes(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }

    /// Appends octets, which need not be text.
    pub fn push(&mut self, octets: &[u8]) -> fmt::Result {
        let end = self.len.checked_add(octets.len()).ok_or(fmt::Error)?;
        let room = self.octets.get_mut(self.len..end).ok_or(fmt::Error)?;
        room.copy_from_slice(octets);
        self.len = end;
        Ok(())
    }
}

impl<const N: usize> Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}

/// Room for every page but `/50k`; a test writes the longest ones.
pub(super) const PAGE_MAX: usize = 640;

impl Page {
    /// The page at a path, which begins with a slash.
    pub fn find(path: &[u8]) -> Option<Page> {
        match path {
            b"/" => Some(Page::Index),
            b"/50k" => Some(Page::Bulk),
            b"/sensors" => Some(Page::Sensors),
            b"/info" => Some(Page::Info),
            b"/.well-known/core" => Some(Page::Core),
            _ => None,
        }
    }

    /// Its HTTP media type.
    pub fn media(self) -> &'static str {
        match self {
            Page::Index => "text/html",
            Page::Bulk => "application/octet-stream",
            Page::Sensors | Page::Info => "application/json",
            Page::Core => "application/link-format",
        }
    }

    /// Its CoAP Content-Format (RFC 7252, 12.3).
    pub fn content_format(self) -> u8 {
        match self {
            Page::Index => 0,
            Page::Core => 40,
            Page::Bulk => 42,
            Page::Sensors | Page::Info => 50,
        }
    }

    /// Writes the page; nothing for `/50k`, whose octets are computed when they are sent.
    pub fn write<const N: usize>(self, facts: &Facts, text: &mut Text<N>) -> fmt::Result {
        match self {
            Page::Bulk => Ok(()),
            Page::Core => text.write_str("</sensors>;ct=50,</50k>;ct=42;sz=50000,</sink>"),
            Page::Index => writeln!(
                text,
                "<!DOCTYPE html><title>node {0}</title><h1>node {0}</h1><ul>\
                 <li><a href=/info>/info</a> this connection and the radio\
                 <li><a href=/sensors>/sensors</a> what the node measures\
                 <li><a href=/50k>/50k</a> {BULK_LEN} octets</ul>",
                facts.node
            ),
            Page::Sensors => sensors(facts, text),
            Page::Info => info(facts, text),
        }
    }
}

/// The radio's duty cycle, in hundredths of a percent.
fn duty(facts: &Facts) -> u64 {
    let (on, at) = facts.radio;
    on.nanos().checked_div(at.nanos() / 10_000).unwrap_or(0)
}

fn sensors(facts: &Facts, text: &mut impl Write) -> fmt::Result {
    let duty = duty(facts);
    writeln!(
        text,
        "{{\"node\":{},\"uptime_ms\":{},\"radio_on_ms\":{},\"radio_duty_percent\":{}.{:02},\"requests\":{},\"sunk_bytes\":{}}}",
        facts.node,
        facts.now.nanos() / 1_000_000,
        facts.radio.0.nanos() / 1_000_000,
        duty / 100,
        duty % 100,
        facts.requests,
        facts.sunk,
    )
}

fn info(facts: &Facts, text: &mut impl Write) -> fmt::Result {
    let duty = duty(facts);
    write!(
        text,
        "{{\"node\":{},\"uptime_ms\":{},\"radio_duty_percent\":{}.{:02},\"tcp\":",
        facts.node,
        facts.now.nanos() / 1_000_000,
        duty / 100,
        duty % 100
    )?;
    let Some(tcp) = &facts.tcp else {
        return text.write_str("null}\n");
    };
    let micros = |span: Duration| span.nanos() / 1000;
    writeln!(
        text,
        "{{\"state\":\"{:?}\",\"phase\":\"{:?}\",\"cwnd_bytes\":{},\"ssthresh_bytes\":{},\"in_flight_bytes\":{},\
         \"send_window_bytes\":{},\"mss_bytes\":{},\"srtt_us\":{},\"min_rtt_us\":{},\"rto_us\":{},\"retransmits\":{},\
         \"timeouts\":{},\"recoveries\":{},\"undone\":{},\"sack\":{},\"timestamps\":{},\"ecn\":{}}}}}",
        tcp.state,
        tcp.phase,
        tcp.cwnd,
        tcp.ssthresh,
        tcp.in_flight,
        tcp.send_window,
        tcp.send_mss,
        micros(tcp.srtt),
        micros(tcp.min_rtt),
        micros(tcp.rto),
        tcp.counters.retransmits,
        tcp.counters.timeouts,
        tcp.counters.recoveries,
        tcp.counters.undone,
        tcp.sack,
        tcp.timestamps,
        tcp.ecn,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Local, Memory, NewReno, Range, Secret, Sent, Socket};

    /// Goal: every page fits its room whatever the numbers. Method: the largest numbers there are.
    #[test]
    fn the_longest_pages_fit() {
        let local = Local {
            address: core::net::IpAddr::V6("fd00::1".parse().unwrap()),
            secret: Secret::new([0; 16]),
            config: crate::tcp::Config::STANDARD,
        };
        let (mut send, mut receive) = ([0; 8], [0; 8]);
        let (mut ranges, mut flight) = ([Range::default(); 1], [Sent::default(); 1]);
        let memory = Memory {
            send: &mut send,
            receive: &mut receive,
            ranges: &mut ranges,
            flight: &mut flight,
        };
        let mut tcp = Socket::new(&local, memory, NewReno).unwrap().info();
        for number in [
            &mut tcp.cwnd,
            &mut tcp.ssthresh,
            &mut tcp.in_flight,
            &mut tcp.send_window,
            &mut tcp.send_mss,
        ] {
            *number = u32::MAX;
        }
        for span in [&mut tcp.srtt, &mut tcp.min_rtt, &mut tcp.rto] {
            *span = Duration::from_micros(u32::MAX.into());
        }
        tcp.counters.retransmits = u16::MAX;
        tcp.counters.timeouts = u16::MAX;
        tcp.counters.recoveries = u16::MAX;
        tcp.counters.undone = u16::MAX;
        let facts = Facts {
            node: u16::MAX,
            now: Instant::from_nanos(u64::MAX),
            radio: (Duration::from_nanos(u64::MAX), Instant::from_nanos(10_000)),
            requests: u32::MAX,
            sunk: u64::MAX,
            tcp: Some(tcp),
        };
        for page in [Page::Index, Page::Sensors, Page::Info, Page::Core] {
            let mut text = Text::<PAGE_MAX>::EMPTY;
            assert_eq!(page.write(&facts, &mut text), Ok(()), "{page:?}");
            assert!(text.as_bytes().len() > 40);
        }
        let mut line = Text::<{ super::super::report::LINE_MAX }>::EMPTY;
        assert_eq!(Page::Sensors.write(&facts, &mut line), Ok(()));
        let mut small = Text::<4>::EMPTY;
        assert_eq!(small.write_str("12345"), Err(fmt::Error));
    }

    #[test]
    fn the_radios_share_is_of_the_nodes_life() {
        let facts = Facts {
            node: 1,
            now: Instant::from_millis(2100),
            radio: (Duration::from_millis(25), Instant::from_millis(2000)),
            requests: 0,
            sunk: 0,
            tcp: None,
        };
        assert_eq!(duty(&facts), 125);
        let unborn = Facts {
            radio: (Duration::ZERO, Instant::ZERO),
            ..facts
        };
        assert_eq!(duty(&unborn), 0);
    }
}
