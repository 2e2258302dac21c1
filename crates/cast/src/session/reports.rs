//! What a session tells its user of the others: members that come and go, links, and what needs attention.

use chappe_core::{Duration, Instant};
use chappe_live::Statistics;
use litemap::LiteMap;

use super::{FIRST_LINKS, Watch, links_event, role_word};
use crate::event::Event;
use crate::group::Seat;
use crate::member::{Counts, Member};
use crate::pace::{self, Deciders};

/// What the user knows already, so that nothing is reported twice.
#[derive(Default)]
pub(super) struct Reports {
    known: LiteMap<u16, (u64, String)>,
    links_reported: Option<Instant>,
    /// The counts at the last look, so that a warning comes once.
    warned: Warned,
    deciders: Deciders,
}

impl Reports {
    /// Tells of what is new.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        (member, seat): (&Member, &Seat),
        statistics: &Statistics,
        watch: &mut dyn Watch,
    ) {
        report_refused(member.counts(), statistics, &mut self.warned, watch);
        if let Some(node) = self.deciders.note(now, statistics) {
            let name = seat.group.name_of(node);
            let what = pace::warning(node, &name, statistics);
            watch.event(Event::Warning { what });
        }
        report_members(now, member, &mut self.known, watch);
        report_links(now, member, &mut self.links_reported, watch);
    }
}

/// What has been counted when a warning was last considered, so that each comes once.
#[derive(Clone, Copy, Debug, Default)]
struct Warned {
    counts: Counts,
    former: u64,
    too_long: u64,
    rewound: u64,
    copies: u64,
}

/// Warns once of what others do that needs the user's attention.
fn report_refused(
    counts: Counts,
    statistics: &Statistics,
    warned: &mut Warned,
    watch: &mut dyn Watch,
) {
    let before = warned.counts;
    let cases = [
        (
            statistics.too_long,
            warned.too_long,
            "frames arrive that are longer than this interface's MTU, and are lost. Members that know this one send shorter ones; if files do not arrive, start the others with --mtu N, where N is this MTU",
        ),
        (
            counts.unrelayed,
            before.unrelayed,
            "a transfer's frames are too long for this member, which cannot relay them. If the sender has begun already, send again, or start it with a smaller --mtu",
        ),
        (
            counts.unsigned,
            before.unsigned,
            "a ticket is not signed by the sender that it names: a member may be lying, or lists of members differ",
        ),
        (
            counts.unauthorised,
            before.unauthorised,
            "a member offers files, but may not send; the owner allows it by `chappe cast admit --sends`",
        ),
        (
            counts.forged,
            before.forged,
            "a member has said something in another member's name; it was ignored",
        ),
        (
            counts.disputed,
            before.disputed,
            "a member has said that a receiver was complete, which that receiver denies; it is served on",
        ),
        (
            statistics.rewound,
            warned.rewound,
            "a member sends frames in the name of another, which shut out the other's own for a moment",
        ),
        (
            statistics.copies,
            warned.copies,
            "another host runs a copy of this running process, such as a saved virtual machine: this one has begun anew with other keys. Until then both sealed frames under the same nonces, which may tell a listener their contents",
        ),
        (
            counts.refused,
            before.refused,
            "a further transfer has to wait: a member takes part in at most four at a time",
        ),
        (
            statistics.former,
            warned.former,
            "a member runs a former version of chappe cast, in which all shared one key; install the same version on all members",
        ),
    ];
    for (now, before, what) in cases {
        if now > 0 && before == 0 {
            watch.event(Event::Warning { what: what.into() });
        }
    }
    *warned = Warned {
        counts,
        former: statistics.former,
        too_long: statistics.too_long,
        rewound: statistics.rewound,
        copies: statistics.copies,
    };
}

fn report_members(
    now: Instant,
    member: &Member,
    known: &mut LiteMap<u16, (u64, String)>,
    watch: &mut dyn Watch,
) {
    for record in member.roster().others(now) {
        let before = known.insert(record.node, (record.life, record.name.clone()));
        if before.is_none_or(|(life, _)| life != record.life) {
            let (node, name, role) = (record.node, record.name.clone(), role_word(record));
            watch.event(Event::Joined { node, name, role });
        }
    }
    known.retain(|&node, (_, name)| {
        let here = member.roster().get(now, node).is_some();
        if !here {
            let name = name.clone();
            watch.event(Event::Left { node, name });
        }
        here
    });
}

/// Interval between link reports.
const LINKS: Duration = Duration::from_secs(5);

/// Reports the links once they are measured, then every few seconds.
fn report_links(now: Instant, member: &Member, told: &mut Option<Instant>, watch: &mut dyn Watch) {
    let due = told.map_or(FIRST_LINKS, |told| told + LINKS);
    let links = member.links().filter(|_| now >= due);
    if let Some(event) = links.and_then(|links| links_event(links)) {
        *told = Some(now);
        watch.event(event);
    }
}
