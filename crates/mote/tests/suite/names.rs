//! Names, by a server among the nodes.

use std::net::{IpAddr, Ipv6Addr};

use chappe_mote::{Clock, DnsError, UdpSocket};
use embedded_nal_async::{AddrType, Dns};

use crate::island::{Net, at, island, pause, run};

const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5);

/// Drops the first query of each name, lies about the second one's number first, and then answers it.
async fn serve(stack: &'static Net, queries: usize) {
    let socket = UdpSocket::bind(stack, 53).unwrap();
    for number in 0..queries {
        let mut query = [0; 200];
        let (len, from) = socket.receive_from(&mut query).await.unwrap();
        if number == 0 {
            continue;
        }
        let mut answer = query[..len].to_vec();
        answer[2..4].copy_from_slice(&[0x81, 0x80]);
        match &query[13..16] {
            b"not" if query[16] == 7 => answer[3] |= 3,
            _ => {
                answer[7] = 1;
                answer.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 9, 0, 16]);
                answer.extend(ADDRESS.octets());
            }
        }
        let mut forged = answer.clone();
        forged[0] ^= 1;
        *forged.last_mut().unwrap() = 6;
        socket.send_to(&forged, from).await.unwrap();
        socket.send_to(&answer, from).await.unwrap();
    }
    pause(stack, 1000).await;
}

async fn resolve(stack: &'static Net) {
    let find = |name| stack.get_host_by_name(name, AddrType::Either);
    assert_eq!(find("mote.example").await, Err(DnsError::NoServer));
    assert_eq!(find("2001:db8::5").await, Ok(IpAddr::V6(ADDRESS)));
    stack.resolve_by(at(1, 53));
    let before = stack.clock().now();
    assert_eq!(find("mote.example").await, Ok(IpAddr::V6(ADDRESS)));
    let took = stack.clock().now().saturating_since(before);
    assert!(
        (2.0..3.0).contains(&took.as_secs_f64()),
        "one query is lost: {took:?}"
    );
    assert_eq!(find("nothing.example").await, Ok(IpAddr::V6(ADDRESS)));
    assert_eq!(find("not.example").await, Err(DnsError::NotFound));
    assert_eq!(find("a..b").await, Err(DnsError::BadName));
    let v4 = stack.get_host_by_name("mote.example", AddrType::IPv4).await;
    assert_eq!(v4, Err(DnsError::NotSupported));
    stack.resolve_by(at(1, 54));
    assert_eq!(find("mote.example").await, Err(DnsError::TimedOut));
}

#[test]
fn names_are_resolved_by_the_server_that_was_asked() {
    let client = island(0, 2, |stack| vec![Box::pin(resolve(stack))]);
    let server = island(1, 2, |stack| vec![Box::pin(serve(stack, 4))]);
    run(vec![client, server], 1.0, 60);
}
