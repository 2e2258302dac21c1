//! Pacifier's configuration for a transfer over a live link.

use chappe_core::{Duration, Mode, Rate};
use chappe_pacifier::improved::Settings as Pace;
use chappe_pacifier::improved::header::{TIMES, overhead};
use chappe_pacifier::{Common, Config, improved, paper};

use super::Settings;
use crate::manifest::{Protocol, Ticket};

/// Octets for states in a data frame: a dozen runs and ranks. Reports carry the rest.
pub const DATA_STATES: usize = 12;

/// Octets of Pacifier's fixed header.
const PACIFIER_HEADER: usize = 17;
/// Octets of a forwarder in a frame, and the number of forwarders that have room.
const FORWARDER: usize = 3;
const FORWARDERS: usize = 4;
/// Octets of headers in a data frame, for batches of `k` packets and member numbers below `nodes`.
pub fn headers(protocol: Protocol, k: usize, nodes: usize) -> usize {
    match protocol {
        Protocol::Pacifier => PACIFIER_HEADER + FORWARDER * FORWARDERS + k,
        Protocol::Improved => TIMES + overhead(usize::from(eights(nodes)) * 8, DATA_STATES, k),
    }
}

/// Octets of a bitmap of member numbers below `nodes`.
pub fn eights(nodes: usize) -> u8 {
    nodes.div_ceil(8).clamp(1, 32) as u8
}

/// Pacifier's configuration for a transfer. Its frames fit `common`, the largest SDU that passes between all members, unless it was cut
/// for longer ones.
pub(super) fn config(settings: &Settings, ticket: &Ticket, common: usize) -> Config {
    let (k, nodes) = (usize::from(ticket.cut.k), usize::from(ticket.nodes_max()));
    let needed = usize::from(ticket.cut.payload) + headers(ticket.protocol, k, nodes);
    let frame_max = settings.frame_max.min(common.max(needed));
    let batch = ticket.cut.batch_len().max(1);
    let window = (settings.memory as u64 / batch).clamp(1, u64::from(u32::MAX)) as u32;
    let common = Common {
        k: usize::from(ticket.cut.k),
        payload: usize::from(ticket.cut.payload),
        frame_max,
        groups_max: 1,
        // A live link does not report the airtime of frames; this mode is close to common links.
        mode: Mode::long(Rate::Cck11),
        ..Common::default()
    };
    if ticket.protocol == Protocol::Pacifier {
        return Config::Paper(paper::Config {
            common,
            window,
            // On such links the children's transmissions are overheard within a few frame times.
            ack_retry_min: Duration::from_millis(100),
            ..paper::Config::default()
        });
    }
    // The default times suit 2 Mbit/s, where a frame of 1500 octets takes 6 ms and more. They scale with the frame time, but
    // not below a quarter, which leaves room for the scheduler of a busy machine.
    let frame = settings
        .rate
        .time_of(settings.frame_max as u64 * 8)
        .as_secs_f64();
    let usual = Pace::default();
    let quick = |time: Duration| time.mul_f64((frame / 6e-3).clamp(0.25, 4.0));
    let settings = Pace {
        window: usual.window.min(window),
        nodes_max: ticket.nodes_max().into(),
        data_states: DATA_STATES,
        report_interval: quick(usual.report_interval),
        gossip: quick(usual.gossip),
        repeat_min: quick(usual.repeat_min),
        repeat_max: quick(usual.repeat_max),
        doubt_min: quick(usual.doubt_min),
        doubt_max: quick(usual.doubt_max),
        yielding: quick(usual.yielding),
        // The delay of frames in routers and in busy processes at both ends varies, so it is measured; this is only the first
        // guess. The example `wired` of the protocol's crate shows the cost of guessing.
        lag: Duration::from_millis(40),
        timed: true,
        // On separate channels a frame takes no airtime from others, so no member yields to a better one.
        gate: if settings.shared { usual.gate } else { 0.0 },
        ..usual
    };
    Config::Improved(improved::Config { common, settings })
}
