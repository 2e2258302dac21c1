//! The outcomes of a run: counted, mixed into the digest, and passed to the recorder.

use crate::arrival::Arrival;
use crate::digest::Digest;
use crate::frame::Frame;
use crate::id::NodeId;
use crate::reception::Interrupted;
use crate::{
    AirTime, Counters, Heard, Interference, Loss, NodeCounters, Position, Power, Receivers,
    Recorder, Sent, Switched,
};

/// Where all outcomes are booked.
#[derive(Debug)]
pub(crate) struct Ledger<R> {
    pub(crate) counters: Counters,
    pub(crate) digest: Digest,
    pub(crate) recorder: R,
}

/// A frame as one receiver met it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    pub(crate) node: NodeId,
    /// When its outcome was known, and when its first bit arrived.
    pub(crate) at: AirTime,
    pub(crate) started: AirTime,
    pub(crate) power: Power,
    /// All other power there when the outcome was known.
    pub(crate) others: Power,
}

impl<R: Recorder> Ledger<R> {
    pub(crate) fn new(nodes: usize, recorder: R) -> Ledger<R> {
        Ledger {
            counters: Counters {
                nodes: vec![NodeCounters::default(); nodes],
                ..Counters::default()
            },
            digest: Digest::default(),
            recorder,
        }
    }

    #[inline]
    pub(crate) fn node(&mut self, node: NodeId) -> &mut NodeCounters {
        &mut self.counters.nodes[node.index()]
    }

    /// A frame leaves its antenna for `arrivals` receivers. `vanished` signals were too weak to be followed, `cut` links
    /// carry none.
    pub(crate) fn sent(&mut self, frame: &Frame, arrivals: usize, [vanished, cut]: [u64; 2]) {
        self.digest.bytes(frame.psdu());
        let own = &mut self.counters.nodes[frame.source.index()];
        if frame.counts() {
            self.counters.lost.add(Loss::TooWeak, vanished);
            self.counters.lost.add(Loss::LinkCut, cut);
            self.counters.owed += arrivals as u64 + vanished + cut;
            self.counters.frames += 1;
            own.frames += 1;
        }
        own.octets += frame.octets as u64;
        own.airtime += frame.airtime;
    }

    /// Whether frames and their outcomes are reported. A constant where the recorder's type decides it.
    #[inline]
    pub(crate) fn reports_frames(&self) -> bool {
        R::FRAMES && self.recorder.wants_frames()
    }

    /// A radio was switched.
    pub(crate) fn report_switched(&mut self, at: AirTime, node: NodeId, to: Switched) {
        if self.reports_frames() {
            self.recorder.switched(at, node.index(), to);
        }
    }

    /// Whether frames that a receiver could not have received are reported too.
    #[inline]
    pub(crate) fn reports_unheard(&self) -> bool {
        self.reports_frames() && self.recorder.wants_unheard()
    }

    /// An idle radio missed a frame that is too weak to lock on to. The caller counts it.
    pub(crate) fn report_weak(&mut self, frame: &Frame, meeting: Meeting) {
        self.report(frame, meeting, Err(Loss::TooWeak));
    }

    /// The recorder hears of a frame that left its antenna.
    pub(crate) fn report_sent(&mut self, frame: &Frame) {
        if self.reports_frames() && frame.counts() {
            self.recorder.sent(&Sent {
                at: frame.begin,
                node: frame.source.index(),
                number: frame.number,
                psdu: frame.psdu(),
                mode: frame.mode,
                channel: frame.channel,
            });
        }
    }

    /// The recorder hears of a signal that is no frame of the network, from an interferer that stands at `place` or from a node.
    pub(crate) fn report_interference(
        &mut self,
        (frame, arrivals): (&Frame, &[Arrival]),
        place: Option<Position>,
    ) {
        if !self.reports_frames() || frame.counts() {
            return;
        }
        let burst = Interference {
            at: frame.begin,
            from: frame.source.index(),
            number: frame.number,
            airtime: frame.airtime,
            octets: frame.octets,
            channel: frame.channel,
            place,
        };
        let receivers = Receivers::new(frame.begin, arrivals);
        self.recorder.interfered(&burst, receivers);
    }

    /// A frame was lost at a receiver.
    #[inline]
    pub(crate) fn lose(&mut self, frame: &Frame, meeting: Meeting, why: Loss) {
        if frame.counts() {
            self.counters.lost.count(why);
        }
        // Most signals are too weak. The digest needs none of them: each follows from the frame's start, which is in it.
        if why != Loss::TooWeak {
            self.mix(frame, meeting, why as u64 + 2);
        }
        if self.reports_frames() && frame.counts() {
            self.report(frame, meeting, Err(why));
        }
    }

    /// A node's reception of a frame ended before the frame did. `energy` is all the power there.
    pub(crate) fn interrupt(
        &mut self,
        frame: &Frame,
        (node, at): (NodeId, AirTime),
        lost: Interrupted,
        energy: Power,
        why: Loss,
    ) {
        self.node(node).failures += 1;
        let meeting = Meeting {
            node,
            at,
            started: lost.started,
            power: lost.power,
            others: energy.minus(lost.power),
        };
        self.lose(frame, meeting, why);
    }

    /// A frame was received.
    #[inline]
    pub(crate) fn keep(&mut self, frame: &Frame, meeting: Meeting) {
        self.counters.receptions += 1;
        self.node(meeting.node).receptions += 1;
        self.mix(frame, meeting, 1);
        if self.reports_frames() {
            self.report(frame, meeting, Ok(()));
        }
    }

    #[inline]
    fn mix(&mut self, frame: &Frame, meeting: Meeting, outcome: u64) {
        let pair = frame.source.number() << 40 ^ meeting.node.number() << 24;
        // One word for one outcome: mixing is a multiplication, and this is the hot path.
        self.digest.mix(meeting.at.0 ^ pair ^ outcome << 58);
    }

    /// A radio that was off or on another channel missed a frame: in no digest, as it follows from the frame's start.
    #[inline]
    pub(crate) fn pass(&mut self, frame: &Frame, meeting: Meeting, why: Loss) {
        if frame.counts() {
            self.counters.lost.count(why);
            if self.reports_unheard() {
                self.report(frame, meeting, Err(why));
            }
        }
    }

    fn report(&mut self, frame: &Frame, meeting: Meeting, outcome: Result<(), Loss>) {
        self.recorder.heard(&Heard {
            at: meeting.at,
            node: meeting.node.index(),
            from: frame.source.index(),
            number: frame.number,
            psdu: frame.psdu(),
            mode: frame.mode,
            channel: frame.channel,
            started: meeting.started,
            power: meeting.power,
            interference: meeting.others,
            outcome,
        });
    }
}
