//! The driver's hellos, those of a copy of this process, and how long the driver's own frames are.

use chappe_core::{Duration, Instant, LinkNode, Outcome};
use chappe_sys::Result;

use super::Live;
use super::outgoing::{Outgoing, Seal};
use crate::copy;
use crate::echo::ECHO;
use crate::frame::{EPOCH, Header, Kind, STAMP};
use crate::hello;
use crate::queue::Target;

/// A node that sent no broadcast for this long is silent.
const SILENT: Duration = Duration::from_secs(1);

impl<N: LinkNode + ?Sized> Live<N> {
    /// Begins another life if a frame of this node's name and life shows that a [copy](crate::copy) of this process runs.
    pub(super) fn look_for_copy(
        &mut self,
        now: Instant,
        header: &Header,
        frame: &[u8],
    ) -> Result<()> {
        let soon = self.anew.is_some_and(|last| now < last + copy::AGAIN);
        if soon || !copy::is_ahead(&self.sealer, &self.neighbours, header, frame) {
            return Ok(());
        }
        let (epoch, first) = copy::another_life(chappe_sys::random_key()?, frame);
        self.anew = Some(now);
        self.statistics.copies += 1;
        self.statistics.life = epoch;
        // What waits is sealed under the old keys.
        while let Some(slot) = self.queue.first() {
            let token = slot.broadcast;
            self.queue.pop();
            if let Some(token) = token {
                self.report_outcome(now, token, Outcome::Failed { attempts: 0 });
            }
        }
        self.sealer.begin_anew(epoch, first);
        self.neighbours.begin_anew(epoch);
        self.renewed = now;
        self.schedule.answer_soon();
        Ok(())
    }

    /// Makes the driver's own frames (hellos, pieces of the list of members) for SDUs of at most `sdu` octets, between two runs: there
    /// are members to whom longer ones do not come. The node sees to its own frames.
    pub fn limit(&mut self, sdu: usize) {
        self.own_max = sdu.min(self.frame_max);
        if self.notice.0.is_some() {
            // Its pieces have another length from now on.
            self.notice.0 = Some(0);
        }
    }

    /// Sends a hello if one is due. While the node is silent, hellos are as long as its data would be: neighbours measure
    /// the delivery ratio by them.
    pub(super) fn send_hello(&mut self, now: Instant) {
        if self.schedule.next() > now {
            return;
        }
        let Some(slot) = self.queue.vacant() else {
            return;
        };
        let clear = Kind::Hello.clear();
        let room = self.own_max.saturating_sub(EPOCH + STAMP);
        let Some(body) = slot.frame.get_mut(clear..clear + room) else {
            return;
        };
        let counter = self.sealer.next_broadcast();
        let len = self.neighbours.write_hello(now, counter, body);
        let silent = |last: Instant| now.saturating_since(last) > SILENT;
        let usual = !self.echoes || !self.ears.are_due(now);
        let silent = usual && self.broadcast_at.is_none_or(silent);
        let whole = self.schedule.length(len, room, silent);
        body[len..whole].fill(0);
        let len = whole;
        let frame = Outgoing::control(Seal::Broadcast(Kind::Hello), Target::Broadcast);
        if self.seal_and_queue(now, len, frame) {
            self.statistics.hellos_sent += 1;
        }
        self.schedule.sent(now, self.apart(len));
    }

    /// How far apart hellos of that length are, if others ask for them.
    fn apart(&self, len: usize) -> Duration {
        let members = self.statistics.neighbours.len() + 1;
        let around = Kind::Hello.clear() + ECHO + Kind::Hello.trailer();
        let apart = |rate| hello::apart(rate, members, len + around);
        self.shared.map_or(Duration::ZERO, apart)
    }
}
