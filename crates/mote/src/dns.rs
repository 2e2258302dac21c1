//! Names to addresses, by a server of DNS (RFC 1035).

use core::net::{IpAddr, Ipv6Addr};

use chappe_core::Duration;
use embassy_futures::select::{Either, select};
use embedded_nal_async::{AddrType, Dns};
use smoltcp::wire::{
    DnsFlags, DnsOpcode, DnsPacket, DnsQueryType, DnsQuestion, DnsRcode, DnsRecord,
};
use smoltcp::wire::{DnsRecordData, DnsRepr};

use crate::clock::Clock;
use crate::error::Error;
use crate::stack::Stack;
use crate::udp::UdpSocket;

/// The largest message over UDP (RFC 1035 4.2.1) is 512 octets; a mote's datagrams are smaller, and an answer with one
/// address is too.
const MESSAGE_MAX: usize = 512;
/// Octets of a name as it is sent (RFC 1035 3.1).
const NAME_MAX: usize = 255;
const LABEL_MAX: usize = 63;
/// The first timeout, doubled for each try: RFC 1035 4.2.1 asks for 2 to 5 s.
const TIMEOUT: Duration = Duration::from_secs(2);
const TRIES: u32 = 3;

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsError {
    /// No server is set: see [`Stack::resolve_by`].
    NoServer,
    /// The name is empty, longer than 255 octets, or has a label that is empty or longer than 63.
    BadName,
    /// The server knows no such name, or no IPv6 address of it.
    NotFound,
    /// The server refused, or failed.
    Refused,
    /// The server did not answer three times.
    TimedOut,
    /// Only names to IPv6 addresses are resolved.
    NotSupported,
    /// The UDP socket for the query failed.
    Socket(Error),
}

impl core::fmt::Display for DnsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            DnsError::NoServer => "no server of names is set",
            DnsError::BadName => "this is not a name of DNS",
            DnsError::NotFound => "the name has no IPv6 address",
            DnsError::Refused => "the server of names refused to answer, or failed",
            DnsError::TimedOut => "the server of names did not answer",
            DnsError::NotSupported => "only names to IPv6 addresses can be resolved",
            DnsError::Socket(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for DnsError {}

impl<K: Clock> Dns for Stack<'_, K> {
    type Error = DnsError;

    /// Resolves a name to its first IPv6 address. An address in text is returned as it is.
    async fn get_host_by_name(&self, host: &str, kind: AddrType) -> Result<IpAddr, DnsError> {
        if matches!(kind, AddrType::IPv4) {
            return Err(DnsError::NotSupported);
        }
        if let Ok(address) = host.parse::<Ipv6Addr>() {
            return Ok(IpAddr::V6(address));
        }
        resolve(self, host).await.map(IpAddr::V6)
    }

    /// Not supported: a mote has no use for names of addresses.
    async fn get_host_by_address(&self, _: IpAddr, _: &mut [u8]) -> Result<usize, DnsError> {
        Err(DnsError::NotSupported)
    }
}

async fn resolve<K: Clock>(stack: &Stack<'_, K>, host: &str) -> Result<Ipv6Addr, DnsError> {
    let server = stack.names().ok_or(DnsError::NoServer)?;
    let mut name = [0; NAME_MAX];
    let name = encode(host, &mut name).ok_or(DnsError::BadName)?;
    let socket = UdpSocket::connect(stack, 0, server).map_err(DnsError::Socket)?;
    let mut message = [0; MESSAGE_MAX];
    for attempt in 0..TRIES {
        // An off-path attacker must guess it, beside the port (RFC 5452).
        let id = stack.unpredictable(attempt) as u16;
        let query = write(id, name, &mut message).ok_or(DnsError::BadName)?;
        let sent = socket.send_to(query, server).await;
        sent.map_err(DnsError::Socket)?;
        let until = stack.clock().now() + Duration::from_nanos(TIMEOUT.nanos() << attempt);
        let listen = listen(&socket, id, name, &mut message);
        if let Either::First(answer) = select(listen, stack.clock().sleep_until(until)).await {
            return answer;
        }
    }
    Err(DnsError::TimedOut)
}

/// Waits for the answer to a query; what is none is ignored.
async fn listen<K: Clock>(
    socket: &UdpSocket<'_, '_, K>,
    id: u16,
    name: &[u8],
    message: &mut [u8],
) -> Result<Ipv6Addr, DnsError> {
    loop {
        let Ok((len, _)) = socket.receive_from(message).await else {
            continue;
        };
        if let Some(answer) = message.get(..len).and_then(|heard| read(heard, id, name)) {
            return answer;
        }
    }
}

