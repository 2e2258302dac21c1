//! Goal: the baselines do what their papers say, and differ from DPCLO as the paper says. Method: the same ideal medium, the
//! same flows.

use crate::common;

use chappe_core::Duration;
use chappe_dpclo::{Scheme, Settings};
use common::{Flow, Mesh, at, chain, figure2};

/// The two flows of Fig. 2 for two minutes.
fn two_flows(settings: Settings) -> Mesh {
    let mut mesh = Mesh::new(settings, 6, &figure2(), 1);
    mesh.flows = vec![Flow::new(0, 4), Flow::new(3, 5)];
    mesh.seconds(120);
    let (accepted, delivered, lost, waiting) = mesh.account();
    assert_eq!(accepted, delivered + lost + waiting);
    mesh
}

/// Fig. 2: both flows of DCLO come to the same rate, and to less than DPCLO's.
#[test]
fn pairs_carry_less_than_prices() {
    let (dclo, dpclo) = (two_flows(Settings::dclo()), two_flows(Settings::paper()));
    let rates = |mesh: &Mesh| [mesh.rate(0, at(60)), mesh.rate(3, at(60))];
    let [first, second] = rates(&dclo);
    assert!((first - second).abs() < 0.15 * first, "{first} {second}");
    assert!(first > 40.0, "{first}");
    assert!(rates(&dpclo).iter().sum::<f64>() > first + second);
    let counters = dclo.nodes[0].counters();
    assert!(counters.paired * 3 > counters.rounds, "{counters:?}");
    assert_eq!(
        counters.probes_sent + counters.updates_sent,
        0,
        "neither ETX nor routes"
    );
    assert_eq!(counters.link_failures, 0);
}

/// Goal: waiting for rounds is what makes DCLO slow: tens of seconds in the paper. Method: a chain of four hops, rounds of
/// 100 ms and of a second.
#[test]
fn long_rounds_make_long_delays() {
    let delay = |interval| {
        let mut settings = Settings::dclo();
        if let Scheme::Dclo(law) = &mut settings.scheme {
            law.interval = Duration::from_millis(interval);
        }
        settings.queues.backlog_life = Duration::from_millis(3 * interval);
        let mut mesh = Mesh::new(settings, 5, &chain(5, 1.0), 1);
        mesh.flows = vec![Flow::new(0, 4)];
        mesh.seconds(130);
        mesh.delay(0, at(60))
    };
    let (short, long) = (delay(100), delay(1000));
    assert!(short > 0.5 && long > 5.0 * short, "{short} {long}");
}

/// Goal: without routes packets wander. Method: dead ends beside a chain, and how many packets they were handed.
#[test]
fn pairs_lead_into_dead_ends() {
    let mut links = chain(4, 1.0);
    links.extend([(0, 4, 1.0), (1, 5, 1.0), (4, 5, 1.0)]);
    let strayed = |settings| {
        let mut mesh = Mesh::new(settings, 6, &links, 2);
        mesh.flows = vec![Flow::new(0, 3)];
        mesh.seconds(90);
        assert!(mesh.got.len() > 1000, "{}", mesh.got.len());
        mesh.nodes[4].counters().relayed + mesh.nodes[5].counters().relayed
    };
    let routed = [Settings::shortest_path(), Settings::fusion()].map(strayed);
    assert_eq!(routed, [0, 0]);
    let (dpclo, dclo) = (strayed(Settings::paper()), strayed(Settings::dclo()));
    assert!(dclo > 20 && dclo > 2 * dpclo, "{dclo} {dpclo}");
}

/// Goal: Fusion's flow control keeps queues from overflowing where plain forwarding drops. Method: a chain whose last link
/// loses two frames of three.
#[test]
fn the_congestion_bit_saves_packets() {
    let run = |settings| {
        let mut links = chain(4, 1.0);
        links[2].2 = 0.35;
        let mut mesh = Mesh::new(settings, 4, &links, 1);
        // No node yields to a congested one.
        mesh.prioritised = false;
        mesh.flows = vec![Flow::new(0, 3)];
        mesh.seconds(120);
        let full: u64 = mesh.losses().iter().map(|losses| losses.queue_full).sum();
        let (accepted, delivered, lost, waiting) = mesh.account();
        assert_eq!(accepted, delivered + lost + waiting);
        (full, delivered)
    };
    let (plain, fusion) = (run(Settings::shortest_path()), run(Settings::fusion()));
    assert!(
        plain.0 > 300 && fusion.0 * 20 < plain.0,
        "{plain:?} {fusion:?}"
    );
    assert!(
        fusion.1 * 10 > plain.1 * 9,
        "and carries as much: {plain:?} {fusion:?}"
    );
}

/// Goal: a source waits for its parent's turns, so that traffic that passes through gets its share. Method: a chain towards
/// node 0 with a source at its end and one in the middle.
#[test]
fn listening_to_the_parent_leaves_room_for_others() {
    let rates = |settings| {
        let mut mesh = Mesh::new(settings, 5, &chain(5, 1.0), 1);
        mesh.flows = vec![Flow::new(4, 0), Flow::new(2, 0)];
        mesh.prioritised = false;
        mesh.seconds(120);
        (mesh.rate(4, at(60)), mesh.rate(2, at(60)))
    };
    let (far, near) = rates(Settings::fusion());
    let (plain_far, plain_near) = rates(Settings::shortest_path());
    let fairness = |a: f64, b: f64| a.min(b) / a.max(b);
    assert!(
        fairness(far, near) > fairness(plain_far, plain_near),
        "{far} {near}, {plain_far} {plain_near}"
    );
    assert!(far > 10.0 && near > 10.0, "{far} {near}");
}
