//! What others send to a link that works, and what it says of itself.

use chappe_core::{Bitrate, Duration, Instant};
use chappe_link::{Key, State};
use chappe_sys::Endpoint;

use crate::air;

use air::{Air, Run};

fn up() -> Run {
    let air = Air::path(Bitrate(6_000_000), Duration::from_millis(20), 0.0);
    let mut run = Run::new(air, 1);
    run.until(Instant::from_millis(1_500));
    assert_eq!(run.peers[0].state(run.now), State::Up);
    run
}

/// A hello with the name of the key, which anybody can read in a genuine one.
fn forged(version: u8) -> Vec<u8> {
    let mut hello = vec![0x55; 74];
    hello[..4].copy_from_slice(&[1, version, 0, 0]);
    hello[8..16].copy_from_slice(&Key::new([5; 32]).name());
    hello
}

/// Goal: no datagram of a stranger changes what a healthy link says of itself; it is counted. While there is no session, the same
/// datagram is the best explanation, and is given.
#[test]
fn strangers_set_no_trouble_on_a_healthy_link() {
    let stranger = Endpoint::Udp(([203, 0, 113, 9], 9).into());
    let mut run = up();
    for version in [chappe_link::VERSION, 9] {
        run.peers[0].handle(run.now, stranger, &mut forged(version));
    }
    assert_eq!(run.peers[0].trouble(), None);
    let counters = *run.peers[0].counters();
    assert_eq!((counters.wrong_version, counters.wrong_key), (1, 1));
    let air = Air::path(Bitrate(6_000_000), Duration::from_millis(20), 0.0);
    let mut calling = Run::new(air, 1);
    calling.peers[0].handle(calling.now, stranger, &mut forged(9));
    assert!(
        calling.peers[0]
            .trouble()
            .is_some_and(|said| said.contains("version 9"))
    );
    // It is over once the session is up.
    calling.until(Instant::from_millis(1_500));
    assert_eq!(calling.peers[0].trouble(), None);
}

/// Goal: packets that are dropped because they waited too long are reported with what to do, and the report ends.
#[test]
fn expired_packets_are_reported() {
    let mut run = up();
    // Four times what the path carries within the deadline of 100 ms.
    for _ in 0..250 {
        run.peers[0].offer(run.now, 0, 9, &[0; 1200]);
    }
    let mut said = None;
    for _ in 0..30 {
        let now = run.now + Duration::from_millis(100);
        run.until(now);
        run.peers[0].measure(now);
        said = said.or(run.peers[0].expiry(now));
    }
    assert!(
        said.as_ref().is_some_and(|said| said.contains("deadline")),
        "{said:?}"
    );
    let later = run.now + Duration::from_secs(12);
    assert_eq!(run.peers[0].expiry(later), None);
}

/// Goal: a host that stands still does not take its own absence for the path's delay or loss. The pace that was found stays, and
/// so does the round trip. Method: both hosts stand still for 0.3 to 1.5 s every 2.5 s.
#[test]
fn a_pause_of_the_host_is_not_the_paths() {
    for (pause, loss) in [(300, 0.0), (700, 0.05), (1_500, 0.0)] {
        let air = Air {
            told: false,
            stall: Some((Duration::from_millis(2_500), Duration::from_millis(pause))),
            ..Air::path(Bitrate(6_000_000), Duration::from_millis(100), loss)
        };
        let mut run = Run::new(air, 1);
        run.until(Instant::from_millis(2_000));
        let sessions = run.peers[0].counters().sessions;
        let (mut least, mut longest) = (u64::MAX, Duration::ZERO);
        for step in 0..200 {
            run.until(Instant::from_millis(4_000 + step * 100));
            least = least.min(run.peers[0].rate().0);
            let rtt = run.peers[0].link().report().rtt;
            longest = longest.max(rtt.map_or(Duration::ZERO, |rtt| rtt.0));
            assert_eq!(run.peers[0].state(run.now), State::Up);
        }
        println!("{pause} ms: pace at least {least}, round trip at most {longest:?}");
        assert!(least > 4_500_000, "{pause} ms: {least}");
        assert!(
            longest < Duration::from_millis(190),
            "{pause} ms: {longest:?}"
        );
        assert_eq!(run.peers[0].counters().sessions, sessions);
    }
}
