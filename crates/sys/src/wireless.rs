//! 802.11 cards: the coverage class of their drivers, read through nl80211.
//!
//! A card that stops waiting for an ACK before the signal can have returned takes every frame for lost. It repeats each
//! frame up to the retry limit, which wastes most of the airtime. The *coverage class* sets how long a card waits: each
//! step adds 3 us of round trip, 450 m (IEEE 802.11-2020, 9.4.2.8; `iw` sets it). The numbers of commands and attributes
//! are those of linux/nl80211.h. Reading needs no privilege. The kernel reports whether a driver could estimate the
//! distance by itself (dynack), but not whether it does.

use std::io;

use crate::Links;
use crate::error::{Error, Result};
use crate::netlink::{Message, Netlink, Request, attributes, name, number};

/// The settings of an 802.11 interface's driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Radio {
    /// The interface's name, such as "wlan0".
    pub interface: String,
    /// The card's name as in `iw phy`, such as "phy0".
    pub phy: String,
    /// The coverage class, in steps of 450 m.
    pub coverage_class: u8,
    /// Whether the driver can estimate the ACK timeout by itself (`iw phy phy0 set distance auto`). Whether it does is
    /// not readable.
    pub can_estimate: bool,
}

/// Metres for each coverage class: 3 us of round trip.
pub const METRES_OF_A_CLASS: f64 = 450.0;
/// Metres for coverage class 0: 1 us of round trip (IEEE 802.11-2020, 9.4.2.8).
const METRES_OF_CLASS_0: f64 = 150.0;

impl Radio {
    /// The largest distance of the peer in metres.
    pub fn reach(&self) -> f64 {
        reach(self.coverage_class)
    }
}

/// The largest distance of the peer for a coverage class, in metres.
pub fn reach(class: u8) -> f64 {
    match class {
        0 => METRES_OF_CLASS_0,
        class => f64::from(class) * METRES_OF_A_CLASS,
    }
}

/// The smallest coverage class for a distance in metres; `None` beyond 114.75 km, which Linux' last class (255) covers.
pub fn class_for(metres: f64) -> Option<u8> {
    (0..=u8::MAX).find(|&class| reach(class) >= metres)
}

/// The 802.11 interfaces of this namespace, in the kernel's order; empty on a kernel without 802.11.
pub fn radios() -> Result<Vec<Radio>> {
    let failed = |error| Error::new("ask the 802.11 drivers (nl80211)", error);
    let netlink = Netlink::open_generic().map_err(failed)?;
    let Some(family) = family(&netlink, "nl80211").map_err(failed)? else {
        return Ok(Vec::new());
    };
    let dump = |command| Request::new(family, libc::NLM_F_DUMP).command(command);
    let interfaces = netlink.query(dump(GET_INTERFACE)).map_err(failed)?;
    if interfaces.is_empty() {
        return Ok(Vec::new());
    }
    // A split dump: the reply of a card with many channels does not fit into one message.
    let phys = dump(GET_WIPHY).put(SPLIT_WIPHY_DUMP, &[]);
    let phys = netlink.query(phys).map_err(failed)?;
    Ok(read(&interfaces, &phys))
}

/// The 802.11 settings of an interface; `None` if it is wired or virtual. A bridge or VLAN over a radio is virtual.
pub fn radio(interface: &str) -> Result<Option<Radio>> {
    let mut radios = radios()?.into_iter();
    Ok(radios.find(|radio| radio.interface == interface))
}

/// The prefix of the alias that marks an interface as leading to a radio although it is no 802.11 card: an emulated
/// radio, or a bridge, VLAN or cable towards a real one (`ip link set DEV alias radio`).
pub const ALIAS: &str = "radio";

/// Whether frames through this interface use shared airtime: it is an 802.11 card, or its alias begins with [`ALIAS`].
pub fn is_radio(interface: &str) -> bool {
    is_named_radio(interface) || is_card(interface)
}

