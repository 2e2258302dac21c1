//! One run of a draft, and what is wrong with it.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use chappe::systems;
use chappe_core::SPEED_OF_LIGHT;
use chappe_lab::run::{Meter, Outcome, RunError};
use chappe_lab::system::{Job, System};
use chappe_results::{Flow, Run};
use chappe_scenario::{Network, Plan};

use crate::draft::Draft;

/// How a run went.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What is wrong with it, if anything is.
    pub wrong: Option<Wrong>,
    /// Receivers that got all.
    pub complete: u64,
    /// Why receivers did not, for each that did not.
    pub causes: Vec<&'static str>,
    /// Frames on the air.
    pub frames: u64,
    /// Frames that a node received.
    pub receptions: u64,
    /// Events of the simulator.
    pub events: u64,
    /// Seconds of virtual time.
    pub simulated_s: f64,
}

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The kind of it. Shrinking keeps the kind.
    pub kind: Kind,
    /// What happened, in a sentence or two.
    pub what: String,
}

/// What can be wrong with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The program panicked; the message says where.
    Panic,
    /// A frame has no outcome at a receiver, or two.
    Accounts,
    /// The program found another defect of its own, such as more goodput than the bound allows.
    Defect,
    /// A receiver took wrong octets for right, though no node got a frame that another had not sent so.
    WrongOctets,
    /// A receiver did not get its object, and nothing explains it.
    Stall,
    /// The result contradicts itself.
    Misreport,
    /// The same scenario and seed gave another result.
    NotRepeated,
    /// The run took more events than its budget has.
    Endless,
    /// The run failed after its scenario had been accepted.
    Refused,
}

impl Kind {
    /// Whether no run of any system and variant may do it, whatever is known of that system.
    pub fn is_sure(self) -> bool {
        matches!(
            self,
            Kind::Panic | Kind::Accounts | Kind::Misreport | Kind::NotRepeated
        )
    }
}

/// How carefully to look.
#[derive(Clone, Copy, Debug)]
pub struct Care {
    /// Whether to run twice and compare.
    pub repeats: bool,
    /// A run whose simulators handle more events is stopped. It counts what is to be done, not time, so a busy machine gives the same
    /// verdict.
    pub events: u64,
}

impl Default for Care {
    fn default() -> Care {
        Care {
            repeats: true,
            events: EVENTS_MAX,
        }
    }
}

/// The events of the longest run that is waited for.
const EVENTS_MAX: u64 = 100_000_000;

/// Receivers are waited for where links of this share lead to them, both ways.
const SURE_PRR: f64 = 0.5;

/// Receivers are waited for where at most this share of packets is lost on the way for good. The largest window of TCP is
/// `sqrt(8 / (3 p))` segments at a loss of `p` (Mathis, Semke, Mahdavi and Ott, 1997). Above 1/6 it holds fewer than the four
/// that three duplicate acknowledgements need, so each loss waits for a timeout, and the timeouts double.
const UNREPAIRED_MAX: f64 = 1.0 / 6.0;

/// Runs a draft and judges it.
pub fn judge(system: &System, draft: &Draft, care: Care) -> Verdict {
    let text = draft.text();
    let first = match run(system, &text, draft.seed, care) {
        Ok(ran) => ran,
        // The scenario was accepted, and told a mistake of its own only when it ran.
        Err(wrong) if wrong.kind == Kind::Refused => {
            return Verdict {
                causes: vec!["refused when it ran"],
                ..Verdict::default()
            };
        }
        Err(wrong) => return Verdict::of(wrong),
    };
    let mut verdict = look(draft, &first);
    if verdict.wrong.is_none() && care.repeats {
        verdict.wrong = match run(system, &text, draft.seed, care) {
            Ok(second) if same(&first.outcome.run, &second.outcome.run) => None,
            Ok(second) => Some(Wrong {
                kind: Kind::NotRepeated,
                what: format!(
                    "digest {} at first, then {}",
                    first.outcome.run.digest, second.outcome.run.digest
                ),
            }),
            Err(wrong) => Some(wrong),
        };
    }
    verdict
}

impl Verdict {
    fn of(wrong: Wrong) -> Verdict {
        Verdict {
            wrong: Some(wrong),
            ..Verdict::default()
        }
    }
}

/// A finished run with its network.
struct Ran {
    outcome: Outcome,
    plan: Plan,
    network: Network,
}

