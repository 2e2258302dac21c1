//! Sessions that replace older ones while frames are under way.

use chappe_core::Duration;
use chappe_session::Limits;

use crate::hosts::{Host, Net};

fn busy(limits: Limits) -> Net {
    let host = |key, peer, life| {
        let mut host = Host::new(key, peer, None, life).limits(limits);
        host.every = Duration::from_millis(2);
        host
    };
    Net::new([host(1, 2, 1).calling(1), host(2, 1, 2).calling(0)], 5)
}

/// Goal: sessions are renewed by age and by frames, by one host or both at once, and every frame that was sent arrives once.
/// Method: 500 frames a second each way for a minute, delayed by 10 to 60 ms so that they overtake each other.
#[test]
fn renewal_loses_no_frame() {
    let short = Limits {
        renew_after: Duration::from_secs(2),
        end_after: Duration::from_secs(3),
        frames: 1 << 30,
    };
    let few = Limits {
        frames: 1_000,
        ..Limits::USUAL
    };
    for (limits, least) in [(short, 25), (few, 25), (Limits::USUAL, 1)] {
        let mut net = busy(limits);
        net.delay = (10, 60);
        net.run(60_000);
        for host in &mut net.hosts {
            host.every = Duration::from_secs(100);
            host.frame_at = net.now + host.every;
        }
        let sent = [0, 1].map(|host| net.hosts[host].number);
        net.run(200);
        assert!(
            net.hosts[0].begun >= least,
            "{limits:?}: {} sessions",
            net.hosts[0].begun
        );
        for (host, sent) in net.hosts.iter_mut().zip([sent[1], sent[0]]) {
            host.heard.sort_unstable();
            assert!(sent > 29_000);
            // A renewal may have sent one more.
            let gap = (1..)
                .zip(&host.heard)
                .find(|(number, heard)| number != *heard);
            assert_eq!(gap, None, "{limits:?}");
            assert!(host.heard.len() >= sent as usize, "{limits:?}");
        }
    }
}

/// Goal: with a third of all datagrams lost, renewal leaves no gap: frames arrive in every 100 ms.
#[test]
fn renewal_survives_losses() {
    let mut net = busy(Limits {
        renew_after: Duration::from_secs(2),
        end_after: Duration::from_secs(10),
        frames: 1 << 30,
    });
    net.loss = 0.33;
    net.run(1_500);
    for _ in 0..300 {
        let before = [0, 1].map(|host| net.hosts[host].heard.len());
        net.run(100);
        for (host, before) in net.hosts.iter().zip(before) {
            assert!(host.heard.len() > before + 10);
        }
    }
}

/// Goal: nothing leaves in a session that is too old, and nothing recorded in it opens.
#[test]
fn old_sessions_end() {
    let limits = Limits {
        renew_after: Duration::from_secs(2),
        end_after: Duration::from_secs(3),
        frames: 1 << 30,
    };
    let mut net = busy(limits);
    net.run(1_000);
    let frame = net.sent.iter().rfind(|sent| sent.1 == 1 && sent.2[0] == 3);
    let frame = frame.unwrap().2.clone();
    net.loss = 1.0;
    net.run(4_000);
    assert_eq!(net.up(), [false; 2]);
    let heard = net.hosts[1].heard.len();
    let now = net.now;
    net.hosts[1].handle(now, 0, frame);
    assert_eq!(net.hosts[1].heard.len(), heard);
}
