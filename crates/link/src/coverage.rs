//! Through which interface a peer's frames leave, and whether the 802.11 card there waits long enough for the distance.
//!
//! A round trip says how far a peer can be at most, never how far it is: programs and queues take longer than light. So only a
//! distance that somebody gives makes a warning; a round trip can but show that a card waits long enough.

use std::fmt;

use chappe_core::{Duration, Instant};
use chappe_sys::wireless::{Radio, class_for, radio};
use chappe_sys::{Endpoint, Interface, Links};

use crate::carrier::Carrier;

/// Metres that light goes in a second.
pub(crate) const LIGHT: f64 = 299_792_458.0;
/// Microseconds by which a coverage class lengthens every slot and every wait for an acknowledgement (IEEE 802.11-2020, 9.4.2.8).
const CLASS_US: u32 = 3;
/// A slot of 802.11 at 5 GHz, microseconds (IEEE 802.11-2020, table 17-21): a card that waits longer in vain than this has slots of
/// twice their length.
const SLOT_US: u32 = 9;
/// Routes and cards change seldom.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How a peer's frames leave this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// It has no address yet.
    #[default]
    Unknown,
    /// No route leads there: the address, and what the kernel says.
    NoRoute(String),
    /// Into the link itself, where they never come out.
    Itself(String),
    /// Through an interface that is wired or virtual. A radio behind it has settings of its own.
    Wire(String),
    /// Through an 802.11 card.
    Radio(Radio),
}

/// Whether a card waits as long as light takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// There is no card.
    None,
    /// It does.
    Enough,
    /// It does not: the class that would, or `None` where Linux has none.
    TooSmall {
        /// The least class that would do.
        needed: Option<u8>,
    },
    /// It waits so much longer that every slot has twice its length.
    Stretches {
        /// The least class that would do.
        needed: u8,
    },
    /// The distance is not known, and the round trip leaves it open.
    Unclear,
}

/// What is known about a peer's way and distance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    egress: Egress,
    /// The interface as it was then.
    found: Option<Interface>,
    /// As given, in metres.
    pub distance: Option<f64>,
    /// When to look again; zero: at once.
    look_at: Instant,
}

impl Coverage {
    /// Looks again if it is time to: through which interface frames leave, and what its driver was told. `share`: which part of
    /// the usual pause lies between the first two looks, so that those of many peers do not come together.
    pub fn look(
        &mut self,
        now: Instant,
        share: f64,
        (device, carrier): (&str, &Carrier),
        to: Option<Endpoint>,
    ) {
        if now < self.look_at {
            return;
        }
        self.look_at = now
            + match self.look_at == Instant::ZERO {
                true => Duration::from_secs_f64(LOOK_EVERY.as_secs_f64() * share),
                false => LOOK_EVERY,
            };
        self.egress = find_egress(device, carrier, to);
        let interface = interface(&self.egress).map(Interface::find);
        self.found = interface.and_then(Result::ok);
    }

    /// What that means for a peer that is `most` metres away at most, by its round trip.
    pub fn judge(&self, most: Option<f64>) -> Judgement {
        Judgement {
            egress: self.egress.clone(),
            found: self.found.clone(),
            distance: self.distance,
            most,
        }
    }
}

fn interface(way: &Egress) -> Option<&str> {
    match way {
        Egress::Unknown | Egress::NoRoute(_) => None,
        Egress::Itself(interface) | Egress::Wire(interface) => Some(interface),
        Egress::Radio(radio) => Some(&radio.interface),
    }
}

fn find_egress(device: &str, carrier: &Carrier, to: Option<Endpoint>) -> Egress {
    let interface = match (carrier, to) {
        (Carrier::Ethernet { interface, .. }, _) => Some(interface.clone()),
        (_, Some(Endpoint::Udp(to))) => {
            match Links::open().and_then(|links| links.towards(to.ip())) {
                Ok(interface) => Some(interface),
                Err(error) => return Egress::NoRoute(error.cause()),
            }
        }
        _ => None,
    };
    match interface {
        None => Egress::Unknown,
        Some(interface) if interface == device => Egress::Itself(interface),
        Some(interface) => match radio(&interface) {
            Ok(Some(radio)) => Egress::Radio(radio),
            _ => Egress::Wire(interface),
        },
    }
}

