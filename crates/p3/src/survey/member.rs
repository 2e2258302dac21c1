//! A node that takes part in measurements while it waits for a transfer.

use chappe_core::{
    Head, Instant, RadioEvent, RadioNode, RadioRequest, Reception, TraceEvent, Wake,
};

use super::Survey;

/// A [`Survey`] beside a node of transfers, on one radio. Each frame goes to the one that it is for, and the other rests: both
/// leave the radio listening on the channel of floods.
#[derive(Clone, Debug)]
pub struct Member<N> {
    node: N,
    survey: Survey,
    /// Whether the node waits for a transfer.
    waits: fn(&N) -> bool,
}

impl<N> Member<N> {
    /// Joins the two. `waits` reports whether the node waits for a plan.
    pub fn new(node: N, survey: Survey, waits: fn(&N) -> bool) -> Member<N> {
        Member {
            node,
            survey,
            waits,
        }
    }

    /// The node of transfers.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// The same, to be changed, such as by work ahead.
    pub fn node_mut(&mut self) -> &mut N {
        &mut self.node
    }

    /// Its part in measurements.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    fn is_measuring(&self, event: &RadioEvent<'_>) -> bool {
        let starts = match event {
            RadioEvent::Received(Reception { psdu, .. }) => Survey::takes(psdu),
            RadioEvent::Head(Head { octets, .. }) => Survey::takes(octets),
            RadioEvent::Carrier { .. } | RadioEvent::Failed(_) | RadioEvent::Sent => false,
        };
        !self.survey.is_idle() || starts && (self.waits)(&self.node)
    }
}

impl<N: RadioNode> RadioNode for Member<N> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        match self.is_measuring(&event) {
            true => self.survey.handle_radio(now, event),
            false => self.node.handle_radio(now, event),
        }
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        let survey = self.survey.poll_radio(now, psdu);
        survey.or_else(|| self.node.poll_radio(now, psdu))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.survey.handle_timeout(now);
        self.node.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Wake::earlier(self.survey.poll_timeout(), self.node.poll_timeout())
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.survey.poll_trace().or_else(|| self.node.poll_trace())
    }
}
