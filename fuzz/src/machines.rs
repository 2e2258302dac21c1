//! The state machines of MACs and protocols, two of a kind under a script. The first octet chooses a variant.

use std::sync::Arc;

use chappe_core::{Address, Caps, Duration, Instant, OverMac, Purpose, Rate, Seed, Stream};
use chappe_dpclo::{Router, Settings};
use chappe_mac::dot11::{Config as Dot11Config, Dot11};
use chappe_mac::dot15d4::{Config as Dot15d4Config, Dot15d4, Sleep};
use chappe_p3::{Relay, Source};
use chappe_pacifier::paper::{Config as PaperConfig, Variant};
use chappe_pacifier::{Common, Config as PacifierConfig, Links, Node as Pacifier, improved};
use chappe_wildnet::{Config as WildConfig, Link, Node as WildNode, Radio, Recovery, Site};
use chappe_wildnet::{SlotConfig, Turns};

use crate::nodes::{OnLink, OnRadio, Talker};
use crate::play::play;

/// Frames that a script made the nodes send.
pub type Frames = Vec<Vec<u8>>;

const ADDRESSES: [Address; 2] = [Address::node(0), Address::node(1)];
/// Octets of an object or packet to carry.
const OBJECT: [u8; 700] = [0xa5; 700];

fn random(node: usize) -> Stream {
    Seed(1).stream(Purpose::Node(node as u32))
}

/// The variant and the script.
fn split(bytes: &[u8]) -> (usize, &[u8]) {
    bytes
        .split_first()
        .map_or((0, bytes), |(&first, rest)| (first.into(), rest))
}

/// 802.11 stations, with and without RTS.
pub fn dot11(bytes: &[u8]) -> Frames {
    let (variant, script) = split(bytes);
    let station = |node: usize| {
        let config = Dot11Config {
            rts_threshold: [20, usize::MAX][variant % 2],
            nav_reset: variant & 2 != 0,
            overhear: variant & 4 != 0,
            ..Dot11Config::dot11b(Rate::Dsss2)
        };
        let mac = Dot11::new(config, ADDRESSES[node], random(node));
        OnRadio::new(OverMac::new(mac, Talker::to(ADDRESSES[1 - node])), |_| ())
    };
    play([station(0), station(1)], script)
}

/// 802.15.4 stations: two of the standard, two of TCPlp's, a sleepy leaf and its parent.
pub fn dot15d4(bytes: &[u8]) -> Frames {
    let (variant, script) = split(bytes);
    let station = |node: usize| {
        let config = match variant % 3 {
            0 => Dot15d4Config::STANDARD,
            1 => Dot15d4Config::HAMILTON,
            _ => Dot15d4Config {
                sleep: (node == 1).then_some(Sleep::tcplp(ADDRESSES[0])),
                burst: variant & 4 != 0,
                ..Dot15d4Config::HAMILTON
            },
        };
        let mut mac = Dot15d4::<4>::new(config, ADDRESSES[node], random(node));
        if variant % 3 == 2 && node == 0 {
            mac.add_child(ADDRESSES[1]);
        }
        OnRadio::new(OverMac::new(mac, Talker::to(ADDRESSES[1 - node])), |_| ())
    };
    play([station(0), station(1)], script)
}

/// A source of Pacifier and its receiver, in the paper's variants and the improved one.
pub fn pacifier(bytes: &[u8]) -> Frames {
    let (variant, script) = split(bytes);
    let common = Common {
        k: 4,
        payload: 30,
        ..Common::default()
    };
    let paper = |variant| {
        PacifierConfig::Paper(PaperConfig {
            common,
            ..PaperConfig::new(variant)
        })
    };
    let config = match variant % 5 {
        0 => paper(Variant::More { prune: 0.02 }),
        1 => paper(Variant::Tree),
        2 => paper(Variant::TreeRl),
        3 => paper(Variant::Pacifier { knob: 1.0 }),
        _ => {
            let settings = improved::Settings::default();
            improved::Config { common, settings }.into()
        }
    };
    let links = Arc::new(Links::measured(2, |_, _| 0.7).expect("two nodes hear each other"));
    let node = |number: usize| {
        let node = Pacifier::new(config.clone(), number as u16, links.clone(), random(number));
        node.expect("the configuration is sound")
    };
    let (mut source, mut receiver) = (node(0), node(1));
    source
        .offer(OBJECT.to_vec().into(), &[1])
        .expect("nothing else is sent");
    receiver
        .expect(0, OBJECT.len())
        .expect("nothing else is expected");
    let ends = [(source, ADDRESSES[1]), (receiver, ADDRESSES[0])];
    play(
        ends.map(|(node, peer)| OnLink::new(node, peer, |_| ())),
        script,
    )
}