/// Whether this interface is no 802.11 card, and its alias says that it leads to a radio ([`ALIAS`]).
pub fn leads_to_radio(interface: &str) -> bool {
    is_named_radio(interface) && !is_card(interface)
}

fn is_named_radio(interface: &str) -> bool {
    let alias = Links::open().and_then(|links| links.alias(interface));
    alias.is_ok_and(|alias| alias.is_some_and(|alias| alias.starts_with(ALIAS)))
}

fn is_card(interface: &str) -> bool {
    radio(interface).is_ok_and(|radio| radio.is_some())
}

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// The commands of nl80211 in use.
const GET_WIPHY: u8 = 1;
const GET_INTERFACE: u8 = 5;

/// The attributes of nl80211 in use.
const WIPHY: u16 = 1;
const WIPHY_NAME: u16 = 2;
const IFNAME: u16 = 4;
const WIPHY_COVERAGE_CLASS: u16 = 89;
const FEATURE_FLAGS: u16 = 143;
const SPLIT_WIPHY_DUMP: u16 = 174;

/// The driver can estimate the time of acknowledgements (NL80211_FEATURE_ACKTO_ESTIMATION).
const ACKTO_ESTIMATION: u32 = 1 << 23;

/// Octets of `struct genlmsghdr`.
const COMMAND: usize = 4;

/// The number that a family has on this machine now.
fn family(netlink: &Netlink, name: &str) -> io::Result<Option<u16>> {
    let request = Request::new(GENL_ID_CTRL, 0)
        .command(CTRL_CMD_GETFAMILY)
        .put_name(CTRL_ATTR_FAMILY_NAME, name);
    let messages = match netlink.query(request) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        messages => messages?,
    };
    let id = messages.iter().find_map(|message| {
        let value = attribute(message, CTRL_ATTR_FAMILY_ID)?;
        value.try_into().ok().map(u16::from_ne_bytes)
    });
    id.map(Some)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn attribute(message: &Message, kind: u16) -> Option<&[u8]> {
    let body = message.body.get(COMMAND..)?;
    attributes(body)
        .find(|(found, _)| *found == kind)
        .map(|(_, value)| value)
}

