//! The language: lines to inputs and expectations.

use chappe_core::{Address, Duration, Instant, Mode, Purpose, Rate, Seed};
use chappe_mac::dot11::Config;
use chappe_wire::dot11::{Data, Frame, NavTime, Repr, Sequence};
use chappe_wire::llc;

/// A parsed script: inputs and the lines it must give.
pub struct Script {
    pub config: Config,
    pub seed: u64,
    pub show_sense: bool,
    pub inputs: Vec<(Instant, Input)>,
    pub expected: Vec<String>,
    pub end: Instant,
}

/// What happens to the station.
#[derive(Clone, Debug)]
pub enum Input {
    Offer(Address, usize),
    Withdraw,
    Hear { psdu: Vec<u8>, mode: Mode },
    Garble(Duration),
    Noise(Duration),
}

impl Script {
    pub fn parse(text: &str) -> Script {
        let mut script = Script {
            config: Config::dot11b(Rate::Dsss2),
            seed: 1,
            show_sense: false,
            inputs: Vec::new(),
            expected: Vec::new(),
            end: Instant::MAX,
        };
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                ["set", ref settings @ ..] => settings.iter().for_each(|one| script.set(one)),
                ["draws", ref draws @ ..] => script.check_draws(draws),
                [time, ref rest @ ..] => script.line(number(time), rest),
            }
        }
        assert!(script.end < Instant::MAX, "a script says when it ends");
        script
    }

    fn set(&mut self, setting: &str) {
        let (key, value) = setting.split_once('=').expect("KEY=VALUE");
        let config = &mut self.config;
        let on = value == "on";
        match key {
            "rate" => config.data = Mode::long(rate(value)),
            "rts" => config.rts_threshold = number(value) as usize,
            "eifs" => config.eifs = on,
            "nav" => config.nav = on,
            "nav_reset" => config.nav_reset = on,
            "overhear" => config.overhear = on,
            "fresh_difs" => config.difs_after_timeout = on,
            "llc" if !on => config.llc = None,
            "early_timeout" => config.early_timeout = on,
            "difs_backoff" => config.difs_backoff = on,
            "cca" => config.cca_time = us(number(value)),
            "cca_ready" => config.cca_when_ready = on,
            "propagation" => config.propagation_max = us(number(value)),
            "short" => config.retry_short = number(value) as u8,
            "long" => config.retry_long = number(value) as u8,
            "cw" => {
                let (least, most) = value.split_once("..").expect("LEAST..MOST");
                (config.cw_min, config.cw_max) = (number(least) as u16, number(most) as u16);
            }
            "seed" => self.seed = number(value),
            "show" if value == "sense" => self.show_sense = true,
            _ => panic!("unknown setting {setting}"),
        }
    }

    /// The station draws its first sequence number, then its back-offs.
    fn check_draws(&self, draws: &[&str]) {
        let mut stream = Seed(self.seed).stream(Purpose::Node(1));
        stream.below(4096);
        for draw in draws {
            let (window, slots) = draw.split_once(':').expect("WINDOW:SLOTS");
            let drawn = stream.below(number(window) + 1);
            assert_eq!(drawn, number(slots), "draw {draw} of seed {}", self.seed);
        }
    }

    fn line(&mut self, time: u64, words: &[&str]) {
        let at = Instant::from_micros(time);
        let input = match *words {
            ["end"] => {
                self.end = at;
                return;
            }
            ["offer", to, len] => Input::Offer(address(to), number(len) as usize),
            ["withdraw"] => Input::Withdraw,
            ["garble", span] => Input::Garble(us(number(span))),
            ["noise", span] => Input::Noise(us(number(span))),
            ["hear", ref words @ ..] => self.frame(words),
            [">" | "^" | "=" | "sense", ..] => {
                self.expected.push(format!("{time} {}", words.join(" ")));
                return;
            }
            _ => panic!("cannot read: {time} {}", words.join(" ")),
        };
        self.inputs.push((at, input));
    }

    fn frame(&self, words: &[&str]) -> Input {
        let value = |key: &str| {
            let found = words.iter().find_map(|word| word.strip_prefix(key));
            found.unwrap_or_else(|| panic!("{key} is missing in {words:?}"))
        };
        let duration = NavTime::covering(us(number(value("nav="))));
        let mode = Mode::long(rate(value("@")));
        let mut psdu = vec![0; 2400];
        let (repr, sdu) = match words {
            ["ACK", ">", to, ..] => (
                Repr::Ack {
                    receiver: address(to),
                    duration,
                },
                None,
            ),
            ["CTS", ">", to, ..] => (
                Repr::Cts {
                    receiver: address(to),
                    duration,
                },
                None,
            ),
            ["RTS", from, ">", to, ..] => {
                let (receiver, transmitter) = (address(to), address(from));
                (
                    Repr::Rts {
                        receiver,
                        transmitter,
                        duration,
                    },
                    None,
                )
            }
            ["Data", from, ">", to, ..] => {
                let data = Data {
                    receiver: address(to),
                    transmitter: address(from),
                    bssid: self.config.bssid,
                    sequence: Sequence::new(number(value("seq=")) as u16),
                    qos: false,
                    retry: words.contains(&"retry"),
                    duration,
                };
                (Repr::Data(data), Some(number(value("sdu=")) as usize))
            }
            _ => panic!("not a frame: {words:?}"),
        };
        let mut len = repr.emit(&mut psdu).expect("fits");
        if let (Some(sdu), Some(ether_type)) = (sdu, self.config.llc) {
            len += llc::emit(ether_type, &mut psdu[len..]).expect("fits") + sdu;
        }
        psdu.truncate(len);
        Input::Hear { psdu, mode }
    }
}

