//! What is acknowledged, repeated and given up, by scripts of frames and times.

use super::*;

/// No burst is over yet.
const OVER: u8 = 0;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn sender(frames: u16) -> Recovery {
    sender_of(frames, 1)
}

impl Recovery {
    /// Repeats what is under way.
    fn repeat_all(&mut self, now: Instant) {
        self.outstanding
            .iter_mut()
            .for_each(|frame| frame.lost = true);
        while self.repeat(now, 1, 2000).is_some() {}
    }
}

/// The same with bodies of this length.
fn sender_of(frames: u16, octets: usize) -> Recovery {
    let mut recovery = Recovery::new(Duration::from_millis(2), true);
    for token in 1..=frames {
        let number = recovery.send(
            at(token.into()),
            7,
            (token.into(), Class::Data, Weight::Usual),
            1,
            &vec![token as u8; octets],
        );
        assert_eq!(number, token);
    }
    recovery
}

/// What a frame that left later shows about an earlier one, and what the earlier one's repeat shows.
#[test]
fn what_arrives_out_of_order_was_lost() {
    let mut recovery = sender(3);
    recovery.on_ack(
        at(10),
        7,
        Ack {
            node: 1,
            newest: 2,
            before: 0,
            over: OVER,
        },
    );
    assert_eq!(
        recovery.poll_outcome(),
        Some((2, Outcome::Acknowledged { attempts: 1 }))
    );
    let repeat = recovery.repeat(at(11), 2, 2000).unwrap();
    assert_eq!((repeat.number, repeat.body), (1, &[1][..]));
    assert!(
        recovery.repeat(at(11), 2, 2000).is_none(),
        "the third is only late"
    );
    // The third arrives, but it left before the repeat of the first.
    recovery.on_ack(
        at(12),
        7,
        Ack {
            node: 1,
            newest: 3,
            before: 0b1,
            over: OVER,
        },
    );
    assert!(!recovery.has_lost());
    recovery.on_ack(
        at(13),
        7,
        Ack {
            node: 1,
            newest: 3,
            before: 0b11,
            over: OVER,
        },
    );
    let outcomes: Vec<_> = std::iter::from_fn(|| recovery.poll_outcome()).collect();
    assert_eq!(outcomes[1], (1, Outcome::Acknowledged { attempts: 2 }));
    assert_eq!((recovery.waiting(), recovery.deadline()), (0, None));
}

/// A neighbour that only others acknowledge is not acknowledged.
#[test]
fn acknowledgements_count_for_their_neighbour_only() {
    let mut recovery = sender(1);
    recovery.on_ack(
        at(5),
        8,
        Ack {
            node: 1,
            newest: 1,
            before: 0,
            over: OVER,
        },
    );
    assert_eq!(recovery.poll_outcome(), None);
}

#[test]
fn a_silent_neighbour_is_given_up_within_a_second() {
    let mut recovery = sender(2);
    let (mut now, mut gone) = (at(2), None);
    while gone.is_none() && now < at(3000) {
        now = recovery.deadline().unwrap();
        recovery.on_time(now);
        while recovery.repeat(now, 1, 2000).is_some() {}
        gone = recovery.poll_gone();
    }
    assert_eq!(gone, Some(7));
    assert!(now < at(1000), "{now}");
    let failed = std::iter::from_fn(|| recovery.poll_outcome()).count();
    assert_eq!((failed, recovery.waiting()), (2, 0));
    // One that is heard is only given up frame by frame.
    let mut recovery = sender(1);
    for _ in 0..100 {
        let Some(due) = recovery.deadline() else {
            break;
        };
        recovery.heard(due, 7, 1, due);
        recovery.on_time(due);
        recovery.repeat(due, 1, 2000);
    }
    assert_eq!(recovery.counters().given_up, 1);
    assert_eq!(recovery.counters().repeats, u64::from(ATTEMPTS) - 1);
    assert_eq!(recovery.poll_gone(), None);
}

