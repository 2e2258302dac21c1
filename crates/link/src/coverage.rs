//! The egress interface of a peer's frames, and whether its 802.11 card waits long enough for the distance.
//!
//! A round trip only bounds the distance from above, because programs and queues take longer than light. So a warning needs
//! a configured distance. A round trip can only confirm that a card waits long enough.

use std::fmt;

use chappe_core::{Duration, Instant};
use chappe_sys::wireless::{Radio, class_for, radio};
use chappe_sys::{Endpoint, Interface, Links};

use crate::carrier::Carrier;

/// Microseconds by which each coverage class lengthens slots and ACK timeouts (IEEE 802.11-2020, 9.4.2.8).
const CLASS_US: u32 = 3;
/// The 802.11 slot time at 5 GHz in microseconds (IEEE 802.11-2020, table 17-21). Excess waiting above it doubles the
/// length of a slot.
const SLOT_US: u32 = 9;
/// Interval between looks at routes and cards, which rarely change.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How a peer's frames leave this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// The peer has no address yet.
    #[default]
    Unknown,
    /// There is no route to the peer; the value is the kernel's error.
    NoRoute(String),
    /// The route leads into the TUN device of this tunnel, a loop. The value is the device.
    Itself(String),
    /// Through a wired or virtual interface. A radio behind it has separate settings.
    Wire(String),
    /// Through an 802.11 card of this host.
    Radio(Radio),
}

/// Whether a card's ACK timeout fits the distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Frames do not leave through an 802.11 card.
    None,
    /// The card waits long enough.
    Enough,
    /// The card gives up too early.
    TooSmall {
        /// The smallest sufficient coverage class; `None` if Linux has none for the distance.
        needed: Option<u8>,
    },
    /// The card waits so much longer than needed that slots have at least twice their length.
    Stretches {
        /// The smallest sufficient coverage class.
        needed: u8,
    },
    /// The distance is unknown, and the round trip does not decide.
    Unclear,
}

/// The egress and distance of a peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    egress: Egress,
    /// A snapshot of the egress interface.
    found: Option<Interface>,
    /// The configured distance in metres.
    pub distance: Option<f64>,
    /// When to look again; zero before the first look.
    look_at: Instant,
}

impl Coverage {
    /// Looks up the egress and the driver's coverage class anew if it is time. `share` is the part of the usual interval
    /// between the first two looks, so that the looks of many peers spread out.
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

    /// Judges a peer whose round trip allows at most `most` metres.
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

/// The egress of a peer's frames beside its distance. `Display` says what to do.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// The egress of the peer's frames.
    pub egress: Egress,
    /// A snapshot of the egress interface.
    pub found: Option<Interface>,
    /// The configured distance in metres.
    pub distance: Option<f64>,
    /// The upper bound on the distance from the least round trip, in metres.
    pub most: Option<f64>,
}

impl Judgement {
    /// The name of the egress interface.
    pub fn interface(&self) -> Option<&str> {
        interface(&self.egress)
    }

    /// The 802.11 card of the egress, if it is one.
    pub fn radio(&self) -> Option<&Radio> {
        match &self.egress {
            Egress::Radio(radio) => Some(radio),
            _ => None,
        }
    }

    /// The smallest coverage class for the configured distance.
    pub fn needed(&self) -> Option<u8> {
        class_for(self.distance?)
    }

    /// Whether the card's ACK timeout fits the distance.
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

    /// Whether the card's coverage class should be changed.
    pub fn is_bad(&self) -> bool {
        let verdict = self.verdict();
        matches!(
            verdict,
            Verdict::TooSmall { .. } | Verdict::Stretches { .. }
        )
    }

    /// Why frames do not leave this host, or only in fragments, for packets of up to `path_mtu` octets.
    pub(crate) fn obstacle(&self, path_mtu: usize) -> Option<String> {
        if matches!(self.egress, Egress::NoRoute(_) | Egress::Itself(_)) {
            return Some(self.to_string());
        }
        let found = self.found.as_ref()?;
        let (name, mtu) = (&found.name, found.mtu);
        match (found.up, found.running) {
            (false, _) => Some(format!("{name} is down: `ip link set {name} up`")),
            (true, false) => Some(format!(
                "{name} has no carrier: check the cable, the association, or the other end"
            )),
            (true, true) if mtu < path_mtu => Some(format!(
                "the MTU of {name} is {mtu} and `path_mtu` is {path_mtu}, so full frames are fragmented or dropped: write path_mtu = {mtu} on both hosts"
            )),
            (true, true) => None,
        }
    }
}

impl Verdict {
    /// The verdict in one or two words.
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

/// A sentence with the judgement and what to do.
impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let radio = match &self.egress {
            Egress::Unknown => return f.write_str("the peer has no address yet"),
            Egress::NoRoute(why) => {
                return write!(
                    f,
                    "{why}; add a route to the peer's address (`ip route` lists the routes)"
                );
            }
            Egress::Itself(device) => {
                return write!(
                    f,
                    "the route to the peer's endpoint leads into {device}, the link itself: remove the endpoint from `networks`, or add a separate route to it"
                );
            }
            Egress::Wire(interface) => {
                return write!(
                    f,
                    "{interface} is wired or virtual: check the settings of any radio behind it"
                );
            }
            Egress::Radio(radio) => radio,
        };
        let (class, phy) = (radio.coverage_class, &radio.phy);
        let distance = self.distance.unwrap_or(0.0);
        match self.verdict() {
            Verdict::TooSmall { needed: None } => write!(
                f,
                "this link spans {}, more than Linux' last coverage class (255, 114.75 km) covers: no card waits that long; disable acknowledgements",
                Metres(distance)
            ),
            Verdict::TooSmall {
                needed: Some(needed),
            } => write!(
                f,
                "coverage class {class} reaches {}; this link of {} needs {needed}: run `iw phy {phy} set coverage {needed}` on both hosts; until then the card repeats every frame{}",
                Metres(radio.reach()),
                Metres(distance),
                if radio.can_estimate {
                    " (unless the driver estimates the distance: `set distance auto`)"
                } else {
                    ""
                }
            ),
            Verdict::Stretches { needed } => write!(
                f,
                "coverage class {class} makes every slot {} us longer; this link of {} only needs {needed}: run `iw phy {phy} set coverage {needed}` on both hosts",
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
                        "by the round trip the peer may be up to {} away; ",
                        Metres(most)
                    )?;
                }
                f.write_str("set `distance = \"...\"` in the file to check whether that is enough")
            }
            Verdict::Enough | Verdict::None => write!(
                f,
                "coverage class {class} of {phy} reaches {}: enough",
                Metres(radio.reach())
            ),
        }
    }
}

/// A distance in readable units.
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

    /// Goal: a card that gives up too early is reported, with the command that corrects it.
    #[test]
    fn a_small_coverage_class_is_reported() {
        let judged = judged(3, Some(20e3), Some(3e6));
        assert_eq!(judged.verdict(), Verdict::TooSmall { needed: Some(45) });
        let said = judged.to_string();
        assert!(
            said.starts_with("coverage class 3 reaches 1.35 km; this link of 20 km needs 45: run `iw phy phy0 set coverage 45`"),
            "{said}"
        );
    }

    /// Goal: the limits of the verdicts: a class that just reaches, slots of twice their length, no sufficient class, and a
    /// round trip that is or is not conclusive.
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

    /// Goal: conditions that block or fragment frames are reported, and no others.
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