/// A frame of the station as it stands in scripts.
pub fn describe(psdu: &[u8], mode: Mode, first: Sequence, config: &Config) -> String {
    let frame = Frame::new(psdu).expect("the station sends frames");
    let rate = match mode.rate {
        Rate::Dsss1 => "1",
        Rate::Dsss2 => "2",
        Rate::Cck5 => "5.5",
        Rate::Cck11 => "11",
        _ => "?",
    };
    match Repr::parse(&frame).expect("legal frames") {
        Repr::Ack { receiver, duration } => {
            format!("ACK > {receiver} nav={} @{rate}", duration.micros())
        }
        Repr::Cts { receiver, duration } => {
            format!("CTS > {receiver} nav={} @{rate}", duration.micros())
        }
        Repr::BlockAck(block) => format!("ba {}", block.receiver),
        Repr::BlockAckReq(block) => format!("bar {}", block.receiver),
        Repr::Rts {
            receiver,
            transmitter,
            duration,
        } => {
            let nav = duration.micros();
            format!("RTS {transmitter} > {receiver} nav={nav} @{rate}")
        }
        Repr::Data(data) => {
            let seq = (data.sequence.number() + 4096 - first.number()) % 4096;
            let header = if config.llc.is_some() { llc::LEN } else { 0 };
            format!(
                "Data {} > {} seq={seq}{} nav={} sdu={} @{rate}",
                data.transmitter,
                data.receiver,
                if data.retry { " retry" } else { "" },
                data.duration.micros(),
                frame.body().len() - header,
            )
        }
    }
}

fn address(word: &str) -> Address {
    match word.strip_prefix('n') {
        Some(node) => Address::node(number(node) as u16),
        None if word == "*" => Address::BROADCAST,
        None => panic!("not an address: {word}"),
    }
}

fn rate(word: &str) -> Rate {
    match word {
        "1" => Rate::Dsss1,
        "2" => Rate::Dsss2,
        "5.5" => Rate::Cck5,
        "11" => Rate::Cck11,
        _ => panic!("not a rate: {word}"),
    }
}

fn number(word: &str) -> u64 {
    word.parse()
        .unwrap_or_else(|_| panic!("not a number: {word}"))
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
