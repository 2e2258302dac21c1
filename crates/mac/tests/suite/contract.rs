//! The promises of every radio node, kept by the DCF under a node that talks all the time.

use chappe_core::{
    Address, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Mode, Outcome, OverMac,
    Purpose, RadioEvent, RadioNode, RadioRequest, Rate, Seed, Stream, Wake, contract,
};
use chappe_mac::dot11::{Category, Config, Dot11, Edca, PSDU_MAX};
use chappe_mac::zmac::{self, Schedule, Slot};

/// Sends unicast and broadcast frames of all sizes, sometimes declines its turn, repeats what it hears, and
/// has deadlines of its own.
struct Chatty {
    random: Stream,
    waiting: u32,
    wake: Instant,
}

impl LinkNode for Chatty {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event {
            self.waiting += 1 + arrival.sdu.len() as u32 % 3;
        }
        self.wake = now + chappe_core::Duration::from_micros(700);
    }
    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.waiting > 0)
    }
    fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        assert!(allowed.contains(Class::Data));
        self.waiting = self.waiting.checked_sub(1)?;
        if self.random.chance(0.1) {
            return None;
        }
        let len = self.random.below(sdu.len() as u64 + 1) as usize;
        self.random.fill(&mut sdu[..len]);
        let to = match self.random.below(3) {
            0 => Address::BROADCAST,
            n => Address::node(n as u16),
        };
        let mode = self.random.chance(0.3).then_some(Mode::short(Rate::Cck5));
        Some(LinkSend {
            to,
            len,
            class: Class::Data,
            mode,
            token: self.random.next_u64() as u32,
        })
    }
    fn handle_timeout(&mut self, now: Instant) {
        if self.wake <= now {
            self.wake = now + chappe_core::Duration::from_millis(3);
            self.waiting += 1;
        }
    }
    fn poll_timeout(&self) -> Option<Wake> {
        Some(Wake {
            at: self.wake,
            why: "chat",
        })
    }
}

fn check(config: Config) {
    contract::check_radio(300, |seed| {
        let mut mac = Dot11::new(
            config,
            Address::node(1),
            Seed(seed).stream(Purpose::Node(1)),
        );
        mac.trace(true);
        let link = Chatty {
            random: Seed(seed).stream(Purpose::Traffic(1)),
            waiting: 0,
            wake: Instant::from_millis(2),
        };
        OverMac::new(mac, link)
    });
}

#[test]
fn dcf_keeps_its_promises() {
    check(Config {
        overhear: true,
        ..Config::dot11b(Rate::Dsss2)
    });
}

#[test]
fn dcf_with_rts_and_every_option_keeps_its_promises() {
    check(Config {
        rts_threshold: 300,
        nav_reset: true,
        difs_after_timeout: false,
        early_timeout: true,
        llc: None,
        broadcast: Some(Mode::long(Rate::Dsss1)),
        propagation_max: chappe_core::Duration::from_nanos(33_360),
        ..Config::dot11b(Rate::Cck11)
    });
}

/// Sends in every class, in bursts.
struct Mixed(Chatty);

impl LinkNode for Mixed {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        self.0.handle_link(now, event);
    }
    fn pending(&self) -> Classes {
        let waiting = self.0.waiting;
        let with = |classes: Classes, class: Class| {
            classes.with_if(class, waiting.wrapping_mul(7) >> (class as u32) & 1 == 1)
        };
        Class::BY_URGENCY.into_iter().fold(Classes::NONE, with)
    }
    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let class = self.pending().and(allowed).most_urgent()?;
        let send = self.0.poll_link(now, Classes::ALL, sdu)?;
        Some(LinkSend { class, ..send })
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }
    fn poll_timeout(&self) -> Option<Wake> {
        self.0.poll_timeout()
    }
}

#[test]
fn edca_keeps_its_promises() {
    for rts_threshold in [300, usize::MAX] {
        contract::check_radio(300, |seed| {
            let config = Config {
                rts_threshold,
                ..Config::dot11b(Rate::Cck11)
            };
            let random = Seed(seed).stream(Purpose::Node(1));
            let mut mac = Edca::edca(config, Category::DSSS, Address::node(1), random);
            mac.trace(true);
            let link = Mixed(Chatty {
                random: Seed(seed).stream(Purpose::Traffic(1)),
                waiting: 0,
                wake: Instant::from_millis(2),
            });
            OverMac::new(mac, link)
        });
    }
}