fn run(system: &System, text: &str, seed: u64, care: Care) -> Result<Ran, Wrong> {
    let meter = Meter::default().within(care.events);
    let result = caught(|| {
        let plan = Plan::parse(&systems::scenarios(), "storm.toml", text)?;
        let network = plan.network(seed)?;
        let job = Job {
            plan: &plan,
            network: network.clone(),
            copies: false,
            pcap: None,
            traces: None,
        };
        let outcome = (system.carry)(job, &meter)?;
        Ok(Ran {
            outcome,
            plan,
            network,
        })
    });
    let wrong = |kind, what: String| Err(Wrong { kind, what });
    match result {
        Err(message) => wrong(Kind::Panic, message),
        Ok(Ok(ran)) => Ok(ran),
        Ok(Err(RunError::Interrupted)) => {
            let events = care.events;
            wrong(Kind::Endless, format!("it took more than {events} events"))
        }
        Ok(Err(RunError::Input(error))) => wrong(Kind::Refused, error.message.clone()),
        Ok(Err(error)) => {
            let what = error.to_string();
            match what.contains("accounts do not balance") {
                true => wrong(Kind::Accounts, what),
                false => wrong(Kind::Defect, what),
            }
        }
    }
}

fn look(draft: &Draft, ran: &Ran) -> Verdict {
    let run = &ran.outcome.run;
    let mut verdict = Verdict {
        frames: run.counter("frames"),
        receptions: run.counter("receptions"),
        events: run.events,
        simulated_s: run.simulated_s,
        ..Verdict::default()
    };
    let falsified = draft.troubles.iter().any(|trouble| trouble.falsifies);
    for flow in &run.flows {
        let wrong = |kind, what: String| Some(Wrong { kind, what });
        let name = &flow.name;
        if let Some(what) = contradiction(flow, run) {
            verdict.wrong = wrong(Kind::Misreport, format!("{name}: {what}"));
        }
        match (flow.complete, flow.digest_ok) {
            (true, true) => verdict.complete += 1,
            (true, false) if falsified => {
                verdict.causes.push("wrong octets among falsified frames")
            }
            (true, false) => {
                let what = format!("{name} has a copy that is not the object");
                verdict.wrong = wrong(Kind::WrongOctets, what);
            }
            (false, _) => match cause(draft, ran, flow) {
                Some(cause) => verdict.causes.push(cause),
                None => {
                    let (got, of) = (flow.delivered_bytes, flow.offered_bytes);
                    let what = format!(
                        "{name} has {got} of {of} octets after {:.0} s; {}",
                        run.simulated_s,
                        ran.outcome.notes.join("; ")
                    );
                    verdict.wrong = wrong(Kind::Stall, what);
                }
            },
        }
    }
    verdict
}

/// What contradicts itself in a flow's result.
fn contradiction(flow: &Flow, run: &Run) -> Option<String> {
    let late = flow.completion_s.filter(|at| *at > run.simulated_s + 1e-6);
    if let Some(at) = late {
        return Some(format!("complete at {at} s of {} s", run.simulated_s));
    }
    if flow.delivered_bytes > flow.offered_bytes {
        let (got, of) = (flow.delivered_bytes, flow.offered_bytes);
        return Some(format!("{got} octets delivered of {of}"));
    }
    let sound = flow.goodput_bps.is_finite() && flow.goodput_bps >= 0.0;
    (!sound).then(|| format!("a goodput of {}", flow.goodput_bps))
}

/// Why a receiver need not have its object.
fn cause(draft: &Draft, ran: &Ran, flow: &Flow) -> Option<&'static str> {
    if draft.troubles.iter().any(|trouble| !trouble.heals) {
        return Some("a fault that lasts");
    }
    let ends = [flow.source, flow.sink];
    let restarts = draft.troubles.iter().flat_map(|trouble| &trouble.strikes);
    let mut crashed = restarts.filter_map(|strike| {
        let value = |key: &str| strike.iter().find(|(name, _)| name == key).map(|(_, v)| v);
        let is_crash = value("kind").is_some_and(|kind| kind == "\"crash\"");
        value("node").filter(|_| is_crash)?.parse::<usize>().ok()
    });
    if crashed.any(|node| ends.contains(&node)) {
        return Some("an end crashed");
    }
    if draft.troubles.iter().any(|trouble| trouble.falsifies) {
        return Some("falsified frames");
    }
    // Baselines that give up say why; "not finished" alone is no reason.
    let reason = |note: &String| !note.contains("not finished: r") && !note.contains("fault at");
    if ran.outcome.notes.iter().any(reason) {
        return Some("the system told why");
    }
    if ran.plan.limit.is_some() {
        return Some("the limit");
    }
    let lost = |frame_loss: f64| ran.plan.settings.unrepaired(frame_loss);
    let network = &ran.network;
    let kept = ran
        .plan
        .settings
        .links(network.medium.nodes(), &network.delivery);
    let is_used = |a: usize, b: usize| {
        let listed = kept
            .as_ref()
            .is_none_or(|links| links.contains(&(a, b)) || links.contains(&(b, a)));
        listed && !answers_late(draft, network, (a, b))
    };
    // TCP needs its acknowledgements too: a path that loses them for good is no better.
    let arrives = |from: usize, to: usize| best_path(network, (from, to), is_used, lost);
    let ways = arrives(flow.source, flow.sink).zip(arrives(flow.sink, flow.source));
    match ways.map(|(there, back)| there.min(back)) {
        None => Some("bad links"),
        Some(arrives) if 1.0 - arrives > UNREPAIRED_MAX => Some("losses that nothing repairs"),
        Some(_) => None,
    }
}

