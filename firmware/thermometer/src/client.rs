//! A visitor: asks a thermometer by HTTP and by CoAP, and observes it.

use core::net::{Ipv6Addr, SocketAddrV6};

use chappe_core::Duration;
use chappe_mote::{Clock, Error, Stack, TcpSocket, UdpSocket};
use chappe_tcplp::coap::{Code, Kind, Message, PORT, Token, Writer, option};
use embassy_futures::select::{Either, select};
use embedded_io_async::{Read, Write};

/// What a visit found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// Status of GET /temperature, GET /nothing, POST /temperature, and a request without Host.
    pub statuses: [u16; 4],
    /// Octets of the first answer's body.
    pub body: usize,
    /// Notifications heard, each with a greater sequence number than the one before.
    pub notifications: u32,
}

const REQUESTS: [&str; 4] = [
    "GET /temperature HTTP/1.1\r\nHost: mote\r\n\r\n",
    "GET /nothing HTTP/1.1\r\nHost: mote\r\n\r\n",
    "POST /temperature HTTP/1.1\r\nHost: mote\r\n\r\n",
    "GET /temperature HTTP/1.1\r\n\r\n",
];
/// Notifications that are awaited.
const NOTIFICATIONS: u32 = 3;
/// CoAP's ACK_TIMEOUT (RFC 7252 4.8), without its variation: there is one client.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Visits the thermometer at `server`.
pub async fn visit<K: Clock>(stack: &Stack<'_, K>, server: Ipv6Addr) -> Result<Visit, Error> {
    let mut visit = Visit::default();
    for (request, status) in REQUESTS.into_iter().zip(&mut visit.statuses) {
        let (found, body) = ask(stack, server, request).await?;
        *status = found;
        visit.body = visit.body.max(body);
    }
    visit.notifications = observe(stack, server).await?;
    Ok(visit)
}

/// Status and length of the body of one request.
async fn ask<K: Clock>(
    stack: &Stack<'_, K>,
    server: Ipv6Addr,
    request: &str,
) -> Result<(u16, usize), Error> {
    let mut socket = TcpSocket::connect(stack, SocketAddrV6::new(server, 80, 0, 0)).await?;
    socket.write_all(request.as_bytes()).await?;
    let (mut answer, mut len) = ([0; 256], 0);
    while len < answer.len() {
        match socket.read(&mut answer[len..]).await? {
            0 => break,
            more => len += more,
        }
    }
    let answer = core::str::from_utf8(&answer[..len]).unwrap_or_default();
    let status = answer.get(9..12).and_then(|digits| digits.parse().ok());
    let body = answer
        .split_once("\r\n\r\n")
        .map_or(0, |(_, body)| body.len());
    Ok((status.unwrap_or(0), body))
}

/// Registers, and counts notifications in order.
async fn observe<K: Clock>(stack: &Stack<'_, K>, server: Ipv6Addr) -> Result<u32, Error> {
    let server = SocketAddrV6::new(server, PORT, 0, 0);
    let socket = UdpSocket::connect(stack, 0, server)?;
    let (mut request, mut heard) = ([0; 64], [0; 64]);
    let asked = ask_to_observe(&mut request).unwrap_or(0);
    socket.send_to(&request[..asked], server).await?;
    let (mut count, mut last) = (0, None);
    while count < NOTIFICATIONS {
        let until = stack.clock().now() + TIMEOUT + TIMEOUT;
        let receive = socket.receive_from(&mut heard);
        let len = match select(receive, stack.clock().sleep_until(until)).await {
            Either::First(received) => received?.0,
            Either::Second(()) => {
                socket.send_to(&request[..asked], server).await?;
                continue;
            }
        };
        let Ok(message) = Message::parse(&heard[..len]) else {
            continue;
        };
        let observe = message
            .options()
            .find(|(number, _)| *number == option::OBSERVE);
        let Some((_, value)) = observe.filter(|_| message.code == Code::CONTENT) else {
            continue;
        };
        let sequence = value
            .iter()
            .fold(0u32, |all, &octet| all << 8 | u32::from(octet));
        if message.kind == Kind::Confirmable {
            let mut ack = [0; 8];
            let writer = Writer::new(
                &mut ack,
                Kind::Ack,
                Code::EMPTY,
                message.id,
                Token::default(),
            );
            let len = writer.map_or(0, |writer| writer.len());
            socket.send_to(&ack[..len], server).await?;
        }
        if message.kind != Kind::Ack && last.is_none_or(|last| sequence > last) {
            count += 1;
        }
        last = Some(sequence);
    }
    Ok(count)
}

fn ask_to_observe(buffer: &mut [u8]) -> Option<usize> {
    let token = Token::new(0x7e9);
    let mut writer = Writer::new(buffer, Kind::Confirmable, Code::GET, 1, token)?;
    writer.number(option::OBSERVE, 0)?;
    writer.option(option::URI_PATH, b"temperature")?;
    Some(writer.len())
}