/// Joins the interfaces with the split messages about their cards. Interfaces without a name or a card are omitted.
fn read(interfaces: &[Message], phys: &[Message]) -> Vec<Radio> {
    let of_phy = |phy: u32, kind: u16| {
        let parts = phys
            .iter()
            .filter(move |part| attribute(part, WIPHY).and_then(number) == Some(phy));
        parts
            .into_iter()
            .find_map(move |part| attribute(part, kind))
    };
    let radio = |interface: &Message| {
        let phy = attribute(interface, WIPHY).and_then(number)?;
        let flags = of_phy(phy, FEATURE_FLAGS).and_then(number).unwrap_or(0);
        Some(Radio {
            // A monitor or P2P device may have no interface.
            interface: name(attribute(interface, IFNAME)?),
            phy: of_phy(phy, WIPHY_NAME).map(name)?,
            coverage_class: *of_phy(phy, WIPHY_COVERAGE_CLASS)?.first()?,
            can_estimate: flags & ACKTO_ESTIMATION != 0,
        })
    };
    interfaces.iter().filter_map(radio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::read as pieces;

    /// A message as the kernel lays it out: `nlmsghdr`, `genlmsghdr`, attributes padded to four octets.
    fn message(kind: u16, command: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![command, 1, 0, 0];
        for (kind, value) in attributes {
            body.extend((value.len() as u16 + 4).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut octets = (body.len() as u32 + 16).to_ne_bytes().to_vec();
        octets.extend(kind.to_ne_bytes());
        octets.extend(2u16.to_ne_bytes()); // NLM_F_MULTI
        octets.extend([0; 8]);
        octets.extend(body);
        octets
    }

    fn messages(octets: &[&[u8]]) -> Vec<Message> {
        let done = [
            20u32.to_ne_bytes(),
            3u32.to_ne_bytes(),
            [0; 4],
            [0; 4],
            [0; 4],
        ]
        .concat();
        let mut read = Vec::new();
        let all = [&octets.concat(), &done[..]].concat();
        assert!(pieces(&all, &mut read).unwrap());
        read
    }

    /// Goal: cards are found behind their interfaces. Method: messages as nl80211_send_iface and nl80211_send_wiphy (which splits
    /// a card over several messages) lay them out, by linux/nl80211.h: no radio is needed.
    #[test]
    fn split_card_messages_are_joined() {
        let zero = 0u32.to_ne_bytes();
        let one = 1u32.to_ne_bytes();
        let interface = |phy: &[u8], name: &[u8]| {
            message(
                28,
                7,
                &[(3, &7u32.to_ne_bytes()), (4, name), (WIPHY, phy), (5, &one)],
            )
        };
        let interfaces = messages(&[
            &interface(&zero, b"wlan0\0"),
            &interface(&one, b"wlan1\0"),
            // A card that went away in between, and a device without an interface.
            &interface(&9u32.to_ne_bytes(), b"wlan9\0"),
            &message(28, 7, &[(WIPHY, &zero), (0x99, &[0; 8])]),
        ]);
        let phys = messages(&[
            &message(
                28,
                3,
                &[
                    (WIPHY, &zero),
                    (WIPHY_NAME, b"phy0\0"),
                    (46, &one),
                    (61, &[7]),
                    (62, &[4]),
                    (63, &u32::MAX.to_ne_bytes()),
                    (64, &u32::MAX.to_ne_bytes()),
                    (WIPHY_COVERAGE_CLASS, &[3]),
                ],
            ),
            &message(
                28,
                3,
                &[
                    (WIPHY, &zero),
                    (WIPHY_NAME, b"phy0\0"),
                    (FEATURE_FLAGS, &(1u32 << 23 | 5).to_ne_bytes()),
                ],
            ),
            &message(
                28,
                3,
                &[
                    (WIPHY, &one),
                    (WIPHY_NAME, b"phy1\0"),
                    (WIPHY_COVERAGE_CLASS, &[45]),
                ],
            ),
        ]);
        let radio = |interface: &str, phy: &str, coverage_class, can_estimate| Radio {
            interface: interface.into(),
            phy: phy.into(),
            coverage_class,
            can_estimate,
        };
        assert_eq!(
            read(&interfaces, &phys),
            [
                radio("wlan0", "phy0", 3, true),
                radio("wlan1", "phy1", 45, false)
            ]
        );
        // Whatever is cut away, nothing is invented.
        for message in &phys {
            for cut in 0..message.body.len() {
                let short = Message {
                    body: message.body[..cut].to_vec(),
                    ..message.clone()
                };
                for radio in read(&interfaces, &[short]) {
                    assert!(radio.phy == "phy0" || radio.phy == "phy1", "{radio:?}");
                    assert!([3, 45].contains(&radio.coverage_class), "{radio:?}");
                }
            }
        }
    }

    #[test]
    fn each_coverage_class_adds_450_metres() {
        assert_eq!(reach(3), 1350.0);
        assert_eq!(class_for(0.0), Some(0));
        assert_eq!(class_for(20_000.0), Some(45));
        assert_eq!(class_for(1350.0), Some(3));
        assert_eq!(class_for(1350.1), Some(4));
        assert_eq!(class_for(114_750.0), Some(255));
        assert_eq!(class_for(114_751.0), None);
    }

    /// Goal: the kernel understands the requests. Method: the controller's own family, which every kernel has, has a fixed
    /// number; an unknown family has none. If the machine has radios, each has a name.
    #[test]
    fn the_kernel_answers_over_nl80211() {
        let netlink = Netlink::open_generic().unwrap();
        assert_eq!(family(&netlink, "nlctrl").unwrap(), Some(GENL_ID_CTRL));
        assert_eq!(family(&netlink, "chappe").unwrap(), None);
        for radio in radios().unwrap() {
            println!("{radio:?}");
            assert!(!radio.phy.is_empty() && !radio.interface.is_empty());
        }
        assert_eq!(radio("lo").unwrap(), None);
    }
}