/// A way and a distance, judged.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// How frames leave.
    pub egress: Egress,
    /// The interface that they leave through.
    pub found: Option<Interface>,
    /// The distance that was given, in metres.
    pub distance: Option<f64>,
    /// The largest distance that the round trip allows, in metres.
    pub most: Option<f64>,
}

impl Judgement {
    /// The interface that frames leave through.
    pub fn interface(&self) -> Option<&str> {
        interface(&self.egress)
    }

    /// The card that they leave through.
    pub fn radio(&self) -> Option<&Radio> {
        match &self.egress {
            Egress::Radio(radio) => Some(radio),
            _ => None,
        }
    }

    /// The least class for the distance that was given.
    pub fn needed(&self) -> Option<u8> {
        class_for(self.distance?)
    }

    /// Whether the card waits long enough.
    pub fn verdict(&self) -> Verdict {
        let Some(radio) = self.radio() else {
            return Verdict::None;
        };
        match (self.distance, self.most) {
            (Some(distance), _) if distance > radio.reach() => Verdict::TooSmall {
                needed: self.needed(),
            },
            (Some(distance), _) => match class_for(distance) {
                Some(needed) if u32::from(radio.coverage_class - needed) * CLASS_US > SLOT_US => {
                    Verdict::Stretches { needed }
                }
                _ => Verdict::Enough,
            },
            (None, Some(most)) if most <= radio.reach() => Verdict::Enough,
            (None, _) => Verdict::Unclear,
        }
    }

    /// Whether something should be done about the card.
    pub fn is_bad(&self) -> bool {
        let verdict = self.verdict();
        matches!(
            verdict,
            Verdict::TooSmall { .. } | Verdict::Stretches { .. }
        )
    }

    /// Why frames do not leave this host, or not whole, for packets of up to `path_mtu` octets.
    pub(crate) fn obstacle(&self, path_mtu: usize) -> Option<String> {
        if matches!(self.egress, Egress::NoRoute(_) | Egress::Itself(_)) {
            return Some(self.to_string());
        }
        let found = self.found.as_ref()?;
        let (name, mtu) = (&found.name, found.mtu);
        match (found.up, found.running) {
            (false, _) => Some(format!("{name} is down: `ip link set {name} up`")),
            (true, false) => Some(format!(
                "{name} has no carrier: no cable, no association, or nobody at the other end"
            )),
            (true, true) if mtu < path_mtu => Some(format!(
                "{name} takes packets of {mtu} octets and `path_mtu` is {path_mtu}, so that full frames travel in pieces or not at all: write path_mtu = {mtu} at both ends"
            )),
            (true, true) => None,
        }
    }
}

impl Verdict {
    /// One word, or two.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::None => "no radio",
            Verdict::Enough => "enough",
            Verdict::TooSmall { .. } => "too small",
            Verdict::Stretches { .. } => "too large",
            Verdict::Unclear => "unclear",
        }
    }
}

/// A sentence that says what to do.
impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let radio = match &self.egress {
            Egress::Unknown => return f.write_str("it has no address yet"),
            Egress::NoRoute(why) => {
                return write!(
                    f,
                    "{why}; give its address a route: `ip route` shows those that there are"
                );
            }
            Egress::Itself(device) => {
                return write!(
                    f,
                    "the route to its endpoint leads into {device}, the link itself: take the endpoint out of `networks`, or give it a route of its own"
                );
            }
            Egress::Wire(interface) => {
                return write!(
                    f,
                    "{interface} is wired or virtual: a radio behind it has its own settings"
                );
            }
            Egress::Radio(radio) => radio,
        };
        let (class, phy) = (radio.coverage_class, &radio.phy);
        let distance = self.distance.unwrap_or(0.0);
        match self.verdict() {
            Verdict::TooSmall { needed: None } => write!(
                f,
                "this link needs {}, more than Linux' last coverage class (255, 114.75 km): no card waits that long; send without acknowledgement",
                Metres(distance)
            ),
            Verdict::TooSmall {
                needed: Some(needed),
            } => write!(
                f,
                "coverage class {class} reaches {}; this link of {} needs {needed}: `iw phy {phy} set coverage {needed}`, at both ends; until then every frame is taken for lost and sent again{}",
                Metres(radio.reach()),
                Metres(distance),
                if radio.can_estimate {
                    " (unless the driver measures by itself: `set distance auto`)"
                } else {
                    ""
                }
            ),
            Verdict::Stretches { needed } => write!(
                f,
                "coverage class {class} makes every slot {} us longer; this link of {} needs {needed} only: `iw phy {phy} set coverage {needed}`, at both ends",
                u32::from(class) * CLASS_US,
                Metres(distance)
            ),
            Verdict::Unclear => {
                write!(
                    f,
                    "coverage class {class} reaches {}; ",
                    Metres(radio.reach())
                )?;
                if let Some(most) = self.most {
                    write!(
                        f,
                        "by its round trip the peer may be up to {} away; ",
                        Metres(most)
                    )?;
                }
                f.write_str("`distance = \"...\"` in the file tells whether that is enough")
            }
            Verdict::Enough | Verdict::None => write!(
                f,
                "coverage class {class} of {phy} reaches {}: enough",
                Metres(radio.reach())
            ),
        }
    }
}

