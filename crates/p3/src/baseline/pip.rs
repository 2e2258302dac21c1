//! PIP: one path, one channel per hop, a packet every second cycle.
//!
//! Source: B. Raman, K. Chebrolu, S. Bijwe, V. Gabale, "PIP: A Connection-Oriented, Multi-Hop, Multi-Channel
//! TDMA-based MAC for High Throughput Bulk Transfer", SenSys 2010, in the form in which the P³ paper runs it: the
//! frames, control messages and times of P³ with one relay per stage. So there is no machine of its own here: a
//! [`Plan`] with one path makes the relays one group and the source send in every second cycle. Its ceiling is half
//! of P³'s, 104.0 kbit/s of 118-octet packets.
//!
//! The paper's PIP takes one of P³'s paths at random and the same channels. The fairer one chooses path and channels
//! from the measured quality: [`planner::best_path`](crate::planner::best_path).

use chappe_core::Stream;

use crate::plan::{Plan, PlanError, Wanted};
use crate::timing::Profile;

/// PIP over this path, from the first relay to the last.
pub fn plan(
    wanted: Wanted,
    profile: &Profile,
    path: &[usize],
    random: &mut Stream,
) -> Result<Plan, PlanError> {
    // The only relay of the last stage sends, however bad its link is.
    Plan::from_paths(wanted, profile, &[path], random, 0.0, |_| 1.0)
}
