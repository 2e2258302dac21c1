//! The smallest draft that fails in the same way.

use std::time::{Duration, Instant};

use chappe_lab::system::System;

use crate::draft::{Draft, Line, Network, Receivers};
use crate::verdict::{Care, Wrong, judge};

/// Makes a draft smaller as long as it fails in the same way, for at most this long on the computer's clock.
pub fn shrink(system: &System, draft: &Draft, wrong: &Wrong, time: Duration) -> (Draft, Wrong) {
    let (begin, mut best) = (Instant::now(), (draft.clone(), wrong.clone()));
    let care = Care {
        repeats: wrong.kind == crate::verdict::Kind::NotRepeated,
        ..Care::default()
    };
    loop {
        let smaller = smaller(&best.0);
        let found = smaller.into_iter().find_map(|draft| {
            if begin.elapsed() > time {
                return None;
            }
            let found = judge(system, &draft, care).wrong?;
            (found.kind == wrong.kind).then_some((draft, found))
        });
        match found {
            Some(found) => best = found,
            None => return best,
        }
    }
}

/// All drafts that are one step smaller, the largest steps first.
fn smaller(draft: &Draft) -> Vec<Draft> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Draft)| {
        let mut less = draft.clone();
        change(&mut less);
        if less != *draft {
            all.push(less);
        }
    };
    with(&|less| less.troubles.clear());
    let half = draft.troubles.len() / 2;
    with(&|less| less.troubles.truncate(half));
    with(&|less| drop(less.troubles.drain(..half)));
    (0..draft.troubles.len()).for_each(|place| with(&|less| drop(less.troubles.remove(place))));
    for (place, trouble) in draft.troubles.iter().enumerate() {
        // What a trouble begins and ends with belongs together; forged frames stand for themselves.
        if trouble.strikes.len() > 2 {
            let half = trouble.strikes.len() / 2;
            with(&|less| less.troubles[place].strikes.truncate(half));
            with(&|less| drop(less.troubles[place].strikes.drain(..half)));
        }
    }
    with(&|less| less.transfers.truncate(1));
    (0..draft.transfers.len())
        .filter(|_| draft.transfers.len() > 1)
        .for_each(|place| {
            with(&|less| drop(less.transfers.remove(place)));
        });
    with(&|less| less.flows.truncate(1));
    let lists: [fn(&mut Draft) -> &mut Vec<Line>; 3] = [
        |less| &mut less.mac,
        |less| &mut less.protocol,
        |less| &mut less.radio,
    ];
    for list in lists {
        let len = list(&mut draft.clone()).len();
        with(&|less| list(less).clear());
        (0..len).for_each(|place| with(&|less| drop(list(less).remove(place))));
    }
    for (place, transfer) in draft.transfers.iter().enumerate() {
        for octets in [1, transfer.octets / 10, transfer.octets / 2] {
            if octets > 0 {
                with(&|less| less.transfers[place].octets = octets);
            }
        }
        if let Receivers::Nodes(nodes) = &transfer.receivers {
            (0..nodes.len())
                .filter(|_| nodes.len() > 1)
                .for_each(|one| {
                    let mut nodes = nodes.clone();
                    nodes.remove(one);
                    with(&|less| less.transfers[place].receivers = Receivers::Nodes(nodes.clone()));
                });
        }
    }
    // The last node goes; a draft that names it is refused, which is another way to fail.
    with(&|less| match &mut less.network {
        Network::Places(places) if places.len() > 2 => drop(places.pop()),
        Network::Links(links) if links.len() > 2 => {
            links.pop();
            links.iter_mut().for_each(|row| row.truncate(row.len() - 1));
        }
        Network::Generated(_, nodes) if *nodes > 2 => *nodes -= 1,
        _ => {}
    });
    all
}

#[cfg(test)]
mod tests {
    use chappe::systems;

    use super::*;
    use crate::draw;

    /// Every step makes the text shorter or a number in it smaller, so shrinking comes to an end.
    #[test]
    fn steps_are_smaller() {
        for system in systems::SYSTEMS {
            for seed in 0..20 {
                let draft = draw::draft(system.scenario, seed, 0);
                let size = |draft: &Draft| {
                    let octets: u64 = draft.transfers.iter().map(|one| one.octets).sum();
                    (draft.text().len(), octets, draft.network.nodes())
                };
                for less in smaller(&draft) {
                    let (a, b) = (size(&less), size(&draft));
                    assert!(a.0 <= b.0 && a.1 <= b.1 && a.2 <= b.2 && a != b);
                }
            }
        }
    }
}
