//! How sessions begin, and what does not begin one.

use std::time::Duration as Wall;

use chappe_core::Duration;
use chappe_session::{Psk, Reason, Secret};

use crate::hosts::{Host, Net};

fn pair() -> Net {
    Net::new(
        [
            Host::new(1, 2, None, 1).calling(1),
            Host::new(2, 1, None, 2),
        ],
        1,
    )
}

/// Goal: with half of all datagrams lost, and those that arrive out of order, both hosts have a session within three seconds in
/// nine cases of ten.
#[test]
fn losses_and_disorder_delay_a_session() {
    let joined = |seed: u64| {
        let hosts = [
            Host::new(1, 2, None, seed).calling(1),
            Host::new(2, 1, None, !seed),
        ];
        let mut net = Net::new(hosts, seed);
        (net.loss, net.delay) = (0.5, (5, 100));
        net.hosts
            .iter_mut()
            .for_each(|host| host.every = Duration::from_millis(100));
        net.run(3_000);
        net.up() == [true; 2]
    };
    let count = (0..40).filter(|&seed| joined(seed)).count();
    assert!(count >= 36, "{count} of 40");
}

/// Goal: a path longer than the interval between calls does not keep answers from matching their calls.
#[test]
fn a_long_path_has_a_session_after_one_round_trip() {
    let mut net = pair();
    net.delay = (400, 400);
    net.run(1_250);
    assert_eq!(net.up(), [true; 2]);
}

/// Goal: hosts that call at the same instant have a session that both use, and renew it later without a gap.
#[test]
fn simultaneous_calls_agree() {
    for delay in [1, 10, 150] {
        let hosts = [
            Host::new(1, 2, None, 1).calling(1),
            Host::new(2, 1, None, 2).calling(0),
        ];
        let mut net = Net::new(hosts, 3);
        net.delay = (delay, delay);
        net.run(600_000);
        assert_eq!(net.up(), [true; 2]);
        for host in &net.hosts {
            assert!(host.begun <= 14, "{} sessions in ten minutes", host.begun);
            assert!(host.heard.len() >= 1_196, "{} frames", host.heard.len());
        }
    }
}

/// Goal: a host that restarts has a session again, whoever restarts, also both, and also one that cannot be called.
#[test]
fn restarts_find_a_new_session() {
    for restarted in [[true, false], [false, true], [true, true]] {
        let mut net = pair();
        net.run(3_000);
        assert_eq!(net.up(), [true; 2]);
        if restarted[0] {
            net.hosts[0] = Host::new(1, 2, None, 11).calling(1);
        }
        if restarted[1] {
            net.hosts[1] = Host::new(2, 1, None, 12);
        }
        net.run(6_500);
        assert_eq!(net.up(), [true; 2], "{restarted:?}");
    }
}

/// Goal: nothing that was recorded begins a session, moves an address or passes a frame again: not on a running host, and not on
/// one that has lost its memory.
#[test]
fn recorded_datagrams_begin_nothing() {
    for forgets in [false, true] {
        let mut net = pair();
        net.run(3_000);
        let recorded = net.sent.clone();
        let heard = net.hosts[1].heard.len();
        if forgets {
            // Its peer is gone: only the recording speaks.
            net.hosts = [Host::new(1, 2, None, 21), Host::new(2, 1, None, 22)];
        }
        let begun = net.hosts[1].begun;
        for (_, to, datagram) in recorded.iter().filter(|sent| sent.1 == 1) {
            let now = net.now;
            net.hosts[*to].handle(now, 6, datagram.clone());
        }
        let now = net.now;
        assert_eq!(net.hosts[1].begun, begun);
        assert_eq!(net.hosts[1].to, (!forgets).then_some(0));
        if !forgets {
            assert_eq!(net.hosts[1].heard.len(), heard);
            // A running host does not even answer.
            assert!(net.hosts[1].sessions.next_answer(&mut [0; 256]).is_none());
        } else {
            assert!(!net.hosts[1].is_up(now) && net.hosts[1].heard.is_empty());
            // The genuine host is not kept out by what came before it.
            net.hosts[0] = Host::new(1, 2, None, 23).calling(1);
            net.hosts[0].wall += Wall::from_secs(60);
            net.run(1_000);
            assert_eq!(net.up(), [true; 2]);
        }
    }
}

/// Goal: a host whose clock was set back by fifty years over a restart has a session again as soon as the other end misses it.
#[test]
fn a_clock_that_was_set_back_does_not_lock_out() {
    let mut net = pair();
    net.run(3_000);
    net.hosts[0] = Host::new(1, 2, None, 31).calling(1);
    net.hosts[0].wall = Wall::from_secs(10);
    // It comes back at another address, too: nobody can call the old one.
    net.run(7_000);
    assert_eq!(net.up(), [true; 2]);
    assert!(net.count(0, 1) <= 4, "{} calls back", net.count(0, 1));
}

