//! Frames out: ACKs first, then data as a source or as a relay.

use chappe_core::{Address, Class, Instant, LinkSend, TraceEvent};

use super::{Group, Kind, Node};
use crate::paper::relay::Relay;
use crate::paper::source::Source;

impl Node {
    /// Writes the next ACK, own or forwarded.
    pub(super) fn send_ack(&mut self, sdu: &mut [u8]) -> Option<LinkSend> {
        let out = self.acks.next()?;
        let len = out.ack.emit(sdu)?;
        let counters = &mut self.counters;
        let counter = match out.again {
            true => &mut counters.ack_resends,
            false if out.ack.id.receiver == self.me => &mut counters.acks_sent,
            false => &mut counters.acks_forwarded,
        };
        *counter += 1;
        //= pacifier V-B.2: ACKs are unicast at the MAC layer and prioritised over data
        Some(LinkSend {
            to: Address::node(out.next_hop),
            len,
            class: Class::Control,
            mode: None,
            token: Node::token(Kind::Ack, out.number),
        })
    }

    /// Writes the next data frame: the source and the groups take turns.
    pub(super) fn send_data(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        let parties = self.groups.len() + 1;
        for _ in 0..parties {
            let party = self.turn % parties;
            self.turn = (party + 1) % parties;
            let sent = match party.checked_sub(1) {
                None => self.send_as_source(now, sdu),
                Some(place) => self.send_as_relay(place, sdu),
            };
            let Some((kind, len)) = sent else { continue };
            self.counters.data_sent += 1;
            return Some(LinkSend {
                to: Address::BROADCAST,
                len,
                class: Class::Data,
                mode: Some(self.config.common.mode),
                token: Node::token(kind, self.tokens),
            });
        }
        None
    }

    fn send_as_source(&mut self, now: Instant, sdu: &mut [u8]) -> Option<(Kind, usize)> {
        let source = self.source.as_mut().filter(|source| source.ready())?;
        self.tokens = self.tokens.wrapping_add(1);
        let token = Node::token(Kind::Source, self.tokens);
        let turn = source.position().1;
        let len = source.write(now, token, sdu, &mut self.random, self.source_last_ack)?;
        self.counters.source_sent += 1;
        if source.position().1 != turn {
            self.counters.turns += 1;
            let (machine, from, to) = ("source", "batch", "spent");
            self.trace.push(TraceEvent::State { machine, from, to });
        }
        Some((Kind::Source, len))
    }

    fn send_as_relay(&mut self, place: usize, sdu: &mut [u8]) -> Option<(Kind, usize)> {
        let group = self.groups.get_mut(place)?;
        let relay = group.relay.as_mut().filter(|relay| relay.ready())?;
        let len = relay.write(sdu, &mut self.random, group.last_ack)?;
        self.counters.relay_sent += 1;
        Some((Kind::Relay, len))
    }

    /// Whether there are data to send.
    pub(super) fn data_waiting(&self) -> bool {
        let relay_ready = |group: &Group| group.relay.as_ref().is_some_and(Relay::ready);
        self.source.as_ref().is_some_and(Source::ready) || self.groups.iter().any(relay_ready)
    }
}
