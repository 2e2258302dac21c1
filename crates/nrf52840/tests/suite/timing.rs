//! Frames start when they should, events say when things happened, and no task comes in the wrong state.

use std::cell::RefCell;

use chappe_core::{Channel, Dbm, Duration, Instant, Mode, RadioRequest, Rate, Transmit};
use chappe_nrf52840::model::{Chip, OnAir};
use chappe_nrf52840::{Config, Driver, Seen};

const MODE: Mode = Mode::long(Rate::Oqpsk250);

fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn send(at: Instant, len: usize) -> RadioRequest {
    RadioRequest::Transmit(Transmit {
        at,
        len,
        mode: MODE,
        power: None,
    })
}

fn frame(len: usize) -> OnAir {
    let mut psdu = [0; 127];
    psdu.iter_mut()
        .enumerate()
        .for_each(|(at, octet)| *octet = at as u8 ^ 0x5a);
    OnAir {
        started: 0,
        channel: Channel(26),
        len,
        psdu,
    }
}

/// Runs the chip to a time in us, and the driver at each interrupt. Returns what it saw.
fn run(
    chip: &RefCell<Chip>,
    driver: &mut Driver<&RefCell<Chip>>,
    until: u64,
) -> Vec<(Instant, Seen)> {
    let mut seen = Vec::new();
    loop {
        while let Some(one) = driver.poll() {
            seen.push(one);
        }
        let next = chip.borrow().next().unwrap_or(u64::MAX);
        let to = next.min(until * 1000);
        chip.borrow_mut().advance(to);
        if to == until * 1000 {
            while let Some(one) = driver.poll() {
                seen.push(one);
            }
            return seen;
        }
    }
}

fn ready(chip: &RefCell<Chip>) -> Driver<&RefCell<Chip>> {
    let mut driver = Driver::new(chip, Config::STANDARD);
    assert_eq!(run(chip, &mut driver, 100), []);
    assert!(chip.borrow().is_listening(Channel(26)));
    driver
}

#[test]
fn a_frame_starts_at_its_instant_and_ends_after_its_airtime() {
    for at in [400, 2000, 5_000_000] {
        let chip = RefCell::new(Chip::new());
        let mut driver = ready(&chip);
        driver.request(send(us(at), 20), &[7; 20]);
        let seen = run(&chip, &mut driver, at + 2000);
        let sent = chip.borrow_mut().take_sent().unwrap();
        assert_eq!(sent.started, at * 1000, "the first preamble bit");
        assert_eq!((sent.len, &sent.psdu[..20]), (20, &[7; 20][..]));
        assert_eq!(seen, [(us(at) + MODE.airtime(22), Seen::Sent)]);
        driver.settle();
        run(&chip, &mut driver, at + 2100);
        assert!(chip.borrow().is_listening(Channel(26)));
        assert_eq!(chip.borrow().faults(), 0);
    }
}

/// Now means at once: the receiver is turned off and the transmitter ramps up.
#[test]
fn a_frame_that_is_due_starts_after_the_ramp_up() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    driver.request(send(us(0), 5), &[1; 5]);
    run(&chip, &mut driver, 1000);
    let sent = chip.borrow_mut().take_sent().unwrap();
    assert_eq!(sent.started, 100_000 + 500 + 40_000);
    assert_eq!(chip.borrow().faults(), 0);
}

/// P³'s gap between two frames is shorter than a ramp-up: the transmitter stays up.
#[test]
fn a_second_frame_follows_without_a_ramp_up() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    driver.request(send(us(500), 10), &[1; 10]);
    let end = us(500) + MODE.airtime(12);
    let seen = run(&chip, &mut driver, end.nanos() / 1000);
    assert_eq!(seen, [(end, Seen::Sent)]);
    chip.borrow_mut().take_sent();
    let next = end + Duration::from_micros(16);
    driver.request(send(next, 10), &[2; 10]);
    driver.settle();
    run(&chip, &mut driver, 3000);
    let sent = chip.borrow_mut().take_sent().unwrap();
    assert_eq!(sent.started, next.nanos());
    assert_eq!(chip.borrow().faults(), 0);
}

/// Goal: the source of a pipeline has no deadline of microseconds. Method: each next frame is handed over while the one before
/// is on the air, and the driver hears of an end only long after it; all of them start on time, with their own octets.
#[test]
fn frames_handed_over_while_another_is_on_the_air_start_by_themselves() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    let period = MODE.airtime(102) + Duration::from_micros(16);
    let start = |number: u64| us(500) + period * number;
    driver.request(send(start(0), 100), &[0; 100]);
    for number in 0..50 {
        // In the middle of this frame: the end of the one before is news only now.
        let middle = start(number).nanos() / 1000 + 1700;
        let late = |chip: &RefCell<Chip>, driver: &mut Driver<&RefCell<Chip>>| {
            // Only what must be armed 200 us ahead is polled in time.
            chip.borrow_mut().advance(middle * 1000);
            let mut seen = Vec::new();
            while let Some(one) = driver.poll() {
                seen.push(one);
            }
            seen
        };
        let seen = match number {
            0 => run(&chip, &mut driver, middle),
            _ => late(&chip, &mut driver),
        };
        let ends = seen.iter().filter(|(_, seen)| *seen == Seen::Sent);
        let ends: Vec<Instant> = ends.map(|(at, _)| *at).collect();
        let before = number.checked_sub(1);
        let expected = before.map(|one| start(one) + MODE.airtime(102));
        assert_eq!(ends, Vec::from_iter(expected), "frame {number}");
        let sent = chip.borrow_mut().take_sent().unwrap();
        assert_eq!(sent.started, start(number).nanos());
        assert_eq!(sent.psdu[..100], [number as u8; 100]);
        driver.request(send(start(number + 1), 100), &[number as u8 + 1; 100]);
        driver.settle();
        // The alarm that arms it.
        let alarm = start(number + 1).nanos() / 1000 - 200;
        assert_eq!(run(&chip, &mut driver, alarm), []);
    }
    assert_eq!(chip.borrow().faults(), 0);
}