#[test]
fn zmac_plus_keeps_its_promises() {
    let usual = zmac::Config::of_rate(Rate::Dsss2);
    let ecn = zmac::Ecn {
        failures: 1,
        undecodable: 1,
        wait: chappe_core::Duration::ZERO,
        again: chappe_core::Duration::ZERO,
        ..usual.ecn.unwrap()
    };
    let odd = zmac::Config {
        beacon: chappe_core::Duration::ZERO,
        slot: chappe_core::Duration::ZERO,
        owner_window: 40,
        ecn: Some(ecn),
        ..usual
    };
    let silent = zmac::Config { ecn: None, ..usual };
    for config in [usual, odd, silent, usual.sparing()] {
        contract::check_radio(300, |seed| {
            let mut schedule = Schedule::new(Some(Slot {
                number: 1,
                frame: 4,
            }));
            schedule.bar(Slot {
                number: 2,
                frame: 4,
            });
            let random = Seed(seed).stream(Purpose::Node(1));
            let mut mac = Dot11::zmac_plus(config, schedule, Address::node(1), random);
            mac.trace(true);
            let link = Mixed(Chatty {
                random: Seed(seed).stream(Purpose::Traffic(1)),
                waiting: 0,
                wake: Instant::from_millis(2),
            });
            OverMac::new(mac, link)
        });
    }
}

#[test]
fn drand_keeps_its_promises() {
    contract::check_link(200, |seed| {
        let random = Seed(seed).stream(Purpose::Node(1));
        let timing = zmac::drand::Timing::default();
        zmac::Drand::new(Address::node(1), random, timing, Instant::from_millis(1))
    });
}

/// Configurations that make no sense must still not panic.
#[test]
fn absurd_configurations_keep_the_promises() {
    let zero = chappe_core::Duration::ZERO;
    check(Config {
        slot: zero,
        sifs: zero,
        cca_time: chappe_core::Duration::MAX,
        cw_min: u16::MAX,
        cw_max: 0,
        retry_short: 0,
        retry_long: 0,
        rts_threshold: 0,
        ..Config::dot11b(Rate::Cck11)
    });
}

/// The largest SDU that the caps promise leaves as the largest PSDU, and one octet more is refused.
#[test]
fn the_largest_frame_fits() {
    struct Largest(usize, Option<Outcome>);
    impl LinkNode for Largest {
        fn handle_link(&mut self, _: Instant, event: LinkEvent<'_>) {
            if let LinkEvent::Sent { outcome, .. } = event {
                self.1 = Some(outcome);
            }
        }
        fn pending(&self) -> Classes {
            Classes::NONE.with_if(Class::Data, self.1.is_none())
        }
        fn poll_link(&mut self, _: Instant, _: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
            assert!(sdu.len() >= Config::dot11b(Rate::Dsss1).caps().frame_max);
            Some(LinkSend {
                to: Address::node(2),
                len: self.0,
                class: Class::Data,
                mode: None,
                token: 0,
            })
        }
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_timeout(&self) -> Option<Wake> {
            None
        }
    }
    let config = Config::dot11b(Rate::Cck11);
    let largest = config.caps().frame_max;
    for (len, sent) in [(largest, Some(PSDU_MAX)), (largest + 1, None)] {
        let mac = Dot11::new(config, Address::node(1), Seed(1).stream(Purpose::Node(1)));
        let mut node = OverMac::new(mac, Largest(len, None));
        let (now, mut psdu, mut found) = (Instant::from_millis(1), [0; PSDU_MAX], None);
        node.handle_timeout(now);
        while let Some(request) = node.poll_radio(now, &mut psdu) {
            match request {
                RadioRequest::Sense(true) => {
                    let (busy, since) = (false, Instant::ZERO);
                    node.handle_radio(now, RadioEvent::Carrier { busy, since });
                }
                RadioRequest::Transmit(transmit) => found = Some(transmit.len),
                _ => {}
            }
        }
        assert_eq!(found, sent);
        let refused = Some(Outcome::Failed { attempts: 0 });
        assert_eq!(node.link.1, if sent.is_some() { None } else { refused });
    }
}
