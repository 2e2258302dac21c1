//! The effect of single changes on 802.11 on Table 1's longest link, where the paper's is slower than ours.
//!
//! The paper's 802.11 gets 2.80 Mbit/s one way over 65 km and 0.68 both ways. Of its settings only the rate and two retries are
//! known, so each of the others is changed alone.

use chappe_core::{Dbm, Duration, Mode, Rate};
use chappe_lab::context::{beside, line, summary};
use chappe_lab::run::RunError;
use chappe_mac::dot11;
use chappe_results::figure::Panel;

use crate::context::{FigureContext, Runs};
use crate::outdoor_links::{LINKS, PAPER};
use crate::panel::{bars, mbps};
use chappe_lab_wildnet::masts::Masts;
use chappe_lab_wildnet::rate_control::RateControl;
use chappe_lab_wildnet::scheme::{Card, Load, Scheme};
use chappe_lab_wildnet::trial::Trial;

/// The index of the link of 65 km.
const LINK: usize = 2;

/// A name, and the change of the trial.
type Change = (&'static str, fn(&mut Masts));

const CHANGES: [Change; 17] = [
    ("nothing", |_| ()),
    ("long preambles", |masts| masts.scheme = Scheme::CSMA_LONG),
    ("802.11e's best effort", |masts| {
        masts.scheme = with_retries(2, Card::Wmm);
    }),
    ("ACKs at 1 Mbit/s", |masts| {
        masts.adjust_card = |_, card| card.control = Mode::long(Rate::Dsss1);
    }),
    ("no retries", |masts| {
        masts.scheme = with_retries(0, Card::Short)
    }),
    ("four retries", |masts| {
        masts.scheme = with_retries(4, Card::Short);
    }),
    ("slot time stretched to the distance", |masts| {
        masts.adjust_card = |_, card| card.stretch_slot = true;
    }),
    ("no EIFS after a broken frame", |masts| {
        masts.adjust_card = |_, card| card.eifs = false;
    }),
    ("carrier sense by preambles only", |masts| {
        masts.profile.carrier_sense = Dbm(0.0);
    }),
    ("TCP without what came after Linux 2.4", |masts| {
        masts.tcp.old = true
    }),
    ("TCP acknowledges each segment", |masts| {
        masts.tcp.ack_every = 1
    }),
    ("rate control: ARF", |masts| {
        masts.rate_control = RateControl::Arf
    }),
    ("rate control: Onoe", |masts| {
        masts.rate_control = RateControl::Onoe
    }),
    ("rate control: AMRR", |masts| {
        masts.rate_control = RateControl::Amrr
    }),
    ("ACK timeout too short at both ends", |masts| {
        masts.adjust_card = |_, card| too_short(card);
    }),
    (ONE_END, |masts| masts.adjust_card = one_end),
    ("that, with long preambles", |masts| {
        (masts.adjust_card, masts.scheme) = (one_end, Scheme::CSMA_LONG);
    }),
];

/// The beginning of the names of cards that lower their rate.
const RATE_CONTROL: &str = "rate control";
const ONE_END: &str = "ACK timeout too short at one end";

const fn with_retries(retries: u8, card: Card) -> Scheme {
    Scheme::Csma {
        retries: Some(retries),
        card,
    }
}

/// An ACK timeout set for a link of 9 km.
fn too_short(card: &mut dot11::Config) {
    card.propagation_max = Duration::from_micros(30);
}

/// Only at the second end, which receives where traffic goes one way: it repeats its TCP acknowledgements needlessly.
fn one_end(radio: usize, card: &mut dot11::Config) {
    if radio == 1 {
        too_short(card);
    }
}

/// Measurements of all changes, one way and both ways.
pub struct Changes {
    runs: [Vec<Runs>; 2],
}

impl Changes {
    /// Runs the link with each change.
    pub fn measure(context: &FigureContext<'_>) -> Result<Changes, RunError> {
        let (km, loss) = LINKS[LINK];
        let over = |both| {
            let of = |(_, change): &Change| {
                let trial = Trial {
                    scheme: Scheme::CSMA,
                    km,
                    loss,
                    load: Load::Tcp,
                    both,
                    time: context.time(),
                };
                let mut masts = trial.masts();
                change(&mut masts);
                masts
            };
            context.measure(&CHANGES.iter().map(of).collect::<Vec<_>>())
        };
        Ok(Changes {
            runs: [over(false)?, over(true)?],
        })
    }

    fn mean(&self, both: usize, change: usize) -> f64 {
        summary(&self.runs[both][change], mbps).mean
    }

    fn one_end(&self) -> usize {
        let place = CHANGES.iter().position(|(name, _)| *name == ONE_END);
        place.unwrap_or(0)
    }

    /// The throughput with each change, as a panel.
    pub fn panel(&self) -> Panel {
        let names = ["one way", "both ways"];
        let series = [0, 1].map(|both| {
            let series = line(names[both], &self.runs[both], mbps);
            beside(series, &[Some(PAPER[0][both][LINK])])
        });
        bars(
            "1c",
            "802.11 at 65 km with one thing changed",
            "Mbit/s",
            ("changed", CHANGES.map(|(name, _)| name.into()).to_vec()),
            series.to_vec(),
            Vec::new(),
        )
    }

    /// A note on what the changes show about the paper's numbers.
    pub fn note(&self) -> String {
        let falls = |at: usize| self.mean(0, at) / self.mean(1, at);
        let is_rate = |at: usize| CHANGES[at].0.starts_with(RATE_CONTROL);
        let others = (0..self.one_end()).filter(|&at| !is_rate(at));
        let most = others.map(falls).fold(0.0, f64::max);
        let rates = (0..CHANGES.len()).filter(|&at| is_rate(at));
        let by_rate = rates.map(falls).fold(0.0, f64::max);
        let paper = PAPER[0].map(|ways| ways[LINK]);
        format!(
            "On the link of 65 km the paper's 802.11 gets {:.1} times less both ways than one way. Of the changes in 1c, an ACK \
             timeout that is too short at one end causes a factor of {:.2}, rate control that takes collisions for a weak signal \
             {by_rate:.2} (figure crossover), the others at most {most:.2}. The paper's emulator, \
             with all timeouts set, shows no such fall: 2 to 5 times less than WiLDNet at long distances (5), not the 8 of this \
             link.",
            paper[0] / paper[1],
            falls(self.one_end()),
        )
    }

    /// Why WiLDNet, with `wild` Mbit/s on this link, is not faster than 802.11 one way.
    pub fn cause(&self, wild: f64) -> String {
        let (all, late) = (self.mean(0, 0), self.one_end());
        format!(
            "our 802.11 gets {all:.2} Mbit/s at 65 km, the paper's 2.80. The minimum duration of an exchange allows 4.25: 1448 octets \
             in 2076 us and 10 us a kilometre. With long preambles it gets {:.2}; if one end's ACK timeout is too short, {:.2}, \
             and WiLDNet gets {:.2} times as much",
            self.mean(0, 1),
            self.mean(0, late),
            wild / self.mean(0, late)
        )
    }
}
