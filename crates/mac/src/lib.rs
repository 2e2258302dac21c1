//! Channel access: which node may send, and when.
//!
//! A MAC sits between a radio and a link node. It implements [`chappe_core::Mac`]; [`chappe_core::OverMac`] combines
//! the two into a radio node. The MAC asks the link node for a frame at the moment it can send it, so a coded packet
//! or an acknowledgement reflects everything received until then.
//!
//! ```
//! use chappe_core::{Address, OverMac, Purpose, Rate, Seed};
//! use chappe_mac::dot11::{Config, Dot11};
//! # use chappe_core::{Classes, Instant, LinkEvent, LinkNode, LinkSend, Wake};
//! # struct Relay;
//! # impl LinkNode for Relay {
//! #     fn handle_link(&mut self, _: Instant, _: LinkEvent<'_>) {}
//! #     fn pending(&self) -> Classes { Classes::NONE }
//! #     fn poll_link(&mut self, _: Instant, _: Classes, _: &mut [u8]) -> Option<LinkSend> { None }
//! #     fn handle_timeout(&mut self, _: Instant) {}
//! #     fn poll_timeout(&self) -> Option<Wake> { None }
//! # }
//! let config = Config { overhear: true, ..Config::dot11b(Rate::Dsss2) };
//! config.caps().need_frame(1500).unwrap();
//! let mac = Dot11::new(config, Address::node(3), Seed(1).stream(Purpose::Node(3)));
//! let node = OverMac::new(mac, Relay);
//! ```
//!
//! | module | method | for |
//! |---|---|---|
//! | [`dot11`] | the distributed coordination function (DCF) of IEEE 802.11 | 802.11b networks |
//! | [`dot11`] as [`dot11::Edca`] | its enhanced access (EDCA): four categories | priorities on such networks |
//! | [`dot11`] with [`Dot11::aggregating`](dot11::Dot11::aggregating) | A-MPDUs with block acknowledgements | 802.11n networks |
//! | [`dot11`] with [`RateControl`](dot11::RateControl) | Minstrel | links that differ |
//! | [`zmac`] | ZMAC+: bursts by priority, time slots among equals | DPCLO |
//! | [`dot15d4`] | unslotted CSMA-CA of IEEE 802.15.4, sleepy leaves, frame security | low-power networks |
//!
//! **Architecture invariant:** a MAC knows no medium and no protocol, keeps one deadline, and allocates nothing.

#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod dot11;
pub mod dot15d4;
pub mod zmac;