/// Goal: a call to the wrong public key, and one with an unknown key, get no answer. Only the holder of a key is reported.
#[test]
fn wrong_keys_get_silence() {
    // Calls host 9's key at host 2's address.
    let mut net = Net::new(
        [
            Host::new(1, 9, None, 1).calling(1),
            Host::new(2, 1, None, 2),
        ],
        1,
    );
    net.run(2_000);
    assert!(
        net.hosts[1]
            .dropped
            .iter()
            .all(|reason| *reason == Reason::Proof)
    );
    assert!(net.hosts[1].dropped.len() >= 5 && net.hosts[1].strangers.is_empty());
    assert_eq!(net.count(0, 2) + net.count(0, 4), 0);
    // Host 3 is nobody's peer.
    let mut net = Net::new(
        [
            Host::new(3, 2, None, 1).calling(1),
            Host::new(2, 1, None, 2),
        ],
        1,
    );
    net.run(2_000);
    let caller = Secret::new([3; 32]).public();
    assert!(net.hosts[1].strangers.contains(&caller));
    assert_eq!(net.count(0, 2) + net.count(0, 4), 0);
}

/// Goal: without the shared secret there is no session, the caller drops the answers, and the called host can tell.
#[test]
fn wrong_shared_secrets_make_no_session() {
    for (ours, theirs) in [(Some(1), Some(2)), (Some(1), None), (None, Some(2))] {
        let hosts = [
            Host::new(1, 2, ours, 1).calling(1),
            Host::new(2, 1, theirs, 2),
        ];
        let mut net = Net::new(hosts, 1);
        net.run(2_000);
        assert_eq!(net.up(), [false; 2]);
        assert!(net.hosts[0].dropped.contains(&Reason::Forged));
        assert!(net.hosts[1].sessions.unproved() >= 5);
    }
    let hosts = [
        Host::new(1, 2, Some(1), 1).calling(1),
        Host::new(2, 1, Some(1), 2),
    ];
    let mut net = Net::new(hosts, 1);
    net.run(2_000);
    assert_eq!(net.up(), [true; 2]);
    assert_eq!(
        Psk::parse(&Psk::new([1; 32]).to_text()),
        Some(Psk::new([1; 32]))
    );
}

/// Goal: another version, altered messages and noise are dropped with a reason, and the session comes up meanwhile. Method: each
/// octet of each handshake message is altered in turn, and the altered copy arrives before the genuine one.
#[test]
fn altered_messages_change_nothing() {
    let mut net = pair();
    net.run(50);
    let handshake: Vec<_> = net
        .sent
        .iter()
        .filter(|sent| sent.2[0] < 3)
        .cloned()
        .collect();
    assert!(handshake.len() >= 2);
    for (from, to, datagram) in handshake {
        for at in 0..datagram.len() {
            let mut fresh = pair();
            if to == 0 {
                // The same random numbers make the same call, which the answer was made for.
                while fresh.sent.is_empty() {
                    fresh.run(1);
                }
            }
            let mut bent = datagram.clone();
            bent[at] ^= 1;
            let now = fresh.now;
            fresh.hosts[to].handle(now, from, bent);
            assert_eq!(fresh.hosts[to].begun, 0, "octet {at} to {to}");
            // The proof of a cookie counts only beyond the limit, and there alone.
            if to == 1 && at >= datagram.len() - 16 {
                continue;
            }
            assert_eq!(fresh.hosts[to].dropped.len(), 1, "octet {at} to {to}");
            if at == 1 {
                assert_eq!(fresh.hosts[to].dropped[0], Reason::Version(6));
            }
        }
    }
    let mut forged = pair();
    forged.run(10);
    let mut random = forged.random;
    for len in 0..300 {
        let mut noise = vec![0; len];
        random.fill(&mut noise);
        if len > 0 {
            noise[0] = len as u8 % 6;
        }
        let now = forged.now;
        forged.hosts[1].handle(now, 5, noise.clone());
        forged.hosts[0].handle(now, 5, noise);
    }
    forged.run(1_000);
    assert_eq!(forged.up(), [true; 2]);
}

/// Goal: no datagram shows who calls whom: no public key stands in clear, and no octets but the head repeat from call to call.
#[test]
fn identities_are_hidden() {
    let mut net = Net::new(
        [
            Host::new(1, 2, None, 1).calling(9),
            Host::new(2, 1, None, 2),
        ],
        1,
    );
    net.run(2_000);
    let calls: Vec<_> = net.sent.iter().map(|sent| &sent.2).collect();
    assert!(calls.len() >= 5);
    for key in [1, 2].map(|fill| Secret::new([fill; 32]).public()) {
        let holds = |call: &&Vec<u8>| call.windows(8).any(|part| part == &key.octets()[..8]);
        assert!(!calls.iter().any(holds));
    }
    // The last sixteen octets are zeros without a cookie.
    for at in 8..calls[0].len() - 20 {
        let part = |call: &Vec<u8>| call[at..at + 4].to_vec();
        assert!(
            calls[1..].iter().all(|call| part(call) != part(calls[0])),
            "octet {at}"
        );
    }
}