/// Writes a name as labels. `None` if it is none.
fn encode<'n>(host: &str, name: &'n mut [u8; NAME_MAX]) -> Option<&'n [u8]> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let mut at = 0;
    for label in host.split('.') {
        if label.is_empty() || label.len() > LABEL_MAX {
            return None;
        }
        let (len, rest) = name.get_mut(at..)?.split_first_mut()?;
        *len = label.len() as u8;
        rest.get_mut(..label.len())?
            .copy_from_slice(label.as_bytes());
        at += 1 + label.len();
    }
    *name.get_mut(at)? = 0;
    name.get(..=at)
}

fn write<'m>(id: u16, name: &[u8], message: &'m mut [u8; MESSAGE_MAX]) -> Option<&'m [u8]> {
    let repr = DnsRepr {
        transaction_id: id,
        opcode: DnsOpcode::Query,
        flags: DnsFlags::RECURSION_DESIRED,
        question: DnsQuestion {
            name,
            type_: DnsQueryType::Aaaa,
        },
    };
    let place = message.get_mut(..repr.buffer_len())?;
    repr.emit(&mut DnsPacket::new_unchecked(place));
    Some(place)
}

/// The answer in a message; `None` if it does not answer this query.
fn read(heard: &[u8], id: u16, name: &[u8]) -> Option<Result<Ipv6Addr, DnsError>> {
    let packet = DnsPacket::new_checked(heard).ok()?;
    let answers = packet.flags().contains(DnsFlags::RESPONSE);
    if !answers || packet.transaction_id() != id || packet.question_count() != 1 {
        return None;
    }
    let (mut rest, question) = DnsQuestion::parse(packet.payload()).ok()?;
    if question.type_ != DnsQueryType::Aaaa || !question.name.eq_ignore_ascii_case(name) {
        return None;
    }
    match packet.rcode() {
        DnsRcode::NoError => {}
        DnsRcode::NXDomain => return Some(Err(DnsError::NotFound)),
        _ => return Some(Err(DnsError::Refused)),
    }
    for _ in 0..packet.answer_record_count() {
        // The server follows aliases for us (recursion): the address stands behind them.
        let Ok((after, record)) = DnsRecord::parse(rest) else {
            break;
        };
        if let DnsRecordData::Aaaa(address) = record.data {
            return Some(Ok(address));
        }
        rest = after;
    }
    Some(Err(DnsError::NotFound))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    fn named(host: &str) -> Option<Vec<u8>> {
        encode(host, &mut [0; NAME_MAX]).map(<[u8]>::to_vec)
    }

    #[test]
    fn names_are_labels() {
        assert_eq!(named("a.bc.").unwrap(), b"\x01a\x02bc\0");
        let long = "x".repeat(64);
        for bad in ["", ".", "a..b", long.as_str(), "a.".repeat(128).as_str()] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }

    /// An answer to the query for `a.bc`, with an alias before the address.
    fn answer(id: u16, flags: u16, records: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = Vec::new();
        for number in [id, flags, 1, records.len() as u16, 0, 0] {
            message.extend(number.to_be_bytes());
        }
        message.extend(b"\x01a\x02bc\0\0\x1c\0\x01");
        for (kind, data) in records {
            message.extend([0xc0, 12]);
            message.extend(kind.to_be_bytes());
            message.extend([0, 1, 0, 0, 0, 9]);
            message.extend((data.len() as u16).to_be_bytes());
            message.extend(*data);
        }
        message
    }

    #[test]
    fn answers_are_read_and_others_ignored() {
        let (name, address) = (named("A.bc").unwrap(), [7; 16]);
        let good = answer(9, 0x8180, &[(5, &b"\x01b\0"[..]), (28, &address)]);
        assert_eq!(read(&good, 9, &name), Some(Ok(Ipv6Addr::from(address))));
        assert_eq!(read(&good, 8, &name), None, "another query's");
        assert_eq!(read(&good, 9, &named("a.bd").unwrap()), None);
        assert_eq!(read(&answer(9, 0x0100, &[]), 9, &name), None, "a query");
        let none = read(&answer(9, 0x8180, &[]), 9, &name);
        assert_eq!(none, Some(Err(DnsError::NotFound)));
        let refused = read(&answer(9, 0x8185, &[]), 9, &name);
        assert_eq!(refused, Some(Err(DnsError::Refused)));
        for len in 0..good.len() {
            // A part of an answer is ignored, or has no address.
            let part = read(&good[..len], 9, &name);
            assert!(!matches!(part, Some(Ok(_))), "{len}");
        }
    }
}
