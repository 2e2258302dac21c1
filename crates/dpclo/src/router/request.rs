//! Requests for newer sequence numbers (RFC 8966, 3.8.1.2 and 3.8.2.1).
//!
//! A node that has unfeasible routes only asks the neighbour with the best of them. Neighbours pass the request on along
//! their routes, until a node has a route that is new enough, or the destination itself increases its number. The route then
//! comes back in updates, which are not delayed.

use chappe_core::{Address, Class, Duration, Instant, LinkSend};

use super::send::NO_TOKEN;
use super::{Router, address};
use crate::distance::newer;
use crate::header::Request;

/// Requests that wait for the link. A starved node asks again, so that one that finds no room is only late.
pub(super) const WAITING_MAX: usize = 8;

/// Time until an unanswered request is repeated, to the next best neighbour; and the time for which a node does not pass the
/// same request on again. RFC 8966, appendix B, has an initial timeout of 2 s, doubled at each of three repetitions, and sends
/// to all neighbours at once; ours go to one, so they are repeated at the same pace without end.
const REPEAT: Duration = Duration::from_secs(2);

/// A request for one neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub to: u16,
    pub request: Request,
}

impl Router {
    /// Requests newer numbers for the destinations that are starved, those that were not asked for lately.
    pub(super) fn ask(&mut self, now: Instant) {
        for at in 0..self.routes.starved().len() {
            let Some(&place) = self.routes.starved().get(at) else {
                return;
            };
            let Some(known) = self.routes.get_mut(place) else {
                continue;
            };
            let seq = known.wanted();
            if !known.on_request(now, seq, REPEAT) {
                continue;
            }
            let request = Request {
                hop_limit: self.settings.routing.hop_limit,
                destination: known.node,
                seq,
            };
            self.asked = self.asked.wrapping_add(1);
            if self.pass(place, request, self.asked, None) {
                self.counters.requests_sent += 1;
            }
        }
    }

    /// Hands a request to the neighbour with the `n`-th best route. False if there is none.
    fn pass(&mut self, place: u16, request: Request, n: u8, except: Option<u8>) -> bool {
        let neighbour = self.routes.nth_route(place, n, &self.links, except);
        let link = neighbour.and_then(|neighbour| self.links.get(neighbour));
        let Some(to) = link.map(|link| link.node) else {
            return false;
        };
        if self.requests.len() >= WAITING_MAX {
            return false;
        }
        self.requests.push(Waiting { to, request });
        true
    }

    /// Handles a neighbour's request.
    pub(super) fn on_request(&mut self, now: Instant, from: u16, request: Request) {
        self.counters.requests_heard += 1;
        if request.destination == self.me {
            // By one step, not to the number that is requested, which may be false (RFC 8966, 3.8.1.2).
            if newer(request.seq, self.seq) {
                self.seq = self.seq.wrapping_add(2);
            }
            return self.request_update(now, Duration::ZERO);
        }
        let Some(place) = self.routes.find(request.destination) else {
            return;
        };
        let Some(known) = self.routes.get_mut(place) else {
            return;
        };
        if known.reaches(request.seq) {
            known.changed = true;
            return self.request_update(now, Duration::ZERO);
        }
        let fresh = known.on_request(now, request.seq, REPEAT);
        if !fresh || request.hop_limit <= 1 {
            return;
        }
        known.await_number(request.seq);
        let request = Request {
            hop_limit: request.hop_limit - 1,
            ..request
        };
        let except = self.links.find(from);
        if self.pass(place, request, 0, except) {
            self.counters.requests_sent += 1;
        }
    }

    /// Writes the oldest waiting request.
    pub(super) fn write_request(&mut self, sdu: &mut [u8]) -> Option<LinkSend> {
        if self.requests.is_empty() {
            return None;
        }
        let waiting = self.requests.remove(0);
        let to: Address = address(waiting.to);
        let len = waiting.request.emit(sdu)?;
        Some(LinkSend {
            to,
            len,
            class: Class::Control,
            mode: None,
            token: NO_TOKEN,
        })
    }
}
