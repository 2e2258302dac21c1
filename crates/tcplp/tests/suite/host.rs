//! A host alone: pings, refused and accepted connections, and the node contract.

use crate::support;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Address, Duration, Expect, HostNode, Instant, Purpose, Seed, contract};
use chappe_tcplp::host::{Application, Bulk, Collect, Host, Readings, Sense};
use chappe_tcplp::lowpan::Config;
use chappe_tcplp::tcp::{self, Endpoint, Local, Memory, NewReno, Range, Secret, Sent, Socket};
use chappe_wire::ipv6::Header;
use support::mote::{PREFIX, address, ms, packet, tcp_host};

/// Pings of all sizes up to 64 octets are answered, at the unicast address and at all-nodes. Larger ones to the unicast address are refused
/// as "administratively prohibited" and counted; nothing else is answered.
#[test]
fn a_host_answers_pings() {
    use chappe_wire::icmpv6::Message;
    let mut host = tcp_host(1);
    let all_nodes: Ipv6Addr = "ff02::1".parse().unwrap();
    let mut large = 0;
    for (to, answers) in [(address(1), true), (all_nodes, true), (address(3), false)] {
        for len in [0usize, 1, 64, 65, 500] {
            let data = vec![5; len];
            let echo = Message::Echo {
                reply: false,
                id: 7,
                sequence: 9,
                data: &data,
            };
            let mut ping = packet(2, 1, 48 + len);
            ping[6] = 58;
            ping[24..40].copy_from_slice(&to.octets());
            echo.emit(address(2), to, &mut ping[40..]).unwrap();
            host.handle_packet(ms(1), &ping);
            let mut out = [0; 1280];
            let answer = host.poll_packet(ms(1), &mut out);
            let refused = to == address(1) && len == 65;
            large += u32::from(answers && len > 64);
            assert_eq!(
                answer.is_some(),
                answers && len <= 64 || refused,
                "{to} {len}"
            );
            assert_eq!(host.counters().large_pings, large);
            if let Some(all) = answer {
                let header = Header::parse(&out).unwrap();
                assert_eq!(header.destination, address(2));
                let message = Message::parse(header.source, header.destination, &out[40..all]);
                assert!(match message {
                    Ok(Message::Echo {
                        reply: true,
                        id: 7,
                        data: back,
                        ..
                    }) => back == data,
                    // The second large one, at the same time, is beyond one error in 100 ms.
                    Ok(Message::Error {
                        kind: 1,
                        code: 1,
                        quote,
                        ..
                    }) => refused && ping.starts_with(quote),
                    _ => false,
                });
            }
        }
    }
}

/// A SYN to a closed port is refused; to the open one it is answered, and the host then expects the request.
//= tcplp 8.1.1: after a SYN the sleep interval is reduced in anticipation of the request
#[test]
fn a_host_refuses_and_accepts() {
    let mut host = tcp_host(1);
    host.app_mut().to_send = 0;
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(address(2)),
        secret: Secret::new([2; 16]),
        config: tcp::Config::STANDARD,
    }));
    for (port, accepted) in [(81, false), (80, true)] {
        let memory = Memory {
            send: vec![0; 100].leak(),
            receive: vec![0; 100].leak(),
            ranges: vec![Range::default(); 1].leak(),
            flight: vec![Sent::default(); 1].leak(),
        };
        let socket = Socket::new(local, memory, NewReno).unwrap();
        let peer_local = Config::new(Address::node(2), PREFIX, 0).link_local();
        let mut peer: Host<'_, Bulk> = Host::new(local, peer_local, [socket], Bulk::default());
        assert!(peer.connect(
            ms(1),
            4000 + port,
            tcp::Endpoint::new(IpAddr::V6(address(1)), port)
        ));
        let mut out = [0; 1280];
        for _ in 0..4 {
            while let Some(len) = peer.poll_packet(ms(2), &mut out) {
                host.handle_packet(ms(2), &out[..len]);
            }
            while let Some(len) = host.poll_packet(ms(2), &mut out) {
                peer.handle_packet(ms(2), &out[..len]);
            }
        }
        let state = peer.sockets()[0].state();
        assert_eq!(state == tcp::State::Established, accepted, "{state:?}");
        let expects = host.expects();
        let wanted = if accepted {
            Expect::Request
        } else {
            Expect::Nothing
        };
        assert_eq!(expects, wanted);
    }
}

