//! A visitor: asks a thermometer by HTTP and by CoAP, and observes it.

use core::net::{Ipv6Addr, SocketAddrV6};

use chappe_core::{Instant, Purpose, Seed};
use chappe_mote::{Clock, Error, Stack, TcpSocket, UdpSocket};
use chappe_tcplp::coap::{Observation, PORT, Standard};
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
/// Requests and notifications fit a frame.
const MESSAGE_MAX: usize = 64;

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

/// Registers, and counts the changes that the server tells in order.
async fn observe<K: Clock>(stack: &Stack<'_, K>, server: Ipv6Addr) -> Result<u32, Error> {
    let server = SocketAddrV6::new(server, PORT, 0, 0);
    let socket = UdpSocket::connect(stack, 0, server)?;
    let clock = stack.clock();
    // The same in every run, which are compared.
    let random = Seed(1).stream(Purpose::Node(0));
    let mut observation = Observation::new("temperature", Standard, random);
    observation.register();
    let (mut said, mut heard) = ([0; MESSAGE_MAX], [0; MESSAGE_MAX]);
    let mut count = 0;
    loop {
        while let Some(len) = observation.poll(clock.now(), &mut said) {
            socket.send_to(&said[..len], server).await?;
        }
        if count >= NOTIFICATIONS {
            return Ok(count);
        }
        if observation.outcome().is_some() {
            observation.register();
            continue;
        }
        let until = observation
            .poll_timeout()
            .map_or(Instant::MAX, |wake| wake.at);
        let receive = socket.receive_from(&mut heard);
        match select(receive, clock.sleep_until(until)).await {
            Either::First(received) => {
                let (len, _) = received?;
                let told = observation.handle(clock.now(), &heard[..len]);
                count += u32::from(told.is_some_and(|told| told.unasked && told.last));
            }
            Either::Second(()) => observation.handle_timeout(clock.now()),
        }
    }
}