/// What a link must offer to DPCLO and to P³.
const CAPS: Caps = Caps {
    frame_max: 2296,
    schedules: true,
    start_error: Duration::ZERO,
    reports_power: false,
    overhears: true,
    confirms_broadcast: true,
    hastens: false,
};

/// Two of DPCLO's routers with packets for each other, in all variants.
pub fn dpclo(bytes: &[u8]) -> Frames {
    let (variant, script) = split(bytes);
    let settings = match variant % 5 {
        0 => Settings::paper(),
        1 => Settings::improved(),
        2 => Settings::shortest_path(),
        3 => Settings::fusion(),
        _ => Settings::dclo(),
    };
    let router = |me: usize| {
        let begin = Instant::from_millis(1);
        let router = Router::new(settings, me as u16, 0, &CAPS, begin, random(me));
        let mut router = router.expect("the settings are sound");
        for flow in 0..2 {
            let _ = router.offer(begin, 1 - me as u16, flow, b"a packet of its own");
        }
        let take = |router: &mut Router| while router.poll_delivery(&mut [0; 2304]).is_some() {};
        OnLink::new(router, ADDRESSES[1 - me], take)
    };
    play([router(0), router(1)], script)
}

/// Two of P³'s relays that wait for a plan.
pub fn p3_relay(bytes: &[u8]) -> Frames {
    let caps = Caps {
        frame_max: 125,
        ..CAPS
    };
    let relay = |number| {
        let relay = Relay::new(chappe_p3::Config::default(), &caps, number);
        OnRadio::new(relay.expect("the radio can do it"), |_| ())
    };
    play([relay(2), relay(3)], bytes)
}

/// Two of P³'s sources that wait for a plan.
pub fn p3_source(bytes: &[u8]) -> Frames {
    let caps = Caps {
        frame_max: 125,
        ..CAPS
    };
    let source = |number| {
        let source = Source::new(chappe_p3::Config::default(), &caps, number, &OBJECT[..]);
        OnRadio::new(source.expect("the radio can do it"), |_| ())
    };
    play([source(1), source(2)], bytes)
}

/// A configuration with a small window.
fn wild(config: WildConfig, variant: usize) -> WildConfig {
    WildConfig {
        window: 64,
        queue: 8,
        recovery: match variant % 3 {
            0 => Recovery::Acks,
            1 => Recovery::None,
            _ => Recovery::Improved { fill: true },
        },
        bundle: variant & 16 != 0,
        fragments: variant & 16 != 0,
        ..config
    }
}

/// A link with packets in its queue.
fn loaded(config: WildConfig, epoch: u8) -> Link {
    let mut link = Link::new(config, epoch).expect("the configuration is sound");
    for flow in 0..4 {
        link.offer(Instant::from_millis(1), 2, flow, &OBJECT[..40]);
    }
    if config.fragments {
        // Three of them do not fit a frame.
        (0..3).for_each(|_| _ = link.offer(Instant::from_millis(1), 3, 4, &OBJECT));
    }
    link
}

fn take(link: &mut Link) {
    while link.deliver(&mut [0; 2304]).is_some() {}
}

/// WiLDNet's radios in slots, and 2P's.
pub fn wildnet_slots(bytes: &[u8]) -> Frames {
    let (variant, script) = split(bytes);
    let radio = |node: usize| {
        let slots = SlotConfig {
            turns: match variant & 4 {
                0 => Turns::Stamps,
                _ => Turns::Markers { timeout: 5 },
            },
            by_demand: variant & 8 != 0,
            ..SlotConfig::dot11b(Duration::from_millis(20))
        };
        let link = loaded(wild(WildConfig::slots(), variant), node as u8);
        let site = Site::new(slots, 1, random(node + 2));
        let ends = (ADDRESSES[node], ADDRESSES[1 - node]);
        let radio = Radio::new(link, site, 0, ends, random(node));
        OnRadio::new(radio, |radio| take(&mut radio.link))
    };
    play([radio(0), radio(1)], script)
}

/// WiLDNet's links without slots, as `chappe link` has them.
pub fn wildnet_link(bytes: &[u8]) -> Frames {
    let (variant, script) = split(bytes);
    let node = |node: usize| {
        let link = loaded(wild(WildConfig::tunnel(1400), variant), node as u8);
        let peer = ADDRESSES[1 - node];
        OnLink::new(
            WildNode::new(link, peer, None),
            peer,
            |node: &mut WildNode| take(&mut node.link),
        )
    };
    play([node(0), node(1)], script)
}