/// Probes of a neighbour arrive, answers do not: it is given up with all that waits for it, and not before its time.
#[test]
fn a_neighbour_that_only_talks_is_given_up() {
    let mut recovery = sender_of(6, COPIED + 1);
    let (mut now, mut deaf, mut sent) = (at(2), None, 6);
    while deaf.is_none() {
        now = recovery.deadline().expect("frames wait");
        recovery.heard(now, 7, 1, now);
        recovery.on_time(now);
        while recovery.repeat(now, 1, 2000).is_some() {
            sent += 1;
        }
        deaf = recovery.poll_deaf();
    }
    assert_eq!((deaf, recovery.waiting()), (Some(7), 0));
    assert!(sent >= DEAF.0 && now >= at(0) + DEAF.1, "{sent} {now}");
    assert_eq!((recovery.counters().deaf, recovery.poll_gone()), (1, None));
}

#[test]
fn copies_are_recognised_in_any_order_and_across_lives() {
    let mut recovery = Recovery::new(Duration::from_millis(2), true);
    let mut take = |life, number| recovery.on_frame(at(0), 3, (life, number), Duration::ZERO);
    let taken = [65_535, 0, 65_534, 0, 65_535, 63, 65_534].map(|number| take(1, number));
    assert_eq!(taken, [true, true, true, false, false, true, false]);
    assert!(take(2, 0) && !take(2, 0));
    let (acks, count) = recovery.acks(at(1));
    assert_eq!(
        (count, acks[0]),
        (
            1,
            Ack {
                node: 3,
                newest: 0,
                before: 0,
                over: 255,
            }
        )
    );
    assert_eq!(recovery.acks(at(999)).1, 1, "told again");
    assert_eq!(recovery.acks(at(1000)).1, 0);
}

/// Of a burst that is over, what is not listed was lost; of one that goes on nothing is known.
#[test]
fn what_a_burst_lost_is_repeated_when_it_is_over() {
    let ack = |over| Ack {
        node: 1,
        newest: 1,
        before: 0,
        over,
    };
    let mut recovery = sender(3);
    recovery.on_ack(at(10), 7, ack(0));
    assert_eq!((recovery.waiting(), recovery.lost()), (2, (0, 0)));
    recovery.on_ack(at(11), 7, ack(1));
    assert_eq!(recovery.lost(), (2, 2));
    assert_eq!(recovery.repeat(at(12), 2, 2000).unwrap().number, 2);
    assert_eq!(recovery.repeat(at(12), 2, 2000).unwrap().number, 3);
    // The repeats are of the second burst, of which the next answer knows nothing.
    recovery.on_ack(at(13), 7, ack(1));
    assert_eq!(recovery.lost(), (0, 0));
    recovery.on_ack(at(14), 7, ack(2));
    assert_eq!(recovery.lost(), (2, 2));
}

/// Without an answer the last of large bodies alone is repeated.
#[test]
fn a_missing_answer_costs_one_repeat() {
    let mut recovery = sender_of(3, COPIED + 1);
    let due = recovery.deadline().unwrap();
    recovery.on_time(due);
    assert_eq!(recovery.lost(), (1, COPIED + 1));
    assert_eq!(recovery.repeat(due, 2, 2000).unwrap().number, 3);
}

/// A stream without a pause is acknowledged while it lasts.
#[test]
fn a_stream_is_acknowledged() {
    let mut recovery = Recovery::new(Duration::from_millis(2), true);
    let wait = Duration::from_millis(3);
    for number in 0..8 {
        recovery.on_frame(at(number), 3, (0, number as u16), wait);
    }
    // Half of what the sender waits for an answer: eight milliseconds.
    assert!(!recovery.owes(at(7)) && recovery.owes(at(8)));
}

/// Goal: a sender on a cable is not stopped by its window. Method: bodies that all arrive at once.
#[test]
fn half_a_window_is_acknowledged_at_once() {
    let mut recovery = Recovery::new(Duration::from_micros(11), false);
    let wait = Duration::from_millis(1);
    let mut owes = (1..=WINDOW as u16).map(|number| {
        recovery.on_frame(at(1), 3, (0, number), wait);
        recovery.owes(at(1))
    });
    assert_eq!(owes.position(|owes| owes), Some(WINDOW / 2 - 1));
    let acks = recovery.acks(at(1));
    recovery.told(&acks.0[..acks.1]);
    recovery.on_frame(at(1), 3, (0, 100), wait);
    assert!(!recovery.owes(at(1)), "it is counted anew");
}

