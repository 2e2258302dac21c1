//! `chappe link plan`: predicts the cost of a service before a link uses it.

use chappe_core::{Bitrate, Duration, SPEED_OF_LIGHT};
use chappe_link::{Carrier, Egress, Judgement};
use chappe_scenario::input::{InputError, telling};
use chappe_scenario::quantity::{Length, Rate, Time};
use chappe_sys::wireless;
use chappe_wildnet::gilbert::Channel;
use chappe_wildnet::targets::{self, Choice, Unmet, Wish};
use chappe_wildnet::{Service, SlotConfig};
use serde::Serialize;

use super::options::Plan;
use crate::failure::Failure;
use crate::terminal;

/// The request, in SI units.
struct Asked {
    channel: Channel,
    round_trip: Duration,
    deadline: Duration,
    /// The deadline as it was written.
    written: String,
    residual: f64,
    packet: usize,
    distance: Option<f64>,
    bandwidth: Option<f64>,
    rate: Option<f64>,
}

/// The prediction. Rates are payload, except `path_needed_bps`.
#[derive(Serialize)]
struct Answer {
    overhead: f64,
    residual: f64,
    overhead_bound: f64,
    met: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unmet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_bps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_needed_bps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_class_needed: Option<u8>,
}

pub fn run(options: &Plan) -> Result<u8, Failure> {
    let asked = Asked::of(options)?;
    let answer = match options.slots {
        true => in_slots(&asked)?,
        false => over_a_path(&asked),
    };
    if options.json {
        let json = serde_json::to_string(&answer).unwrap_or_default();
        terminal::print(&(json + "\n"))?;
    } else {
        terminal::print(&text(&asked, &answer))?;
        // Slots have no acknowledgements to wait for.
        if let Some(metres) = asked.distance.filter(|_| !options.slots) {
            terminal::print(&coverage(metres))?;
        }
    }
    Ok(u8::from(!answer.met))
}

impl Asked {
    fn of(options: &Plan) -> Result<Asked, InputError> {
        let time = |option, text: &String| {
            let seconds = quantity(option, text, |text| {
                Time::parse(text).map(|time| time.value())
            });
            seconds.map(Duration::from_secs_f64)
        };
        let rate = |option, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => {
                let read = |text: &str| Rate::parse(text).map(|rate| rate.value());
                let rate = quantity(option, text, read)?;
                if rate <= 0.0 {
                    let message = format!("`{text}` carries nothing");
                    return Err(InputError::new(option, message).help("write \"2 Mbit/s\""));
                }
                Ok(Some(rate))
            }
        };
        let read = |text: &str| Length::parse(text).map(|length| length.value());
        let distance = options
            .distance
            .as_ref()
            .map(|text| quantity("--distance", text, read));
        Ok(Asked {
            channel: match options.burst {
                Some(burst) => Channel::bursty(options.loss, burst),
                None => Channel::independent(options.loss),
            },
            round_trip: time("--round-trip", &options.round_trip)?,
            deadline: time("--deadline", &options.deadline)?,
            written: options.deadline.trim().to_owned(),
            residual: options.residual,
            packet: options.packet.into(),
            distance: distance.transpose()?,
            bandwidth: rate("--bandwidth", &options.bandwidth)?,
            rate: rate("--rate", &options.rate)?,
        })
    }
}

/// Parses the quantity of an option; an error shows the right form.
fn quantity(
    option: &str,
    text: &str,
    parse: impl Fn(&str) -> Result<f64, String>,
) -> Result<f64, InputError> {
    parse(text).map_err(|message| {
        let (message, help) = telling(&message);
        let error = InputError::new(option, message.to_owned());
        match help {
            Some(help) => error.help(help.to_owned()),
            None => error,
        }
    })
}

/// The link over any path: the cost of the service, and the rate that the path needs.
fn over_a_path(asked: &Asked) -> Answer {
    let service = Service {
        deadline: Some(asked.deadline),
        residual: asked.residual.max(1e-9),
        ..Service::RELIABLE
    };
    let predicted = targets::predict(
        &asked.channel,
        &service,
        asked.round_trip,
        asked.round_trip / 2,
    );
    let carrier = Carrier::Udp(([0, 0, 0, 0], 0).into());
    // Of the octets on the medium, those that new packets have.
    let share = carrier.payload_share(1500) / (1.0 + predicted.overhead);
    let capacity = asked.rate.map(|rate| rate * share);
    let unmet = if predicted.residual > service.residual {
        Some(format!(
            "{:.3} % would be late or lost: allow more time (`--delay`) or more loss (`--loss-target {:.2}%`)",
            predicted.residual * 100.0,
            predicted.residual * 101.0
        ))
    } else {
        match (capacity, asked.bandwidth) {
            (Some(capacity), Some(bandwidth)) if capacity < bandwidth => Some(format!(
                "of {} the path leaves {}: ask for less, or allow more delay or loss",
                mbit(asked.rate.unwrap_or(0.0)),
                mbit(capacity)
            )),
            _ => None,
        }
    };
    Answer {
        overhead: predicted.overhead,
        residual: predicted.residual,
        overhead_bound: predicted.bound,
        met: unmet.is_none(),
        unmet,
        slot_s: None,
        rounds: None,
        capacity_bps: capacity,
        path_needed_bps: asked.bandwidth.map(|bandwidth| bandwidth / share),
        distance_m: asked.distance,
        coverage_class_needed: asked.distance.and_then(wireless::class_for),
    }
}