/// A frame that is cancelled after it began goes on; the one behind it is not sent.
#[test]
fn cancelling_does_not_cut_a_frame_on_the_air() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    driver.request(send(us(500), 10), &[1; 10]);
    let first = us(500) + MODE.airtime(12);
    run(&chip, &mut driver, first.nanos() / 1000);
    // From a transmitter that is still up: its ramp-up says nothing about this frame.
    let second = first + Duration::from_micros(16);
    driver.request(send(second, 10), &[2; 10]);
    run(&chip, &mut driver, second.nanos() / 1000 + 50);
    driver.request(
        send(second + MODE.airtime(12) + Duration::from_micros(16), 10),
        &[3; 10],
    );
    run(
        &chip,
        &mut driver,
        (second + MODE.airtime(12)).nanos() / 1000 - 100,
    );
    driver.request(RadioRequest::Cancel, &[]);
    driver.settle();
    let seen = run(&chip, &mut driver, 3000);
    assert_eq!(seen, [(second + MODE.airtime(12), Seen::Sent)]);
    driver.settle();
    assert_eq!(run(&chip, &mut driver, 9000), []);
    assert_eq!(chip.borrow_mut().take_sent().unwrap().psdu[..10], [2; 10]);
    assert!(chip.borrow().is_listening(Channel(26)));
    assert_eq!(chip.borrow().faults(), 0);
}

/// Relays of a group must start within 0.5 us of each other (paper, II). Two that heard one frame are late by a tick of
/// their timers at most, whenever these were started.
#[test]
fn relays_start_within_a_tenth_of_a_microsecond() {
    let starts: Vec<u64> = (0..16u64)
        .map(|phase| {
            let mut chip = Chip::new();
            chip.advance(phase * 13);
            let chip = RefCell::new(chip);
            let mut driver = Driver::new(&chip, Config::STANDARD);
            run(&chip, &mut driver, 400);
            chip.borrow_mut().arrive(&frame(40), -63.0, true);
            let seen = run(&chip, &mut driver, 400 + 192 + 42 * 32);
            let [(at, Seen::Received { .. })] = seen[..] else {
                panic!("{seen:?}")
            };
            driver.request(send(at + Duration::from_micros(192), 40), &[1; 40]);
            run(&chip, &mut driver, 2500);
            let started = chip.borrow_mut().take_sent().unwrap().started;
            assert_eq!(chip.borrow().faults(), 0);
            started
        })
        .collect();
    let ideal = 400_000 + MODE.airtime(42).nanos() + 192_000;
    let off = starts.iter().map(|start| start.abs_diff(ideal)).max();
    assert!(off <= Some(100), "{off:?} ns: {starts:?}");
}

#[test]
fn the_chips_aes_is_aes() {
    let chip = RefCell::new(Chip::new());
    // FIPS 197, appendix B.
    let key = 0x2b7e1516_28aed2a6_abf71588_09cf4f3c_u128.to_be_bytes();
    let mut block = 0x3243f6a8_885a308d_313198a2_e0370734_u128.to_be_bytes();
    assert!(chappe_nrf52840::encrypt(&mut &chip, &key, &mut block));
    assert_eq!(
        block,
        0x3925841d_02dc09fb_dc118597_196a0b32_u128.to_be_bytes()
    );
    assert_eq!(chip.borrow().faults(), 0);
}

#[test]
fn a_frame_is_received_with_its_head_start_and_power() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    driver.request(RadioRequest::Peek(9), &[]);
    run(&chip, &mut driver, 300);
    chip.borrow_mut().arrive(&frame(40), -63.0, true);
    let seen = run(&chip, &mut driver, 300 + 192 + 9 * 32);
    let head = Seen::Head {
        octets: 9,
        len: 40,
        started: us(300),
    };
    assert_eq!(seen, [(us(300 + 192 + 9 * 32), head)]);
    let mut octets = [0; 9];
    driver.octets(&mut octets);
    assert_eq!(octets, frame(40).psdu[..9]);
    let seen = run(&chip, &mut driver, 3000);
    let received = Seen::Received {
        len: 40,
        started: us(300),
        power: Dbm(-63.0),
    };
    assert_eq!(seen, [(us(300) + MODE.airtime(42), received)]);
    let mut octets = [0; 40];
    driver.octets(&mut octets);
    assert_eq!(octets, frame(40).psdu[..40]);
    assert!(chip.borrow().is_listening(Channel(26)), "it listens on");
    assert_eq!(chip.borrow().faults(), 0);
}