/// Goal: nothing is repeated before it can have been answered. Method: a channel whose time lags behind, as that of a cable does
/// to make up for late wake-ups.
#[test]
fn time_to_answer_begins_when_a_body_is_sent() {
    let mut recovery = Recovery::new(Duration::from_micros(11), false);
    recovery.heard(at(100), 7, 0, at(100));
    recovery.send(at(100), 7, (1, Class::Data, Weight::Usual), 1, &[0; 1000]);
    recovery.left(at(92));
    recovery.on_time(at(104));
    assert_eq!(recovery.lost(), (0, 0));
}

/// Small bodies ride in two later frames, once in each; large ones in none.
#[test]
fn small_bodies_have_companions() {
    let mut recovery = sender(1);
    recovery.contend(false);
    let large = [0; COPIED + 1];
    recovery.send(at(2), 7, (9, Class::Data, Weight::Usual), 1, &large);
    for _ in 0..2 {
        let order = recovery.order();
        assert_eq!(recovery.copy(1, 2000, order).unwrap().number, 1);
        assert!(recovery.copy(1, 2000, order).is_none(), "in this frame");
    }
    let order = recovery.order();
    assert!(recovery.copy(1, 2000, order).is_none());
}

/// Goal: where few contend a ping that was lost does not wait for the answer to a later one, nor longer with each attempt. Method: two
/// small bodies and a large one, which nothing answers. (One of 95 pings waited for up to 0.6 s.)
#[test]
fn small_bodies_ride_in_what_is_repeated() {
    // Where many contend the time is twice as long, and doubles with every second attempt.
    for (few, lost, due) in [(true, 2, 108), (false, 1, 164)] {
        let mut recovery = sender(2);
        recovery.contend(few);
        recovery.send(
            at(2),
            7,
            (9, Class::Data, Weight::Usual),
            1,
            &[0; COPIED + 1],
        );
        recovery.heard(at(3), 7, 0, at(3));
        (1..=3).for_each(|_| recovery.repeat_all(at(100)));
        recovery.outstanding.pop();
        recovery.on_time(at(due - 1));
        assert_eq!(recovery.lost().0, 0);
        recovery.on_time(at(due));
        assert_eq!(recovery.lost().0, lost);
    }
}

/// Goal: where many contend a ping that was lost waits neither for its turn among other bodies nor for an answer to them. Method: a ping
/// and a segment that only acknowledges, followed by a large body.
#[test]
fn an_urgent_packet_has_a_time_of_its_own() {
    let mut recovery = Recovery::new(Duration::from_millis(2), true);
    recovery.contend(false);
    let about = |token, weight| (token, Class::Urgent, weight);
    recovery.send(at(2), 7, about(1, Weight::Replaced), 1, &[1]);
    recovery.send(at(2), 7, about(2, Weight::Awaited), 1, &[2]);
    recovery.send(
        at(2),
        7,
        (3, Class::Data, Weight::Usual),
        1,
        &[3; COPIED + 1],
    );
    // The time between four transmissions stays the same, then it doubles.
    let mut now = at(2);
    for wait in [4, 4, 4, 4, 8, 16, 32] {
        now += Duration::from_millis(wait);
        recovery.heard(now, 7, 1, now);
        recovery.on_time(now.saturating_before(Duration::from_millis(1)));
        assert_eq!(recovery.outstanding[1].token, 2);
        assert!(!recovery.outstanding[1].lost, "{now}");
        recovery.on_time(now);
        assert!(recovery.outstanding[1].lost && !recovery.outstanding[0].lost);
        recovery.outstanding[1].lost = false;
        recovery.outstanding[1].attempts += 1;
        recovery.outstanding[1].sent = now;
    }
    // The segment rides in no other frame.
    let order = recovery.order();
    assert_eq!(recovery.copy(1, 2000, order).unwrap().body, &[2]);
    assert!(recovery.copy(1, 2000, order).is_none());
}

#[test]
fn strangers_do_not_fill_the_memory() {
    let mut recovery = Recovery::new(Duration::from_millis(2), true);
    for node in 0..60_000u16 {
        recovery.on_frame(at(node.into()), node, (0, 1), Duration::ZERO);
    }
    assert_eq!(recovery.neighbours.len(), NEIGHBOURS_MAX);
}
