//! Transfers in which nodes fail and restart.

use std::ops::Range;

use chappe_core::{Duration, Purpose, Seed, Stream};
use chappe_p3::config::CHANNELS;
use chappe_p3::{Checkpoint, Destination, Ended};

use super::{Bytes, CAPS, DESTINATION, Growing, Net, Node, SOURCE, Setting, finish, object, start};

/// A destination fails in mid-transfer, and restarts with its checkpoint and its store after the others have given up.
/// The object completes, no packet is written twice, and hardly any is sent again without need.
pub fn power_fails(setting: &Setting, len: usize, at: Duration) {
    let object = object(len, 11);
    let mut net = setting.net(object);
    start(&mut net, setting.plan(1), None);
    net.run(at, |_| false);
    let destination = net.destination(DESTINATION);
    let flash = destination.checkpoint().to_octets();
    let store = destination.store().clone();
    let before = destination.progress();
    let under_way = before.completed.is_none() && before.packets > 40;
    assert!(under_way, "{before:?}");
    net.kill(DESTINATION);
    net.run(Duration::from_secs(25), |_| false);
    assert!(net.source(SOURCE).ended().is_some());
    let checkpoint = Checkpoint::from_octets(&flash).unwrap();
    let written = store.writes;
    let again = Destination::<Growing>::new(setting.config.clone(), &CAPS, 0, store);
    net.place(DESTINATION, Node::Destination(again.unwrap()));
    start(&mut net, setting.plan(2), Some(&checkpoint));
    let progress = finish(&mut net, Duration::from_secs(60));
    assert!(
        progress.completed.is_some(),
        "{before:?}, then {progress:?}"
    );
    let destination = net.destination(DESTINATION);
    assert!(destination.store().bytes == object);
    let packets = len.div_ceil(setting.payload.into());
    assert_eq!(destination.store().writes, packets);
    assert_eq!(progress.packets, packets as u32);
    let counts = net.source(SOURCE).counts();
    let (sent, rest) = ((counts.data + counts.coded) as usize, packets - written);
    println!("resumed with {written} of {packets}: {sent} sent for {rest}");
    assert!(sent < rest * 2 + 60, "{sent} sent for {rest}");
}

/// Transfers over networks of random shape, each under faults of its own ([`all_at_once`]): how many were complete, and how many were
/// reported incomplete. A network has two to six hops and at most `relays` relays; each path counts for `stages` of them at least.
/// `setting` draws what else is random.
pub fn under_faults(
    seeds: Range<u64>,
    (relays, stages): (u64, u64),
    setting: impl Fn(u64, &mut Stream) -> Setting,
) -> (u32, u32) {
    let (mut complete, mut incomplete) = (0, 0);
    for seed in seeds {
        let mut random = Seed(seed).stream(Purpose::Fault);
        let hops = 2 + random.below(5) as usize;
        let paths = 1 + random.below(relays / (hops as u64 - 1).max(stages)) as usize;
        let payload = 12 + random.below(107) as u8;
        let setting = Setting {
            hops,
            paths,
            payload,
            seed,
            ..setting(seed, &mut random)
        };
        let object = object(random.below(30_000) as usize, seed);
        let done = all_at_once(&setting, &mut random, object);
        complete += u32::from(done);
        incomplete += u32::from(!done);
    }
    println!("{complete} complete, {incomplete} reported incomplete");
    (complete, incomplete)
}

/// Losses, failures, restarts, a jammer and drift at once, drawn from the setting's seed and `random`. Asserts that the
/// stored packets are correct and that both ends report the truth. Returns whether the object is complete.
fn all_at_once(setting: &Setting, random: &mut Stream, object: Bytes) -> bool {
    let seed = setting.seed;
    let mut net = setting.net(object);
    net.drift(40.0, seed);
    let loss = random.fraction() * 0.4;
    let mut air = Seed(seed).stream(Purpose::Interference);
    let jammed = random.chance(0.15).then(|| CHANNELS[seed as usize % 4]);
    net.fault = Box::new(move |flight, _| {
        air.chance(loss) || jammed == Some(flight.channel) && flight.start > 500_000_000
    });
    start(&mut net, setting.plan(1), None);
    let relays = (setting.nodes() - 2) as u64;
    for _ in 0..random.below(4) {
        net.run(Duration::from_millis(random.below(600)), |_| false);
        let relay = 2 + random.below(relays) as usize;
        net.kill(relay);
        if random.chance(0.5) {
            net.run(Duration::from_millis(random.below(200)), |_| false);
            net.place(relay, setting.fresh(relay, object));
        }
    }
    net.run(Duration::from_secs(120), |net| {
        net.destination(DESTINATION).is_idle()
    });
    let (hops, paths, payload) = (setting.hops, setting.paths, setting.payload);
    let what = format!("seed {seed}, {hops} hops, {paths} paths, {payload} octets");
    assert_right(&mut net, object, payload.into(), &what);
    let destination = net.destination(DESTINATION);
    assert!(destination.is_idle(), "{what}: {}", destination.state());
    let done = destination.progress().completed.is_some();
    assert_eq!(done, destination.store().finished, "{what}");
    // A source that reports completion is right.
    let said = net.source(SOURCE).ended();
    assert!(said != Some(Ended::Complete) || done, "{what}");
    done
}

/// Asserts that every stored packet is the object's.
pub fn assert_right(net: &mut Net, object: Bytes, payload: usize, what: &str) {
    let store = net.destination(DESTINATION).store();
    for &from in &store.written {
        let to = (from + payload).min(object.len());
        let same = store.bytes[from..to] == object[from..to];
        assert!(same, "{what}: octet {from}");
    }
    assert!(!store.finished || store.bytes == object, "{what}");
}