/// WiLDNet's slots: the shortest that meet the targets, or the result of the best ones.
fn in_slots(asked: &Asked) -> Result<Answer, InputError> {
    let (Some(metres), Some(rate)) = (asked.distance, asked.bandwidth) else {
        return Err(
            InputError::new("--slots", "slots need a distance and a bandwidth")
                .help("add --distance '60 km' --bandwidth '1 Mbit/s'"),
        );
    };
    let wish = Wish {
        delay: Some(asked.deadline),
        rate,
        loss: asked.residual,
        packet: asked.packet,
    };
    let one_way = Duration::from_secs_f64(metres / SPEED_OF_LIGHT);
    // `choose` sets the length.
    let slots = SlotConfig::dot11b(targets::SLOTS[0]);
    let chosen = targets::choose(&asked.channel, one_way, &slots, &wish);
    let least = match chosen {
        Err(Unmet::Loss(least)) => least,
        _ => 0.0,
    };
    let choice: Option<&Choice> = chosen.as_ref().ok();
    let unmet = chosen.as_ref().err().map(|unmet| {
        let instead = match unmet {
            Unmet::Rate(most) => format!(
                "ask for {} at most (`--bandwidth`), or allow more delay or loss",
                mbit(most * 0.999)
            ),
            Unmet::Delay(least) => format!(
                "allow `--delay '{:.0} ms'` or more",
                (least.as_secs_f64() * 1e3).ceil()
            ),
            Unmet::Loss(least) => format!(
                "allow `--loss-target {:.2}%`, or more delay",
                least * 100.0 + 0.005
            ),
        };
        format!("{unmet}: {instead}")
    });
    Ok(Answer {
        overhead: choice.map_or(f64::NAN, |choice| choice.prediction.overhead),
        residual: choice.map_or(least, |choice| choice.prediction.residual),
        overhead_bound: asked.channel.overhead_bound(asked.residual),
        met: unmet.is_none(),
        unmet,
        slot_s: choice.map(|choice| choice.slot.as_secs_f64()),
        rounds: choice.and_then(|choice| choice.rounds),
        capacity_bps: choice.map(|choice| choice.capacity),
        path_needed_bps: None,
        distance_m: asked.distance,
        coverage_class_needed: wireless::class_for(metres),
    })
}

fn text(asked: &Asked, answer: &Answer) -> String {
    let mut text = match &answer.unmet {
        Some(unmet) => format!("cannot be met: {unmet}\n"),
        None => String::new(),
    };
    if answer.overhead.is_finite() && answer.residual <= asked.residual {
        text += &format!(
            "overhead {:.1} % (no code can have less than {:.1} %), late or lost {:.3} %\n",
            answer.overhead * 100.0,
            answer.overhead_bound * 100.0,
            answer.residual * 100.0,
        );
    }
    if let (Some(needed), Some(bandwidth)) = (answer.path_needed_bps, asked.bandwidth) {
        text += &format!(
            "{} of packets need {} from the path, headers and overhead included\n",
            mbit(bandwidth),
            mbit(needed)
        );
    }
    if !answer.met {
        return text;
    }
    if let Some(slot) = answer.slot_s {
        text += &format!(
            "slots of {:.0} ms for each end carry up to {} each way (802.11b at 11 Mbit/s){}\n\nIn a scenario:\n  [protocol]\n  slot = \"{:.0} ms\"\n",
            slot * 1e3,
            mbit(answer.capacity_bps.unwrap_or(0.0)),
            answer.rounds.map_or(String::new(), |rounds| format!(
                ", and leave time for {rounds} more round{}",
                if rounds == 1 { "" } else { "s" }
            )),
            slot * 1e3,
        );
    } else {
        if let Some(capacity) = answer.capacity_bps {
            text += &format!("the path carries up to {} of packets\n", mbit(capacity));
        }
        text += &format!(
            "\nIn the configuration:\n  [peer.bulk]\n  deadline = \"{}\"\n  residual = {}\n",
            asked.written, asked.residual
        );
    }
    text
}

