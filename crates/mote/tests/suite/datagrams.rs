//! UDP sockets between the tasks of two motes.

use std::net::SocketAddr;

use chappe_mote::{Error, UdpSocket};
use embedded_nal_async::{ConnectedUdp, UdpStack};

use crate::island::{Net, at, island, pause, run};

/// Answers `count` datagrams on port 5683 by their own octets.
async fn reflect(stack: &'static Net, count: usize) {
    let socket = UdpSocket::bind(stack, 5683).unwrap();
    let taken = UdpSocket::bind(stack, 5683).map(drop);
    assert_eq!(taken, Err(Error::PortInUse));
    for _ in 0..count {
        let mut data = [0; 200];
        let (len, from) = socket.receive_from(&mut data).await.unwrap();
        socket.send_to(&data[..len], from).await.unwrap();
    }
    socket.flush().await;
    // The last answer is still in frames.
    pause(stack, 1000).await;
}

async fn ask(stack: &'static Net) {
    let (local, mut socket) = stack.connect(SocketAddr::V6(at(1, 5683))).await.unwrap();
    assert!(local.port() >= 49_152);
    for len in [0, 1, 50, 180] {
        let data = vec![len as u8; len];
        socket.send(&data).await.unwrap();
        let mut back = [0; 200];
        assert_eq!(socket.receive_into(&mut back).await, Ok(len));
        assert_eq!(&back[..len], data);
    }
    let large = socket.send(&[0; 201]).await;
    assert_eq!(large, Err(Error::TooLarge));
    socket.send(&[9; 30]).await.unwrap();
    let cut = socket.receive_into(&mut [0; 10]).await;
    assert_eq!(cut, Err(Error::Truncated));

    // Two mailboxes: one of them is in use.
    let other = UdpSocket::bind(stack, 0).unwrap();
    let third = UdpSocket::bind(stack, 0).map(drop);
    assert_eq!(third, Err(Error::NoSocket));
    assert_ne!(other.port(), local.port());
    let v4 = stack.connect("10.0.0.1:7".parse().unwrap()).await.map(drop);
    assert_eq!(v4, Err(Error::NotIpv6));
}

#[test]
fn datagrams_come_back() {
    let client = island(0, 2, |stack| vec![Box::pin(ask(stack))]);
    let server = island(1, 2, |stack| vec![Box::pin(reflect(stack, 5))]);
    run(vec![client, server], 1.0, 30);
}