/// A distance for people.
struct Metres(f64);

impl fmt::Display for Metres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            metres if metres < 1e3 => write!(f, "{metres:.0} m"),
            metres if metres < 1e4 => write!(f, "{:.2} km", metres / 1e3),
            metres => write!(f, "{:.0} km", metres / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(class: u8, distance: Option<f64>, most: Option<f64>) -> Judgement {
        Judgement {
            egress: Egress::Radio(Radio {
                interface: "wlan0".into(),
                phy: "phy0".into(),
                coverage_class: class,
                can_estimate: false,
            }),
            found: None,
            distance,
            most,
        }
    }

    /// Goal: a card that gives up too early is told, with the command that mends it.
    #[test]
    fn a_small_coverage_class_is_reported() {
        let judged = judged(3, Some(20e3), Some(3e6));
        assert_eq!(judged.verdict(), Verdict::TooSmall { needed: Some(45) });
        let said = judged.to_string();
        assert!(
            said.starts_with("coverage class 3 reaches 1.35 km; this link of 20 km needs 45: `iw phy phy0 set coverage 45`"),
            "{said}"
        );
    }

    /// Goal: the verdict's borders: a class that just reaches, slots of twice their length, no class at all, and a round trip that
    /// proves nothing or all.
    #[test]
    fn verdicts_change_at_the_right_distances() {
        let verdict = |class, distance, most| judged(class, distance, most).verdict();
        assert_eq!(verdict(45, Some(20_250.0), None), Verdict::Enough);
        assert_eq!(verdict(48, Some(20_250.0), None), Verdict::Enough);
        let stretched = Verdict::Stretches { needed: 45 };
        assert_eq!(verdict(49, Some(20_250.0), None), stretched);
        let none = Verdict::TooSmall { needed: None };
        assert_eq!(verdict(255, Some(115e3), None), none);
        assert_eq!(verdict(3, None, Some(1_350.0)), Verdict::Enough);
        assert_eq!(verdict(3, None, Some(1_351.0)), Verdict::Unclear);
        assert_eq!(verdict(3, None, None), Verdict::Unclear);
        for wire in [Egress::Wire("eth0".into()), Egress::Unknown] {
            let judgement = Judgement {
                egress: wire,
                ..judged(0, Some(20e3), None)
            };
            assert_eq!(judgement.verdict(), Verdict::None);
            assert!(!judgement.is_bad());
        }
    }

    /// Goal: what keeps frames here, or cuts them, is told; what does not, is not.
    #[test]
    fn conditions_that_block_frames_are_reported() {
        let interface = |mtu, up, running| Interface {
            name: "eth0".into(),
            index: 2,
            mtu,
            hardware: [0; 6],
            ipv4: None,
            up,
            running,
        };
        let reported = |egress, found| {
            let judgement = Judgement {
                egress,
                found,
                ..Judgement::default()
            };
            judgement.obstacle(1500).unwrap_or_default()
        };
        let wire = |mtu, up, running| {
            let found = Some(interface(mtu, up, running));
            reported(Egress::Wire("eth0".into()), found)
        };
        assert!(wire(1400, true, true).contains("path_mtu = 1400"));
        assert_eq!(wire(1500, true, true), "");
        assert!(wire(1500, false, false).contains("set eth0 up"));
        assert!(wire(1500, true, false).contains("no carrier"));
        assert!(reported(Egress::Itself("chappe0".into()), None).contains("the link itself"));
        assert!(reported(Egress::NoRoute("cannot".into()), None).contains("ip route"));
        assert_eq!(reported(Egress::Unknown, None), "");
    }
}