/// Metres over which a CTS still comes back in time: it must begin within a slot of the shortest kind (9 us, 802.11 17.4.4) more
/// than SIFS after the RTS, or later by twice the delay over `distance_max`.
const ANSWERED_M: f64 = 9e-6 / 2.0 * SPEED_OF_LIGHT;

/// Whether one of these nodes gives up an RTS before the other's CTS can arrive. Data without an RTS arrive there, though each
/// attempt counts as failed; with it nothing does.
fn answers_late(draft: &Draft, network: &Network, (a, b): (usize, usize)) -> bool {
    let value = |key: &str| {
        draft
            .mac
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, v)| v)
    };
    if value("rts_threshold").is_none() {
        return false;
    }
    let metres = value("distance_max").and_then(|text| {
        let number = text.trim_matches('"').strip_suffix(" m")?;
        number.parse::<f64>().ok()
    });
    let places = network.medium.positions();
    let (Some(a), Some(b)) = (places.get(a), places.get(b)) else {
        return false;
    };
    let distance = f64::hypot(f64::hypot(a.x - b.x, a.y - b.y), a.z - b.z);
    distance > ANSWERED_M + metres.unwrap_or(0.0)
}

/// The largest share of packets that arrives on a path of links that are used and good both ways, where a link that loses a share of
/// frames loses `lost` of it for good; `None` if no such path leads from the one node to the other.
fn best_path(
    network: &Network,
    (from, to): (usize, usize),
    is_used: impl Fn(usize, usize) -> bool,
    lost: impl Fn(f64) -> f64,
) -> Option<f64> {
    let nodes = network.medium.nodes();
    let share = |a: usize, b: usize| network.delivery[a * nodes + b];
    let mut arrives: Vec<Option<f64>> = vec![None; nodes];
    arrives[from] = Some(1.0);
    let mut next = vec![from];
    while let Some(node) = next.pop() {
        for other in 0..nodes {
            let is_good = share(node, other).min(share(other, node)) >= SURE_PRR;
            if !is_good || !is_used(node, other) {
                continue;
            }
            let over = arrives[node].map(|sent| sent * (1.0 - lost(1.0 - share(node, other))));
            // A path that returns to a node is no better there, so this ends.
            if over > arrives[other] {
                arrives[other] = over;
                next.push(other);
            }
        }
    }
    arrives[to]
}

/// Whether two runs agree in all but the time they took.
fn same(a: &Run, b: &Run) -> bool {
    let timeless = |run: &Run| Run {
        wall_s: 0.0,
        ..run.clone()
    };
    timeless(a) == timeless(b)
}