/// An application that opens a connection by itself, from the port that its secret chooses.
struct Caller(&'static Local);

impl<'a, C: tcp::Congestion> Application<'a, C> for Caller {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a, C>]) {
        if sockets
            .iter()
            .all(|socket| socket.state() == tcp::State::Closed)
        {
            let end = |address, port| tcp::Endpoint::new(IpAddr::V6(address), port);
            let server = end(address(1), 80);
            let flow = tcp::Flow::new(end(address(2), 0), server);
            let port = self.0.secret.ephemeral_port(&flow, 0);
            assert_eq!(
                chappe_tcplp::host::connect(sockets, now, port, server),
                Some(0)
            );
            assert_eq!(
                chappe_tcplp::host::connect(sockets, now, port, server),
                None
            );
        }
    }
}

/// Connections can be opened from `serve`, where an application has its sockets and not its host.
#[test]
fn an_application_opens_a_connection() {
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(address(2)),
        secret: Secret::new([2; 16]),
        config: tcp::Config::STANDARD,
    }));
    let memory = Memory {
        send: vec![0; 100].leak(),
        receive: vec![0; 100].leak(),
        ranges: vec![Range::default(); 1].leak(),
        flight: vec![Sent::default(); 1].leak(),
    };
    let socket = Socket::new(local, memory, NewReno).unwrap();
    let link_local = Config::new(Address::node(2), PREFIX, 0).link_local();
    let mut host = Host::new(local, link_local, [socket], Caller(local));
    host.serve(ms(1));
    let mut out = [0; 1280];
    let len = host.poll_packet(ms(1), &mut out).unwrap();
    let syn = tcp::Segment::parse(&out[40..len]).unwrap();
    assert!(syn.flags.has(tcp::Flags::SYN) && !syn.flags.has(tcp::Flags::ACK));
    assert_eq!(syn.destination_port, 80);
    assert!(syn.source_port >= 49_152);
}

#[test]
fn a_host_keeps_its_promises() {
    contract::check_host(60, tcp_host);
}

/// A host with this application and four sockets, which gives up after five minutes.
fn host_with<A: Application<'static>>(
    node: u16,
    app: impl FnOnce(&'static Local) -> A,
) -> Host<'static, A, 4> {
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(address(node)),
        secret: Secret::new([node as u8; 16]),
        config: tcp::Config {
            user_timeout: Duration::from_secs(300),
            ..tcp::Config::STANDARD
        },
    }));
    let sockets = std::array::from_fn(|_| {
        let memory = Memory {
            send: vec![0; 2000].leak(),
            receive: vec![0; 2000].leak(),
            ranges: vec![Range::default(); 8].leak(),
            flight: vec![Sent::default(); 16].leak(),
        };
        Socket::new(local, memory, NewReno).unwrap()
    });
    let link_local = Config::new(Address::node(node), PREFIX, 127).link_local();
    Host::new(local, link_local, sockets, app(local))
}

/// A mote that senses opens its connection itself, and again after an air that was cut for ten minutes, a server that was not there at
/// first, and losses: each reading is counted once, none is missing, and no octet is wrong.
#[test]
fn sensing_goes_on_over_another_connection() {
    let mut again = 0;
    for seed in 0..20 {
        let mut random = Seed(seed).stream(Purpose::Trial(0));
        let mut readings = Readings::tcplp(ms(1000));
        (readings.batch, readings.queue_max, readings.limit) = (4, 5000, 3000);
        let server = Endpoint::new(IpAddr::V6(address(1)), 9);
        let mut mote = host_with(2, |local| Sense::reopening(readings, server, local));
        let mut cloud = host_with(1, |_| Collect::<2>::with_positions());
        let cut = 600 + random.below(600);
        let (mut ports, mut now, mut packet) = (BTreeSet::new(), Instant::ZERO, [0; 1280]);
        while now < ms(6_000_000) {
            let second = now.nanos() / 1_000_000_000;
            if second == 20 {
                cloud.listen(9);
            }
            let is_cut = (cut..cut + 600).contains(&second);
            mote.handle_timeout(now);
            cloud.handle_timeout(now);
            loop {
                let up = mote
                    .poll_packet(now, &mut packet)
                    .map(|len| packet[..len].to_vec());
                let down = cloud
                    .poll_packet(now, &mut packet)
                    .map(|len| packet[..len].to_vec());
                if up.is_none() && down.is_none() {
                    break;
                }
                if let Some(up) = up.filter(|_| !is_cut && random.below(20) > 0) {
                    ports.insert([up[40], up[41]]);
                    cloud.handle_packet(now, &up);
                }
                if let Some(down) = down.filter(|_| !is_cut && random.below(20) > 0) {
                    mote.handle_packet(now, &down);
                }
            }
            now += Duration::from_millis(50);
        }
        let tally = cloud.app().tally(address(2));
        assert_eq!((tally.octets, tally.wrong), (3000 * 82, 0), "seed {seed}");
        assert_eq!(mote.app().readings.lost, 0);
        again += ports.len();
    }
    // The refused ones, the one that was cut, and the last one.
    assert!(again >= 20 * 3, "{again}");
}