/// A frame shorter than the head that was asked for: all of it, and then the frame itself.
#[test]
fn a_short_frame_is_its_own_head() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    driver.request(RadioRequest::Peek(50), &[]);
    chip.borrow_mut().arrive(&frame(3), -70.0, true);
    let seen = run(&chip, &mut driver, 2000);
    let kinds = seen.iter().map(|(_, seen)| match seen {
        Seen::Head { octets, len, .. } => (*octets, *len),
        Seen::Received { len, .. } => (99, *len),
        other => panic!("{other:?}"),
    });
    assert_eq!(kinds.collect::<Vec<_>>(), [(3, 3), (99, 3)]);
}

#[test]
fn a_wrong_check_sequence_is_a_failure_and_an_abort_is_silent() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    chip.borrow_mut().arrive(&frame(30), -80.0, false);
    let seen = run(&chip, &mut driver, 2000);
    assert!(
        matches!(seen[..], [(at, Seen::Failed(_))] if at == us(100) + MODE.airtime(32)),
        "{seen:?}"
    );
    chip.borrow_mut().arrive(&frame(30), -80.0, true);
    run(&chip, &mut driver, 2500);
    driver.request(RadioRequest::Abort, &[]);
    assert_eq!(run(&chip, &mut driver, 5000), []);
    assert!(chip.borrow().is_listening(Channel(26)));
    assert_eq!(chip.borrow().faults(), 0);
}

#[test]
fn the_carrier_is_told_at_once_and_at_each_change() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    driver.request(RadioRequest::Sense(true), &[]);
    let seen = run(&chip, &mut driver, 110);
    assert_eq!(seen, [(us(100), Seen::Carrier { busy: false })]);
    // Below the threshold; its header is decoded all the same, and a frame makes the channel busy.
    chip.borrow_mut().arrive(&frame(10), -90.0, true);
    let seen = run(&chip, &mut driver, 110 + 192);
    assert_eq!(seen, []);
    let seen = run(&chip, &mut driver, 340);
    assert!(
        matches!(seen[..], [(_, Seen::Carrier { busy: true })]),
        "{seen:?}"
    );
    let seen = run(&chip, &mut driver, 1000);
    assert!(
        matches!(
            seen[..],
            [
                (_, Seen::Received { .. }),
                (_, Seen::Carrier { busy: false })
            ]
        ),
        "{seen:?}"
    );
    chip.borrow_mut().arrive(&frame(10), -74.0, true);
    let seen = run(&chip, &mut driver, 1000 + 32);
    assert!(
        matches!(seen[..], [(_, Seen::Carrier { busy: true })]),
        "{seen:?}"
    );
    driver.request(RadioRequest::Sense(false), &[]);
    let seen = run(&chip, &mut driver, 9000);
    assert!(matches!(seen[..], [(_, Seen::Received { .. })]), "{seen:?}");
    assert_eq!(chip.borrow().faults(), 0);
}

#[test]
fn what_the_radio_cannot_do_is_counted_and_what_is_cancelled_is_not_sent() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    driver.request(send(us(500), 126), &[0; 127]);
    assert_eq!(driver.refused(), 1, "no room for the check sequence");
    for at in [250, 5000] {
        driver.request(send(us(at), 20), &[7; 20]);
        run(&chip, &mut driver, 150);
        driver.request(RadioRequest::Cancel, &[]);
    }
    assert_eq!(run(&chip, &mut driver, 9000), []);
    assert_eq!(chip.borrow_mut().take_sent(), None);
    assert!(chip.borrow().is_listening(Channel(26)));
    driver.request(RadioRequest::Tune(Channel(15)), &[]);
    run(&chip, &mut driver, 9100);
    assert!(chip.borrow().is_listening(Channel(15)));
    driver.request(RadioRequest::Listen(false), &[]);
    run(&chip, &mut driver, 9200);
    assert!(!chip.borrow().is_listening(Channel(15)));
    assert_eq!(chip.borrow().faults(), 0);
}

/// The timer wraps after 268 s; frames stay on time, and an old start does not come again.
#[test]
fn two_hours_later_time_is_still_right() {
    let chip = RefCell::new(Chip::new());
    let mut driver = ready(&chip);
    let at = 2 * 3_600_000_000;
    driver.request(send(us(at), 20), &[7; 20]);
    let seen = run(&chip, &mut driver, at + 2000);
    assert_eq!(chip.borrow_mut().take_sent().unwrap().started, at * 1000);
    assert_eq!(seen, [(us(at) + MODE.airtime(22), Seen::Sent)]);
    driver.settle();
    assert_eq!(run(&chip, &mut driver, at + 600_000_000), []);
    assert_eq!(chip.borrow_mut().take_sent(), None);
    assert_eq!(chip.borrow().faults(), 0);
}
