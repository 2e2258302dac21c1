//! Callers who know the public key and call without end.

use chappe_core::{Duration, Instant};
use chappe_session::{Reason, Stamp};

use crate::hosts::{Host, Net};

/// Calls of a stranger with a key of its own, who knows the public key of host 2.
struct Flood {
    caller: Host,
}

impl Flood {
    fn new() -> Flood {
        Flood {
            caller: Host::new(5, 2, None, 50),
        }
    }

    fn call(&mut self, now: Instant) -> Vec<u8> {
        let mut out = [0; 256];
        let wall = Stamp::at(core::time::Duration::from_secs(1_800_000_000));
        let len = self.caller.sessions.call(now, wall, b"hello", &mut out);
        out[..len.unwrap()].to_vec()
    }
}

/// Goal: 10,000 calls a second with invented addresses open at most 200 a second, get replies shorter than themselves, and do not
/// keep a genuine peer from its session for longer than a cookie takes.
#[test]
fn a_flood_with_invented_addresses_delays_a_peer_by_a_cookie() {
    let mut net = Net::new([Host::new(1, 2, None, 1), Host::new(2, 1, None, 2)], 1);
    let mut flood = Flood::new();
    // Making calls is as dear as opening them, so two hundred are made and sent again and again.
    let calls: Vec<_> = (0..200).map(|_| flood.call(Instant::ZERO)).collect();
    let mut address = 100;
    for millis in 0..2_000 {
        if millis == 1_000 {
            net.hosts[0].to = Some(1);
        }
        for _ in 0..10 {
            address += 1;
            let now = net.now;
            let call = &calls[address % calls.len()];
            net.hosts[1].handle(now, address, call.clone());
            if let Some((to, reply)) = net.hosts[1].replies.pop() {
                assert!(to == address && reply.len() < call.len());
            }
        }
        net.run(1);
    }
    assert_eq!(net.up(), [true; 2]);
    assert_eq!(net.count(0, 4), 1, "one cookie is enough");
    assert!(!net.hosts[1].heard.is_empty());
    let opened = net.hosts[1].strangers.len();
    assert!(
        (400..=620).contains(&opened),
        "{opened} opened in two seconds"
    );
}

/// Goal: a caller who takes cookies is limited by its address, and keeps no other caller out.
#[test]
fn a_flood_with_cookies_is_limited_by_address() {
    let mut net = Net::new([Host::new(1, 2, None, 1), Host::new(2, 1, None, 2)], 1);
    let mut flood = Flood::new();
    let stamp = |now: Instant| now;
    for millis in 0..3_000u64 {
        if millis == 1_500 {
            net.hosts[0].to = Some(1);
        }
        let now = stamp(net.now);
        for _ in 0..2 {
            let call = flood.call(now);
            net.hosts[1].handle(now, 77, call);
            if let Some((_, reply)) = net.hosts[1].replies.pop() {
                let _ = flood.caller.sessions.take_cookie(now, &reply);
            }
        }
        net.run(1);
    }
    assert_eq!(net.up(), [true; 2]);
    let busy = |reason: &&Reason| **reason == Reason::Busy;
    let busy = net.hosts[1].dropped.iter().filter(busy).count();
    assert!(busy > 5_000, "{busy} refused");
    // The first 200, then 20 a second.
    let opened = net.hosts[1].strangers.len();
    assert!(opened < 300, "{opened} opened");
    assert!(net.now > Instant::ZERO + Duration::from_secs(2));
}
