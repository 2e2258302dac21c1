//! The thermometer by CoAP (RFC 7252): GET /temperature, which can be observed (RFC 7641).

use chappe_core::Duration;
use chappe_mote::{Clock, Stack, UdpSocket};
use chappe_tcplp::coap::{Code, Kind, Message, Observers, PORT, Writer, option};
use embassy_futures::select::{Either, select};

use crate::reading::{Reading, Sensor, Text};

/// How often the sensor is read for observers.
const INTERVAL: Duration = Duration::from_secs(2);
const OBSERVERS: usize = 2;
/// Requests and answers fit a frame.
const MESSAGE_MAX: usize = 64;

/// Serves for as long as the node runs.
pub async fn serve<K: Clock>(stack: &Stack<'_, K>, sensor: &impl Sensor) {
    let Ok(socket) = UdpSocket::bind(stack, PORT) else {
        return;
    };
    let clock = stack.clock();
    let mut observers: Observers<OBSERVERS> = Observers::new(0);
    let mut told = sensor.read();
    let mut next = clock.now() + INTERVAL;
    let (mut heard, mut said) = ([0; MESSAGE_MAX], [0; MESSAGE_MAX]);
    loop {
        let request = socket.receive_from(&mut heard);
        match select(request, clock.sleep_until(next)).await {
            Either::First(Ok((len, from))) => {
                let peer = (*from.ip(), from.port());
                let Ok(message) = Message::parse(&heard[..len]) else {
                    continue;
                };
                let answer = answer(&mut observers, peer, &message, sensor.read(), &mut said);
                if let Some(len) = answer {
                    // A datagram that cannot be sent is lost like one on the air: the client asks again.
                    let _ = socket.send_to(&said[..len], from).await;
                }
            }
            // Longer than any request we know.
            Either::First(Err(_)) => {}
            Either::Second(()) => {
                next += INTERVAL;
                let now = sensor.read();
                if now != told {
                    told = now;
                    observers.changed();
                }
                let content: Text<16> = Text::of(format_args!("{now}"));
                while let Some((peer, len)) = observers.poll(content.as_bytes(), &mut said) {
                    let to = core::net::SocketAddrV6::new(peer.0, peer.1, 0, 0);
                    let _ = socket.send_to(&said[..len], to).await;
                }
            }
        }
    }
}

/// Writes the answer to a message, if it has one.
fn answer(
    observers: &mut Observers<OBSERVERS>,
    peer: (core::net::Ipv6Addr, u16),
    message: &Message<'_>,
    reading: Reading,
    said: &mut [u8],
) -> Option<usize> {
    if matches!(message.kind, Kind::Ack | Kind::Reset) {
        observers.answer(peer, message);
        return None;
    }
    if message.code == Code::EMPTY {
        // RFC 7252 4.3: a "CoAP ping".
        let pong = Writer::new(said, Kind::Reset, Code::EMPTY, message.id, message.token)?;
        return Some(pong.len());
    }
    let kind = match message.kind {
        Kind::Confirmable => Kind::Ack,
        _ => Kind::NonConfirmable,
    };
    let mut path = message
        .options()
        .filter(|(number, _)| *number == option::URI_PATH);
    let ours = path.next().is_some_and(|(_, part)| part == b"temperature") && path.next().is_none();
    let code = match message.code {
        _ if message.unknown_critical() => Code::BAD_OPTION,
        Code::GET if ours => Code::CONTENT,
        Code::GET => Code::NOT_FOUND,
        _ => Code::NOT_ALLOWED,
    };
    let mut writer = Writer::new(said, kind, code, message.id, message.token)?;
    if code == Code::CONTENT {
        if let Some(sequence) = observers.request(peer, message) {
            writer.number(option::OBSERVE, sequence)?;
        }
        writer.number(option::CONTENT_FORMAT, 0)?;
        let content: Text<16> = Text::of(format_args!("{reading}"));
        writer.payload(content.as_bytes())?;
    }
    Some(writer.len())
}
