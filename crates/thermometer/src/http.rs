//! The thermometer by HTTP/1.1 (RFC 9112): one connection at a time, one request each.

use chappe_core::Duration;
use chappe_mote::{Clock, Error, Stack, TcpListener, TcpSocket};
use embassy_futures::select::select;
use embedded_io_async::{Read, Write};

use crate::reading::{Sensor, Text};

const PORT: u16 = 80;
/// The longest request that is read.
const REQUEST_MAX: usize = 384;
/// A client that takes longer is cut off, so that the next one is served.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves for as long as the node runs.
pub async fn serve<K: Clock>(stack: &Stack<'_, K>, sensor: &impl Sensor) {
    let Ok(listener) = TcpListener::bind(stack, PORT) else {
        return;
    };
    loop {
        let mut socket = listener.accept().await;
        let until = stack.clock().now() + PATIENCE;
        let clock = stack.clock();
        // A client that fails or dawdles loses its connection, which is all that can be done for it.
        select(answer(&mut socket, sensor), clock.sleep_until(until)).await;
        select(socket.close(), clock.sleep_until(until)).await;
    }
}

async fn answer<K: Clock>(
    socket: &mut TcpSocket<'_, '_, K>,
    sensor: &impl Sensor,
) -> Result<(), Error> {
    let mut request = [0; REQUEST_MAX];
    let mut len = 0;
    let complete = loop {
        let heard = &request[..len];
        if heard.windows(4).any(|end| end == b"\r\n\r\n") {
            break true;
        }
        match socket.read(&mut request[len..]).await? {
            0 => break false,
            more => len += more,
        }
    };
    let (status, body) = match complete {
        true => judge(&request[..len], sensor),
        // Full, or ended in the middle.
        false if len == REQUEST_MAX => (
            "431 Request Header Fields Too Large",
            Text::of(format_args!("")),
        ),
        false => ("400 Bad Request", Text::of(format_args!(""))),
    };
    let body: Text<16> = body;
    let head: Text<160> = Text::of(format_args!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.as_bytes().len(),
    ));
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body.as_bytes()).await?;
    socket.flush().await
}

/// Status and body for a complete request.
fn judge(request: &[u8], sensor: &impl Sensor) -> (&'static str, Text<16>) {
    let empty = || Text::of(format_args!(""));
    let Ok(request) = core::str::from_utf8(request) else {
        return ("400 Bad Request", empty());
    };
    let mut lines = request.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next());
    let has_host = lines.any(|line| {
        line.get(..5)
            .is_some_and(|name| name.eq_ignore_ascii_case("host:"))
    });
    match (method, path, version) {
        // RFC 9112 3.2: a request of HTTP/1.1 has a Host.
        (_, _, Some("HTTP/1.1")) if !has_host => ("400 Bad Request", empty()),
        (Some("GET"), Some("/temperature"), Some("HTTP/1.1" | "HTTP/1.0")) => {
            ("200 OK", Text::of(format_args!("{}\n", sensor.read())))
        }
        (Some("GET"), Some(_), Some("HTTP/1.1" | "HTTP/1.0")) => ("404 Not Found", empty()),
        (Some(_), Some(_), Some("HTTP/1.1" | "HTTP/1.0")) => ("405 Method Not Allowed", empty()),
        _ => ("400 Bad Request", empty()),
    }
}
