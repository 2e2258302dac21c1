//! What others send to a link that works, and what it says of itself.

use chappe_core::{Bitrate, Duration, Instant};
use chappe_link::State;
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

/// Goal: no datagram of a stranger changes what a link says of itself, whether it is up or still calling: not one with a random
/// form, nor one of another version, nor a genuine call that was altered.
#[test]
fn strangers_set_no_trouble() {
    let stranger = Endpoint::Udp(([203, 0, 113, 9], 9).into());
    let air = Air::path(Bitrate(6_000_000), Duration::from_millis(20), 0.0);
    let mut random = chappe_core::Seed(3).stream(chappe_core::Purpose::Trial(0));
    for calling in [false, true] {
        let mut run = match calling {
            true => Run::new(air, 1),
            false => up(),
        };
        let mut call = [0; 2048];
        let len = match calling {
            true => run.peers[1].poll(run.now, &mut call).unwrap().0,
            false => 170,
        };
        let before = (run.peers[0].state(run.now), run.peers[0].endpoint());
        for kind in 0..6 {
            for version in [chappe_link::VERSION, 4, 9] {
                for place in 4..len {
                    let mut said = call[..len].to_vec();
                    if !calling {
                        random.fill(&mut said);
                    }
                    (said[0], said[1]) = (kind, version);
                    said[place] ^= 1;
                    // Altered in the proof of a cookie, a call is still genuine.
                    if calling && (kind, version) == (1, chappe_link::VERSION) && place >= len - 16
                    {
                        continue;
                    }
                    run.hear(0, stranger, &mut said);
                }
            }
        }
        assert_eq!(run.peers[0].trouble(), None);
        assert_eq!(
            before,
            (run.peers[0].state(run.now), run.peers[0].endpoint())
        );
        run.until(run.now + Duration::from_millis(1_500));
        assert_eq!(run.peers[0].state(run.now), State::Up);
        assert_eq!(
            (run.peers[0].trouble(), run.peers[0].counters().moved),
            (None, 0)
        );
    }
}

/// Goal: an idle link costs a frame in 25 s each way and one handshake in two minutes, and its next packet arrives at once.
/// Method: ten minutes without a packet, then a ping.
#[test]
fn an_idle_link_costs_next_to_nothing() {
    let mut air = Air::path(Bitrate(6_000_000), Duration::from_millis(40), 0.0);
    (air.window, air.ping_every) = (0, Duration::from_secs(3_600));
    let mut run = Run::new(air, 1);
    run.until(Instant::from_millis(60_000));
    let datagrams = |run: &Run| [0, 1].map(|host| run.peers[host].counters().datagrams_received);
    let before = datagrams(&run);
    run.until(Instant::from_millis(660_000));
    let after = datagrams(&run);
    let each = [0, 1].map(|host| after[host] - before[host]);
    println!("{each:?} datagrams in ten minutes");
    // 24 keepalives, five handshakes, and proofs.
    assert!(
        each.iter().all(|&count| (20..=60).contains(&count)),
        "{each:?}"
    );
    assert_eq!(run.peers[0].state(run.now), State::Up);
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