fn mbit(bps: f64) -> String {
    Rate::new(Bitrate(three_digits(bps) as u64).0 as f64).to_string()
}

/// `value` rounded to three significant digits.
fn three_digits(value: f64) -> f64 {
    let scale = 10f64.powf(value.max(1.0).log10().floor() - 2.0);
    (value / scale).round() * scale
}

/// The coverage class that 802.11 cards need for a distance, and the setting of this machine's cards.
fn coverage(metres: f64) -> String {
    let radios = wireless::radios().unwrap_or_default();
    let here = radios.into_iter().map(|radio| {
        let interface = radio.interface.clone();
        let judged = Judgement {
            egress: Egress::Radio(radio),
            distance: Some(metres),
            ..Judgement::default()
        };
        format!("{interface}: {judged}\n")
    });
    format!("\n{}{}", needed(metres), here.collect::<String>())
}

fn needed(metres: f64) -> String {
    let light = format!(
        "{:.1} km: light takes {:.0} us one way; ",
        metres / 1e3,
        metres / SPEED_OF_LIGHT * 1e6
    );
    let Some(class) = wireless::class_for(metres) else {
        return light
            + "no Linux driver waits that long for an acknowledgement (coverage class 255, 114.75 km): use frames without \
               acknowledgement (slots), or `chappe link` above them\n";
    };
    let more = match class {
        ..32 => "",
        _ => {
            "; the standard ends at 31 (14 km): not every driver takes more, and one that takes less waits too short and repeats everything"
        }
    };
    format!(
        "{light}802.11 cards need coverage class {class} at both ends (`iw phy PHY set distance {metres:.0}`), which makes every slot {} us longer{more}\n",
        u32::from(class) * 3,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &str) -> Plan {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            plan: Plan,
        }
        Line::try_parse_from(["plan"].into_iter().chain(words.split(' ')))
            .unwrap()
            .plan
    }

    fn asked(words: &str) -> Asked {
        Asked::of(&options(words)).unwrap()
    }

    /// Goal: the path carries the data, the repetitions and the headers (74 of 1514 octets, docs/link.md).
    #[test]
    fn the_path_carries_packets_repetitions_and_headers() {
        let asked = asked("--loss 0 --bandwidth 1Mbit/s --rate 2Mbit/s");
        let answer = over_a_path(&asked);
        let needed = answer.path_needed_bps.unwrap();
        assert!((needed / 1e6 - 1514.0 / 1440.0).abs() < 0.01, "{needed}");
        assert!((answer.capacity_bps.unwrap() / 2e6 * needed / 1e6 - 1.0).abs() < 1e-9);
        let lossy = over_a_path(&self::asked(
            "--loss 50% --bandwidth 1Mbit/s --rate 2Mbit/s",
        ));
        assert!(!lossy.met && lossy.unmet.unwrap().contains("ask for less"));
    }

    /// Goal: each refusal names a value that would be accepted.
    #[test]
    fn refusals_name_an_accepted_value() {
        let slots = |loss: &str, more: &str| {
            let words = format!("--slots --distance 60km --loss {loss} {more}");
            in_slots(&asked(&words)).unwrap()
        };
        let refused = |loss: &str, more: &str, said: &str| {
            let answer = slots(loss, more);
            let unmet = answer.unmet.unwrap();
            assert!(!answer.met && unmet.contains(said), "{unmet}");
            unmet
        };
        let said = refused("30%", "--bandwidth 0.5Mbit/s --delay 5ms", "--delay '9 ms'");
        assert!(said.contains("waiting for a slot"));
        let hopeless = "--bandwidth 0.1Mbit/s --delay 9ms --loss-target 0.0001%";
        refused("90%", hopeless, "--loss-target");
        let much = "--bandwidth 9Mbit/s --delay 200ms --loss-target 1%";
        refused("30%", much, "--bandwidth");
        let met = slots("30%", "--bandwidth 0.5Mbit/s --delay 60ms --loss-target 1%");
        assert!(met.met && met.slot_s == Some(0.005) && met.residual <= 0.01);
        let error = in_slots(&asked("--slots --loss 30% --distance 60km")).err();
        assert!(error.unwrap().to_string().contains("bandwidth"));
    }

    #[test]
    fn missing_units_are_refused() {
        for (words, right) in [
            ("--loss 0 --bandwidth 5", "Mbit/s"),
            ("--loss 0 --distance 5", "m"),
            ("--loss 0 --deadline 5", "ms"),
        ] {
            let error = Asked::of(&options(words)).err().unwrap();
            assert!(format!("{error:?}").contains(right), "{error:?}");
        }
    }
}
