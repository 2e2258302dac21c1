//! Trials of the study with one seed.

use chappe_core::Seed;
use chappe_lab::run::RunError;

use super::sense::Trial;
use super::*;

/// Without losses, the leaves' segments take the specified number of frames. The tolerance covers acknowledgements and the last
/// segment of a batch, which are shorter, and the uncompressed TCP headers that a compressed flow sends now and then, which take
/// one more frame.
#[test]
fn segments_fill_their_frames() -> Result<(), RunError> {
    for (frames, most) in [(Frames::Three, 3), (Frames::Five, 5)] {
        for protocol in [Protocol::Tcp, Protocol::Improved] {
            let measured = Trial::paper(protocol, 2).with(frames).run(Seed(1))?;
            let each = measured.frames_per_packet;
            assert!(
                each <= f64::from(most) * 1.05,
                "{protocol:?} {frames:?}: {each}"
            );
            assert!(
                each > f64::from(most) * 0.85,
                "{protocol:?} {frames:?}: {each}"
            );
        }
    }
    Ok(())
}

/// All readings arrive although the border router drops a fifth of all packets, both ways. The improved variant's radio sleeps
/// more than the paper's.
//= tcplp 8.2.2: reliability under injected loss
#[test]
fn all_readings_arrive_under_injected_loss() -> Result<(), RunError> {
    let run = |protocol| {
        let mut trial = Trial::paper(protocol, 4);
        trial.loss = 0.21;
        trial.run(Seed(1))
    };
    let (tcp, improved) = (run(Protocol::Tcp)?, run(Protocol::Improved)?);
    assert_eq!((tcp.reliability, improved.reliability), (1.0, 1.0));
    assert!(tcp.retransmissions > 10.0 && improved.retransmissions > 10.0);
    assert!(improved.radio < 0.7 * tcp.radio, "{improved:?} {tcp:?}");
    // No protocol is below the ideal one.
    let floor = cost::roofline(
        Protocol::Improved.frames(Frames::Five, sense::BATCH * READING),
        Duration::from_secs(sense::BATCH.into()),
        0.0,
    );
    assert!(improved.radio > floor);
    Ok(())
}

/// Equal trials with equal seeds have equal results.
#[test]
fn equal_seeds_have_equal_results() -> Result<(), RunError> {
    let mut trial = Trial::paper(Protocol::Coap, 1);
    trial.interference = Interference::of(0.05);
    assert_eq!(trial.run(Seed(3))?, trial.run(Seed(3))?);
    assert_ne!(trial.run(Seed(3))?, trial.run(Seed(4))?);
    Ok(())
}

/// A page of 82 octets from a leaf that sends a data request each second. HTTP waits for two of them, unless the SYN shortens
/// the interval (8.1.1).
//= tcplp 8.1.1: after a SYN the sleep interval is reduced
#[test]
fn opening_a_connection_shortens_the_sleep_interval() -> Result<(), RunError> {
    let (second, short) = (Duration::from_secs(1), Duration::from_millis(100));
    let latency = |by, short| {
        let sleep = Some(Sleeping {
            base: second,
            short,
        });
        web::Trial {
            by,
            octets: 82,
            sleep,
            leaf: 7,
            repeat: 0,
        }
        .run(Seed(2))
        .map(|got| got.latency)
    };
    let (fixed, adaptive) = (
        latency(web::By::Http, second)?,
        latency(web::By::Http, short)?,
    );
    let coap = latency(web::By::Coap, second)?;
    assert!(fixed > adaptive + 0.7, "{fixed} {adaptive}");
    assert!(
        coap < adaptive && adaptive < coap + 0.4,
        "{coap} {adaptive}"
    );
    Ok(())
}

/// Four flows get a rate that the mesh can carry; at ten times that rate they share its capacity.
//= tcplp 8.3: four flows at once
#[test]
fn four_flows_share_the_capacity() -> Result<(), RunError> {
    let run = |offered| {
        let trial = event::Trial {
            protocol: Protocol::Tcp,
            offered,
            intervals: 2,
            red: true,
        };
        trial.run(Seed(1))
    };
    let (low, high) = (run(1000.0)?, run(10_000.0)?);
    assert!(
        low.goodput
            .iter()
            .all(|rate| (rate / 1000.0 - 1.0).abs() < 0.1),
        "{low:?}"
    );
    let mean = high.goodput.iter().sum::<f64>() / high.goodput.len() as f64;
    assert!((1500.0..6000.0).contains(&mean), "{high:?}");
    assert!(low.fairness > 0.99 && high.fairness > 0.4);
    Ok(())
}

#[test]
fn interference_follows_the_hours_of_the_day() {
    assert_eq!(
        [0, 8, 9, 17, 18, 23].map(disturbed),
        [0.005, 0.005, 0.02, 0.02, 0.01, 0.005]
    );
}
