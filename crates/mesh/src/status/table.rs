//! The table of all counters, with their names and what they count.

use chappe_core::DropReason;
use chappe_dpclo::Counters;
use chappe_live::Statistics;

use crate::host::HostCounters;
use crate::node::NodeCounters;
use crate::recovery::RecoveryCounters;

/// Where the counts stand.
pub(super) struct Facts<'a> {
    pub own: NodeCounters,
    pub router: Counters,
    pub host: HostCounters,
    pub recovery: RecoveryCounters,
    pub live: &'a Statistics,
}

/// A value that only goes up.
pub(super) struct Counter {
    pub name: &'static str,
    /// The help text in Prometheus.
    pub help: &'static str,
    pub read: fn(&Facts<'_>) -> u64,
}

const fn count(name: &'static str, read: fn(&Facts<'_>) -> u64, help: &'static str) -> Counter {
    Counter { name, help, read }
}

/// All counters, in the order in which they are shown.
pub(super) const COUNTERS: &[Counter] = &[
    count("frames_sent", |all| all.own.sent, "Frames sent."),
    count(
        "octets_sent",
        |all| all.own.sent_octets,
        "Octets of these frames, sealing excluded.",
    ),
    count(
        "control_frames",
        |all| all.own.control_frames,
        "Frames sent without a packet.",
    ),
    count(
        "control_octets",
        |all| all.own.control_octets,
        "Octets of these frames.",
    ),
    count(
        "receipts",
        |all| all.own.receipts,
        "Receipts of destinations that were taken.",
    ),
    count(
        "receipts_forged",
        |all| all.own.forged,
        "Receipts that were forged or repeated.",
    ),
    count(
        "next_hops_left",
        |all| all.own.shunned,
        "Next hops left because too little arrived by them.",
    ),
    count(
        "warnings",
        |all| all.own.warned,
        "Next hops left because another node warned of them.",
    ),
    count(
        "warnings_unheeded",
        |all| all.own.unheeded,
        "Warnings that were forged, repeated or too many, or that do not concern this node.",
    ),
    count(
        "packets_queued",
        |all| all.host.queued,
        "Packets of this host queued.",
    ),
    count(
        "packets_taken",
        |all| all.host.taken,
        "Packets of this host that the mesh took.",
    ),
    count(
        "packets_first",
        |all| all.host.first,
        "Of these, packets of flows that send little.",
    ),
    count(
        "packets_replaced",
        |all| all.host.replaced,
        "Segments of this host that only acknowledge, replaced by later ones.",
    ),
    count(
        "packets_marked",
        |all| all.host.marked,
        "Packets of this host marked because their queue stood.",
    ),
    count(
        "packets_relayed",
        |all| all.router.relayed,
        "Packets taken from neighbours for others.",
    ),
    count(
        "packets_delivered",
        |all| all.own.delivered,
        "Packets given to this host.",
    ),
    count(
        "lost_controlled",
        |all| all.host.dropped,
        "Packets of this host dropped because their queue stood.",
    ),
    count(
        "lost_late",
        |all| all.host.late,
        "Packets of this host that waited too long.",
    ),
    count(
        "lost_overflow",
        |all| all.host.overflowed,
        "Packets of this host that found no memory.",
    ),
    count(
        "lost_not_ip",
        |all| all.own.not_ip,
        "Packets of this host that are not IP.",
    ),
    count(
        "lost_group",
        |all| all.own.not_unicast,
        "Packets of this host to itself, or to a group, which it does not carry.",
    ),
    count(
        "lost_unknown",
        |all| all.own.unknown,
        "Packets of this host to an address behind no known node.",
    ),
    count(
        "lost_too_long",
        |all| all.own.too_long,
        "Packets of this host longer than the mesh carries.",
    ),
    count(
        "lost_no_room",
        |all| all.own.no_room,
        "Packets of this host whose destination had no room.",
    ),
    count(
        "lost_queue_full",
        |all| all.router.losses.queue_full + all.router.losses.store_full,
        "Packets lost in a full queue.",
    ),
    count(
        "lost_no_destination",
        |all| all.router.losses.no_destination,
        "Packets whose destination had no room in the table.",
    ),
    count(
        "lost_hop_limit",
        |all| all.router.losses.hop_limit,
        "Packets at the end of their hop limit.",
    ),
    count(
        "lost_link",
        |all| all.router.losses.link + all.router.losses.unanswered,
        "Packets that a link gave up.",
    ),
    count(
        "lost_age",
        |all| all.router.losses.age,
        "Packets that waited too long in the mesh.",
    ),
    count(
        "lost_inbox",
        |all| all.router.losses.inbox_full,
        "Packets that this host did not take.",
    ),
    count(
        "copies",
        |all| all.router.losses.copies + all.recovery.copies,
        "Packets and frames received twice.",
    ),
    count(
        "old",
        |all| all.router.losses.old,
        "Packets from before the window of numbers.",
    ),
    count(
        "frames_recovered",
        |all| all.recovery.frames,
        "Frames that recovery sent for the first time.",
    ),
    count(
        "frames_repeated",
        |all| all.recovery.repeats,
        "Repeated transmissions.",
    ),
    count(
        "frames_timed_out",
        |all| all.recovery.timeouts,
        "Repeats because no answer came.",
    ),
    count(
        "frames_given_up",
        |all| all.recovery.given_up + all.live.given_up,
        "Frames that recovery gave up.",
    ),
    count(
        "frames_acknowledging",
        |all| all.recovery.acks,
        "Frames with nothing but acknowledgements.",
    ),
    count(
        "neighbours_silent",
        |all| all.recovery.silent,
        "Neighbours that went silent under traffic.",
    ),
    count(
        "neighbours_deaf",
        |all| all.recovery.deaf,
        "Neighbours that were heard and acknowledged nothing.",
    ),
    count(
        "routes_returned",
        |all| all.router.returned,
        "Next hops given up because a packet came back.",
    ),
    count("probes_sent", |all| all.router.probes_sent, "Probes sent."),
    count(
        "updates_sent",
        |all| all.router.updates_sent,
        "Route updates sent.",
    ),
    count(
        "requests_sent",
        |all| all.router.requests_sent,
        "Requests for newer routes sent.",
    ),
    count(
        "dropped_malformed",
        |all| {
            all.own.malformed
                + all.live.dropped(DropReason::Malformed)
                + all.router.drops.of(DropReason::Malformed)
        },
        "Frames that are cut short or of another version.",
    ),
    count(
        "dropped_announcements",
        |all| all.own.announcements,
        "Announcements that were malformed, old or too many.",
    ),
    count(
        "dropped_neighbours",
        |all| all.router.neighbours_refused,
        "Frames of neighbours for which the table had no place.",
    ),
    count(
        "dropped_in_queue",
        |all| all.live.lost_in_queue,
        "Frames lost in this host's receive queue.",
    ),
    count(
        "unproved",
        |all| all.live.unproved,
        "Hellos of lives that had not proved to be alive.",
    ),
    count(
        "address_conflicts",
        |all| all.live.address_conflicts,
        "Times that another node proved itself under this number.",
    ),
    count(
        "kernel_refused",
        |all| all.live.refused,
        "Frames that the kernel refused.",
    ),
    count(
        "dropped_bad_authentication",
        |all| all.live.dropped(DropReason::Unauthentic),
        "Frames that were not sealed with the key.",
    ),
    count(
        "dropped_duplicate",
        |all| all.live.dropped(DropReason::Duplicate),
        "Sealed frames received twice: replays among them.",
    ),
    count(
        "dropped_stale",
        |all| all.live.dropped(DropReason::Stale),
        "Sealed frames from before the window, or of another life.",
    ),
];
