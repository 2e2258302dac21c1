//! The gateway's part in a measurement: whom it calls, in which order.

use chappe_core::{Caps, Instant, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake};

use super::frame::{HEAD, Head, Heard};
use super::{Call, Errand, GUARD, Survey};
use crate::config::{Config, ConfigError};
use crate::sizes::FRAME_MAX;
use crate::timing::flood_slots;

/// Calls for a part of a report until the gateway does without: our choice.
const ASKED_MAX: u8 = 4;

/// Takes what the nodes report.
pub trait Ledger {
    /// Node `at` has heard another one.
    fn take(&mut self, at: u16, heard: Heard);
}

/// The node that measures a network. It counts beacons and sends them like every other one.
#[derive(Clone, Debug)]
pub struct Surveyor<L> {
    survey: Survey,
    ledger: L,
    /// Nodes are numbered from 0.
    nodes: u16,
    beacons: u8,
    hops: u8,
    number: u16,
    turn: Turn,
    /// When the answer to a call for a report can no longer come.
    patience: Instant,
    silent: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Before,
    Beacons {
        node: u16,
    },
    Report {
        node: u16,
        part: u8,
        asked: u8,
        came: Option<u8>,
    },
    Done,
}

impl<L: Ledger> Surveyor<L> {
    /// The gateway at node `number` of `nodes`, with so many beacons on each channel (15 at most), in a network of `hops` hops
    /// at most.
    pub fn new(
        config: Config,
        caps: &Caps,
        number: u16,
        (nodes, hops, beacons): (u16, u8, u8),
        ledger: L,
    ) -> Result<Surveyor<L>, ConfigError> {
        Ok(Surveyor {
            survey: Survey::new(config, caps, number)?,
            ledger,
            nodes,
            beacons: beacons.min(15),
            hops: hops.min(super::HOPS_MAX),
            number: 0,
            turn: Turn::Before,
            patience: Instant::ZERO,
            silent: 0,
        })
    }

    /// Starts a measurement: its first call leaves at `at`. The session must be greater than those before.
    pub fn start(&mut self, session: u32, at: Instant) {
        self.survey.open(session);
        (self.number, self.silent) = (0, 0);
        self.turn = Turn::Beacons { node: 0 };
        self.call(at);
    }

    /// Whether all nodes have been asked.
    pub fn is_done(&self) -> bool {
        self.turn == Turn::Done
    }

    /// Nodes from which a part of the report is missing.
    pub fn silent(&self) -> u16 {
        self.silent
    }

    /// The links that were reported.
    pub fn ledger(&self) -> &L {
        &self.ledger
    }

    /// The same, to take it away.
    pub fn into_ledger(self) -> L {
        self.ledger
    }

    fn call(&mut self, at: Instant) {
        let (node, errand) = match self.turn {
            Turn::Beacons { node } => (node, Errand::Beacons(self.beacons)),
            Turn::Report { node, part, .. } => (node, Errand::Report { part }),
            Turn::Before | Turn::Done => return,
        };
        // Call 0 is as good as any: a session's first number only has to be new.
        self.number = self.number.saturating_add(1);
        let call = Call {
            node,
            number: self.number,
            hops: self.hops,
            errand,
        };
        let session = self.survey.session;
        self.survey.begin(session, call, at);
        let (config, tag) = (&self.survey.config, self.survey.seal.tag_len());
        let slots = flood_slots(self.hops, config.flood_repeats);
        let (there, back) = (
            config.profile.slot(HEAD + tag),
            config.profile.slot(FRAME_MAX),
        );
        self.patience = at + (there + back) * slots + GUARD * 2;
    }

    /// The next call, once the last one is over and its answer had its time.
    fn next(&mut self, now: Instant) {
        self.turn = match self.turn {
            Turn::Before | Turn::Done => return,
            Turn::Beacons { node } if node + 1 < self.nodes => Turn::Beacons { node: node + 1 },
            Turn::Beacons { .. } => {
                let own = self.survey.number;
                self.survey
                    .heard()
                    .for_each(|heard| self.ledger.take(own, heard));
                self.ask(0)
            }
            Turn::Report {
                node,
                part,
                came: Some(parts),
                ..
            } if part + 1 < parts => Turn::Report {
                node,
                part: part + 1,
                asked: 1,
                came: None,
            },
            Turn::Report {
                node,
                came: Some(_),
                ..
            } => self.ask(node + 1),
            Turn::Report {
                node,
                part,
                asked,
                came: None,
            } if asked < ASKED_MAX => Turn::Report {
                node,
                part,
                asked: asked + 1,
                came: None,
            },
            Turn::Report { node, .. } => {
                self.silent += 1;
                self.ask(node + 1)
            }
        };
        self.call(now + GUARD);
    }

    /// The turn of the next node from `node` on that is not the gateway.
    fn ask(&self, node: u16) -> Turn {
        let node = if node == self.survey.number {
            node + 1
        } else {
            node
        };
        match node < self.nodes {
            true => Turn::Report {
                node,
                part: 0,
                asked: 1,
                came: None,
            },
            false => Turn::Done,
        }
    }

    /// Goes on if the last call is over.
    fn look(&mut self, now: Instant) {
        let over = match self.turn {
            Turn::Before | Turn::Done => false,
            Turn::Beacons { .. } | Turn::Report { came: Some(_), .. } => true,
            Turn::Report { .. } => self.patience <= now,
        };
        if over && self.survey.is_idle() {
            self.next(now);
        }
    }

    /// Takes in the part of a report that was asked for, once.
    fn read(&mut self, head: Head, psdu: &[u8]) {
        let Turn::Report { node, came, .. } = &mut self.turn else {
            return;
        };
        let ours = head.node == *node && head.number == self.number;
        if !ours || came.is_some() {
            return;
        }
        *came = Some(head.first);
        let end = psdu.len().saturating_sub(self.survey.seal.tag_len());
        let body = psdu.get(HEAD..end).unwrap_or_default();
        for heard in Heard::all(body, head.second) {
            self.ledger.take(head.node, heard);
        }
    }
}

impl<L: Ledger> RadioNode for Surveyor<L> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        match event {
            RadioEvent::Received(heard) => {
                if let Some(head) = self.survey.receive(now, &heard) {
                    self.read(head, heard.psdu);
                }
            }
            event => self.survey.handle_radio(now, event),
        }
        self.look(now);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.survey.poll_radio(now, psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.survey.handle_timeout(now);
        self.look(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let asks = matches!(self.turn, Turn::Report { came: None, .. });
        let why = "no report";
        let at = self.patience;
        let answer = (asks && self.survey.is_idle()).then_some(Wake { at, why });
        Wake::earlier(self.survey.poll_timeout(), answer)
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.survey.poll_trace()
    }
}