thread_local! {
    /// The message of this thread's last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls `work`; the message and the place of its panic if it panics.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        panic::set_hook(Box::new(|info| {
            PANIC.with(|last| *last.borrow_mut() = info.to_string());
        }));
    });
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| PANIC.with(RefCell::take))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::{self, plain};

    /// Two links of 1 km that lose this share of their frames, and what became of one octet over both.
    fn verdict(variant: &'static str, loss: f64) -> Verdict {
        let places = vec![[0.0, 0.0], [1e3, 0.0], [2e3, 0.0]];
        let draft = Draft {
            protocol: vec![plain("frame_loss", loss)],
            seed: 3,
            ..Draft::transfer("wildnet", variant, places, 1)
        };
        let care = Care {
            repeats: false,
            ..Care::default()
        };
        judge(systems::named("wildnet").unwrap(), &draft, care)
    }

    /// Nothing arrives over 16 km with RTS and a MAC that waits for neighbours: the CTS comes after the timeout. It is a stall again
    /// where the MAC knows the distance, and where there is no RTS.
    #[test]
    fn a_cts_that_comes_too_late_excuses() {
        let judged = |mac: Vec<draft::Line>| {
            let draft = Draft {
                radio: vec![draft::quoted("profile", "long-link")],
                mac,
                seed: 68,
                ..Draft::transfer("dpclo", "fusion", vec![[0.0, 0.0], [16e3, 0.0]], 1)
            };
            let care = Care {
                repeats: false,
                ..Care::default()
            };
            let verdict = judge(systems::named("dpclo").unwrap(), &draft, care);
            assert_eq!(verdict.wrong, None);
            (verdict.complete, verdict.causes)
        };
        let rts = || draft::quoted("rts_threshold", "1 B");
        let told = draft::quoted("distance_max", "16000 m");
        assert_eq!(judged(vec![rts()]), (0, vec!["bad links"]));
        assert_eq!(judged(vec![rts(), told]), (1, vec![]));
        assert_eq!(judged(Vec::new()), (1, vec![]));
    }

    /// A system that was given its links uses no others, however good they are: here the last mast is linked to the first, too far.
    #[test]
    fn links_that_a_scenario_leaves_out_are_not_waited_for() {
        let places: Vec<[f64; 2]> = (0..5)
            .map(|node| [f64::from(node) * 187_114.8, 0.0])
            .collect();
        let with = |links: &str| {
            let draft = Draft {
                protocol: vec![plain("links", links)],
                seed: 398,
                ..Draft::transfer("wildnet", "snoop", places.clone(), 3243)
            };
            let verdict = judge(systems::named("wildnet").unwrap(), &draft, Care::default());
            assert_eq!(verdict.wrong, None);
            verdict.causes
        };
        assert_eq!(with("[[0, 1], [1, 2], [2, 3], [0, 4]]"), ["bad links"]);
    }

    /// A run that takes more events than its budget is endless, on every machine.
    #[test]
    fn a_run_without_an_end_is_told_by_its_events() {
        let draft = Draft::transfer("wildnet", "paper", vec![[0.0, 0.0], [1e3, 0.0]], 1);
        let care = |events| Care {
            repeats: false,
            events,
        };
        let system = systems::named("wildnet").unwrap();
        assert_eq!(judge(system, &draft, care(1_000_000)).wrong, None);
        let wrong = judge(system, &draft, care(10)).wrong;
        assert_eq!(wrong.map(|wrong| wrong.kind), Some(Kind::Endless));
    }

    /// TCPlp sends along its tree, whatever links there are beside it: here 1 and 5 hear each other, and the tree leads from 1 to 5
    /// over four hops, one of which is bad.
    #[test]
    fn links_beside_a_tree_are_not_waited_for() {
        let links = vec![
            vec![0.0, 0.7, 0.4, 0.75, 0.7, 0.2],
            vec![0.15, 0.0, 0.8, 0.3, 0.65, 0.6],
            vec![0.5, 0.0, 0.0, 0.85, 0.0, 0.2],
            vec![0.4, 0.2, 0.0, 0.0, 0.95, 0.0],
            vec![0.25, 0.15, 0.2, 0.85, 0.0, 0.7],
            vec![0.0, 1.0, 0.0, 0.65, 0.3, 0.0],
        ];
        let draft = Draft {
            network: draft::Network::Links(links),
            seed: 1427,
            transfers: vec![draft::Transfer {
                source: Some(1),
                receivers: draft::Receivers::Nodes(vec![5]),
                octets: 312,
            }],
            ..Draft::transfer("tcplp", "one-segment", vec![], 1)
        };
        let verdict = judge(systems::named("tcplp").unwrap(), &draft, Care::default());
        assert_eq!(verdict.wrong, None);
        assert_eq!(verdict.causes, ["bad links"]);
    }

    /// What a scenario declares as lost is no stall where nothing repeats it: 802.11 tries each frame three times and loses 73 %
    /// of the packets of each link at 0.9. WiLDNet repeats until a frame has arrived, and must complete.
    #[test]
    fn losses_excuse_only_systems_that_do_not_repair_them() {
        let lost = verdict("csma", 0.9);
        assert_eq!(lost.wrong, None);
        assert_eq!(lost.causes, ["losses that nothing repairs"]);
        for (variant, loss) in [("csma", 0.1), ("paper", 0.5), ("improved", 0.5)] {
            let repaired = verdict(variant, loss);
            assert_eq!((repaired.wrong, repaired.complete), (None, 1), "{variant}");
        }
    }
}
