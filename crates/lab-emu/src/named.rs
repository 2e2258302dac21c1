//! Paths by name, as `chappe try --over` takes them: `wifi 60 km, 10 % loss`.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use chappe_core::{Bitrate, Duration, Mode, Rate, SPEED_OF_LIGHT};
use chappe_emu::{Confirm, Path};
use chappe_mac::dot11;
use chappe_scenario::InputError;
use chappe_scenario::input::telling;
use chappe_scenario::nearest::nearest;
use chappe_scenario::plan::radio;
use chappe_scenario::quantity::{self, Length, Time};
use chappe_wire::dot11::{ACK_LEN, DATA_HEADER_LEN, FCS_LEN};
use chappe_wire::llc;

/// A path with its name and a description of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPath {
    /// The radios, in a few words.
    pub radios: String,
    /// The numbers: rate, delay, losses.
    pub numbers: String,
    /// The path as a program meets it that knows nothing of it.
    pub plain: Path,
    /// The path as a tunnel uses it that repairs losses itself: without the radios' acknowledgements, where they can be
    /// switched off.
    pub bare: Path,
    /// The setting that leads from one to the other, if they differ.
    pub setting: Option<&'static str>,
}

/// A kind of path, with what may be said of it.
struct Kind {
    name: &'static str,
    also: &'static [&'static str],
    about: &'static str,
    takes: &'static [What],
    make: fn(&Numbers) -> Made,
    /// Share of frames lost if none is given.
    loss: f64,
}

/// What a kind makes of the numbers.
struct Made {
    radios: String,
    plain: Path,
    setting: Option<&'static str>,
}

/// A number in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Distance,
    Rate,
    Delay,
    Loss,
    Burst,
    Hops,
}

#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    metres: Option<f64>,
    rate: Option<f64>,
    delay: Option<f64>,
    loss: Option<f64>,
    burst: Option<f64>,
    hops: Option<f64>,
}

static KINDS: [Kind; 6] = [
    Kind {
        name: "wifi",
        also: &["802.11", "wlan"],
        about: "802.11 over a distance; 60 km at 11 Mbit/s, 10 % loss",
        takes: &[What::Distance, What::Rate, What::Loss, What::Burst],
        make: wifi,
        loss: 0.1,
    },
    Kind {
        name: "mesh",
        also: &["three-hop mesh"],
        about: "hops of 802.11 on one channel; 3 hops at 11 Mbit/s, 10 % loss",
        takes: &[What::Hops, What::Rate, What::Loss, What::Burst],
        make: mesh,
        loss: 0.1,
    },
    Kind {
        name: "satellite",
        also: &["geo"],
        about: "a geostationary satellite; 10 Mbit/s, 260 ms one way, 2 % loss",
        takes: &[What::Rate, What::Delay, What::Loss, What::Burst],
        make: satellite,
        loss: 0.02,
    },
    Kind {
        name: "802.15.4",
        also: &["6lowpan", "zigbee"],
        about: "motes' radios under 6LoWPAN; 10 % loss",
        takes: &[What::Hops, What::Loss, What::Burst],
        make: dot15d4,
        loss: 0.1,
    },
    Kind {
        name: "lora",
        also: &["lora-like"],
        about: "LoRa's frames, back to back; 10 % loss",
        takes: &[What::Loss, What::Burst],
        make: lora,
        loss: 0.1,
    },
    Kind {
        name: "path",
        also: &[],
        about: "a rate, a delay and losses, whatever the radio; 10 Mbit/s, 10 ms one way",
        takes: &[What::Rate, What::Delay, What::Loss, What::Burst],
        make: bare_path,
        loss: 0.0,
    },
];

impl NamedPath {
    /// The names, each with what it is and with an example.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        KINDS.iter().map(|kind| (kind.name, kind.about))
    }

    /// Reads `wifi 60 km, 10 % loss`: a name, then numbers with units, separated by commas. Numbers that are not given have the
    /// usual values of the kind.
    pub fn parse(text: &str) -> Result<NamedPath, InputError> {
        let source: Arc<str> = text.into();
        let (kind, rest) = named(text, &source)?;
        let mut numbers = Numbers::default();
        for part in parts(text, rest) {
            read(kind, text, part, &source, &mut numbers)?;
        }
        Ok(kind.path(numbers))
    }
}

impl Kind {
    fn path(&self, numbers: Numbers) -> NamedPath {
        let made = (self.make)(&numbers);
        let plain = Path {
            loss: numbers.loss.unwrap_or(self.loss),
            burst: numbers.burst.unwrap_or(0.0),
            ..made.plain
        };
        let bare = match made.setting {
            Some(_) => plain.unconfirmed(),
            None => plain,
        };
        NamedPath {
            radios: made.radios,
            numbers: numbers_of(&plain),
            plain,
            bare,
            setting: made.setting,
        }
    }
}

/// The kind that a text begins with, and where its numbers begin. A text that begins with a number is a plain path.
fn named(text: &str, source: &Arc<str>) -> Result<(&'static Kind, usize), InputError> {
    let begin = text.len() - text.trim_start().len();
    let trimmed = text.trim().to_lowercase();
    let names = |kind: &'static Kind| std::iter::once(&kind.name).chain(kind.also);
    let all = || {
        KINDS
            .iter()
            .flat_map(|kind| names(kind).map(move |name| (kind, *name)))
    };
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([' ', ',']);
    let found = all().find(|(_, name)| trimmed.strip_prefix(name).is_some_and(ends));
    if let Some((kind, name)) = found {
        return Ok((kind, begin + name.len()));
    }
    let word: String = trimmed.chars().take_while(|c| !" ,".contains(*c)).collect();
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) || word == "bursts" {
        return Ok((&KINDS[KINDS.len() - 1], begin));
    }
    let help = match nearest(&word, all().map(|(_, name)| name)) {
        Some(near) => format!("did you mean `{near}`? The names are {}", list()),
        None => format!("the names are {}", list()),
    };
    let error = InputError::new("--over", format!("there is no path `{word}`"));
    Err(error
        .at(source, begin..begin + word.len(), "no such path")
        .help(help))
}

fn list() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

/// The places of the parts between commas, from `from` on.
fn parts(text: &str, from: usize) -> impl Iterator<Item = Range<usize>> {
    let mut at = from;
    text[from..].split(',').filter_map(move |part| {
        let begin = at + (part.len() - part.trim_start().len());
        at += part.len() + 1;
        (!part.trim().is_empty()).then(|| begin..begin + part.trim().len())
    })
}

/// Reads one part, `60 km` or `bursts of 4`.
fn read(
    kind: &Kind,
    text: &str,
    part: Range<usize>,
    source: &Arc<str>,
    numbers: &mut Numbers,
) -> Result<(), InputError> {
    let words = &text[part.clone()];
    let wrong = |message: String, help: String| {
        let error = InputError::new("--over", message);
        Err(error.at(source, part.clone(), "here").help(help))
    };
    let (what, value) = match number(words) {
        Ok(number) => number,
        Err(_) if separate(words).is_some() => {
            let parts = separate(words).unwrap_or_default();
            return wrong(
                format!("commas are missing in `{words}`"),
                format!("write `{parts}`"),
            );
        }
        Err(message) => return wrong(message, meant(words).unwrap_or_else(|| kind.usage())),
    };
    if !kind.takes.contains(&what) {
        return wrong(
            format!("{} has no {}", kind.name, what.name()),
            kind.usage(),
        );
    }
    let (least, most) = what.range();
    if !(least..=most).contains(&value) {
        let message = format!("`{words}` is out of range");
        return wrong(message, format!("a {} is {}", what.name(), what.allowed()));
    }
    if what == What::Rate
        && kind.name != "path"
        && kind.name != "satellite"
        && radio::rate_of(value).is_none()
    {
        let message = format!("802.11 has no rate of `{words}`");
        return wrong(message, radio::RATES.into());
    }
    let place = match what {
        What::Distance => &mut numbers.metres,
        What::Rate => &mut numbers.rate,
        What::Delay => &mut numbers.delay,
        What::Loss => &mut numbers.loss,
        What::Burst => &mut numbers.burst,
        What::Hops => &mut numbers.hops,
    };
    match place.replace(value) {
        None => Ok(()),
        Some(_) => wrong(format!("two values of {}", what.name()), "keep one".into()),
    }
}

/// Several numbers with commas between them: `60 km, 10 % loss` for `60 km 10 % loss`. `None` if that is no help.
fn separate(words: &str) -> Option<String> {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for word in words.split_whitespace() {
        let goes_on = parts.last().is_some_and(|part| part.contains(&"of"));
        let begins = word.starts_with(|c: char| c.is_ascii_digit()) && !goes_on;
        match parts.last_mut() {
            Some(part) if !begins && word != "bursts" => part.push(word),
            _ => parts.push(vec![word]),
        }
    }
    let parts: Vec<String> = parts.iter().map(|part| part.join(" ")).collect();
    let all = parts.len() > 1 && parts.iter().all(|part| number(part).is_ok());
    all.then(|| parts.join(", "))
}

/// The right form of a number whose unit is written otherwise.
fn meant(words: &str) -> Option<String> {
    let errors = [
        Length::parse(words).err(),
        quantity::Rate::parse(words).err(),
        Time::parse(words).err(),
    ];
    errors.into_iter().flatten().find_map(|error| {
        let (_, right) = telling(&error).1?.split_once(": \"")?;
        Some(format!("write `{}`", right.trim_end_matches('"')))
    })
}

/// What a part says, in SI units.
fn number(words: &str) -> Result<(What, f64), String> {
    let lower = words.to_lowercase();
    let plain = |text: &str| text.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    if let Some(share) = lower.strip_suffix("loss") {
        let share = share.trim().strip_suffix('%').and_then(plain);
        let share = share.ok_or_else(|| format!("`{words}` is no share of frames"))?;
        return Ok((What::Loss, share / 100.0));
    }
    if let Some(count) = lower.strip_prefix("bursts of") {
        let count = plain(count.trim().trim_end_matches("frames"));
        let count = count.ok_or_else(|| format!("`{words}` is no number of frames"))?;
        return Ok((What::Burst, count));
    }
    if let Some(count) = lower.strip_suffix("hops").or(lower.strip_suffix("hop")) {
        let count = plain(count).filter(|count| count.fract() == 0.0);
        let count = count.ok_or_else(|| format!("`{words}` is no number of hops"))?;
        return Ok((What::Hops, count));
    }
    if let Ok(length) = Length::parse(words) {
        return Ok((What::Distance, length.value()));
    }
    if let Ok(rate) = quantity::Rate::parse(words) {
        return Ok((What::Rate, rate.value()));
    }
    match Time::parse(words) {
        Ok(time) => Ok((What::Delay, time.value())),
        Err(_) => Err(format!("`{words}` is no number of a path")),
    }
}

impl Kind {
    fn usage(&self) -> String {
        let takes: Vec<&str> = self.takes.iter().map(|what| what.example()).collect();
        format!("`{}` takes {}", self.name, takes.join(", "))
    }
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Distance => "distance",
            What::Rate => "rate",
            What::Delay => "delay",
            What::Loss => "loss",
            What::Burst => "burst length",
            What::Hops => "number of hops",
        }
    }

    fn example(self) -> &'static str {
        match self {
            What::Distance => "`60 km`",
            What::Rate => "`2 Mbit/s`",
            What::Delay => "`100 ms` (one way)",
            What::Loss => "`10 % loss`",
            What::Burst => "`bursts of 4`",
            What::Hops => "`3 hops`",
        }
    }

    fn range(self) -> (f64, f64) {
        match self {
            What::Distance => (0.0, 500e3),
            What::Rate => (1e3, 200e6),
            What::Delay => (0.0, 10.0),
            What::Loss => (0.0, 0.9),
            What::Burst => (1.0, 1000.0),
            What::Hops => (1.0, 20.0),
        }
    }

    fn allowed(self) -> &'static str {
        match self {
            What::Distance => "at most 500 km",
            What::Rate => "1 kbit/s to 200 Mbit/s, which this computer can carry",
            What::Delay => "at most 10 s",
            What::Loss => "at most 90 %: beyond that no session is established",
            What::Burst => "1 to 1000 frames",
            What::Hops => "1 to 20",
        }
    }
}

/// The amendment that a rate is of.
fn standard(rate: Rate) -> &'static str {
    match rate {
        rate if rate.is_ht() => "802.11n",
        rate if rate.is_ofdm() => "802.11g",
        _ => "802.11b",
    }
}

/// 802.11 with the constants of `chappe_mac::dot11`. The cards wait for acknowledgements for as long as the distance needs, and
/// keep the standard's slot, as cards do on which an operator sets only the coverage class.
fn dot11(rate: Option<f64>, propagation: Duration, hops: u8) -> (Rate, Path) {
    let rate = rate.and_then(radio::rate_of).unwrap_or(Rate::Cck11);
    let config = dot11::Config::of_rate(rate);
    let ack = config.control.airtime(ACK_LEN + FCS_LEN);
    // DIFS, and half of the first back-off window.
    let contention = config.sifs.nanos() + config.slot.nanos() * 2;
    let contention = contention + config.slot.nanos() * u64::from(config.cw_min) / 2;
    let confirm = Confirm {
        takes: config.sifs + ack + propagation + propagation,
        retries: config.retry_short.saturating_sub(1),
        slot: config.slot,
        window: config.cw_min,
    };
    let path = Path {
        rate: rate.bitrate(),
        preamble: config.data.header_time(),
        contention: Duration::from_nanos(contention),
        header: DATA_HEADER_LEN + llc::LEN + FCS_LEN,
        share: ETHERNET,
        confirm: Some(confirm),
        hops,
        delay: propagation,
        ..wire()
    };
    (rate, path)
}

/// The MTU of Ethernet, which 802.11 carries in one frame.
const ETHERNET: usize = 1500;

/// A path without losses and delay. The queue is that of an emulated card (`chappe emu --queue`).
fn wire() -> Path {
    Path {
        rate: Bitrate(10_000_000),
        preamble: Duration::ZERO,
        contention: Duration::ZERO,
        header: 0,
        share: ETHERNET,
        confirm: None,
        hops: 1,
        delay: Duration::ZERO,
        duplex: false,
        loss: 0.0,
        burst: 0.0,
        mtu: ETHERNET,
        queue: 64,
    }
}

/// The length of the link of `chappe demo`.
const USUAL_METRES: f64 = 60e3;

fn wifi(numbers: &Numbers) -> Made {
    let metres = numbers.metres.unwrap_or(USUAL_METRES);
    let propagation = Duration::from_secs_f64(metres / SPEED_OF_LIGHT);
    let (rate, plain) = dot11(numbers.rate, propagation, 1);
    Made {
        radios: format!("{} at {rate} over {}", standard(rate), Length::new(metres)),
        plain,
        setting: Some("iw dev DEVICE set noack_map 0xffff"),
    }
}

fn mesh(numbers: &Numbers) -> Made {
    let hops = numbers.hops.unwrap_or(3.0) as u8;
    let (rate, plain) = dot11(numbers.rate, Duration::ZERO, hops);
    Made {
        radios: format!(
            "{hops} hops of {} at {rate}, all on one channel",
            standard(rate)
        ),
        plain,
        setting: None,
    }
}

/// One way over a geostationary satellite: 260 ms (ITU-T G.114, table A.1). The queue holds what is on the way in a round trip.
fn satellite(numbers: &Numbers) -> Made {
    let rate = Bitrate(numbers.rate.unwrap_or(10e6) as u64);
    let delay = Duration::from_secs_f64(numbers.delay.unwrap_or(0.260));
    Made {
        radios: format!("a satellite link of {rate} each way"),
        plain: Path {
            rate,
            delay,
            duplex: true,
            queue: in_flight(rate, delay),
            ..wire()
        },
        setting: None,
    }
}

fn bare_path(numbers: &Numbers) -> Made {
    let rate = Bitrate(numbers.rate.unwrap_or(10e6) as u64);
    let delay = Duration::from_secs_f64(numbers.delay.unwrap_or(0.010));
    Made {
        radios: format!("a path of {rate} for both ways together"),
        plain: Path {
            rate,
            delay,
            queue: in_flight(rate, delay),
            ..wire()
        },
        setting: None,
    }
}

/// Full packets that a round trip holds, but no fewer than an emulated card's queue.
fn in_flight(rate: Bitrate, delay: Duration) -> usize {
    let octets = rate.0 as f64 / 8.0 * 2.0 * delay.as_secs_f64();
    ((octets / ETHERNET as f64) as usize).max(wire().queue)
}

/// Motes' radios at 2.4 GHz (IEEE 802.15.4-2006) under 6LoWPAN (RFC 4944).
fn dot15d4(numbers: &Numbers) -> Made {
    // 127 octets (aMaxPHYPacketSize) less 9 of header with short addresses, 2 of check sequence and 5 of FRAGN, in units of eight.
    const HEADER: usize = 9 + 2 + 5;
    const SHARE: usize = (127 - HEADER) / 8 * 8;
    // In symbols of 16 us: half of the first back-off of 7 periods of 20 (macMinBE 3), the assessment 8, turnaround 12, the long
    // gap between frames 40.
    const CONTENTION: u64 = 70 + 8 + 12 + 40;
    // Turnaround 12, and an acknowledgement of 5 octets behind 6 of preamble and header, 2 symbols each.
    const CONFIRMATION: u64 = 12 + 2 * 11;
    let symbols = |count: u64| Duration::from_micros(16 * count);
    let mode = Mode::long(Rate::Oqpsk250);
    let hops = numbers.hops.unwrap_or(1.0) as u8;
    Made {
        radios: match hops {
            1 => "802.15.4 at 250 kbit/s, packets in 6LoWPAN fragments".into(),
            _ => format!("{hops} hops of 802.15.4 at 250 kbit/s, packets in 6LoWPAN fragments"),
        },
        plain: Path {
            rate: mode.rate.bitrate(),
            preamble: mode.header_time(),
            contention: symbols(CONTENTION),
            header: HEADER,
            share: SHARE,
            confirm: Some(Confirm {
                takes: symbols(CONFIRMATION),
                // macMaxFrameRetries.
                retries: 3,
                slot: Duration::ZERO,
                window: 0,
            }),
            hops,
            // The least MTU of IPv6, which 6LoWPAN carries.
            mtu: 1280,
            // Packets, of 12 frames each; Contiki-NG's queue holds 64 frames by default of larger boards.
            queue: 16,
            ..wire()
        },
        setting: None,
    }
}

/// LoRa with a spreading factor of 7, 125 kHz and code rate 4/5 (Semtech SX1276 data sheet, 4.1.1): a symbol of 128 chips carries
/// 7 bits, of which four fifths are data.
fn lora(_: &Numbers) -> Made {
    const SYMBOL_US: u64 = 1024;
    // Eight symbols of preamble, 4.25 that end it, eight of header.
    let preamble = Duration::from_micros(SYMBOL_US * 81 / 4);
    Made {
        radios: "LoRa's frames at 5.5 kbit/s, without limits of air time".into(),
        plain: Path {
            rate: Bitrate(7 * 4 * 1_000_000 / (5 * SYMBOL_US)),
            preamble,
            header: 2,
            // The largest payload of a frame.
            share: 255,
            mtu: 255,
            queue: 16,
            ..wire()
        },
        setting: None,
    }
}

fn numbers_of(path: &Path) -> String {
    let mut text = String::new();
    let delay_ms = path.delay.as_secs_f64() * 1e3;
    if delay_ms > 0.0 {
        let _ = write!(text, "{delay_ms:.3}");
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        text += " ms one way, ";
    }
    let _ = write!(
        text,
        "{} % of the frames lost",
        (path.loss * 1e4).round() / 100.0
    );
    if path.hops > 1 {
        text += " on each hop";
    }
    if path.burst > 1.0 {
        let _ = write!(text, " in bursts of {}", path.burst);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> NamedPath {
        NamedPath::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn names_and_numbers_are_read() {
        let wifi = path("wifi 60 km, 10 % loss");
        assert_eq!(wifi, path("wifi"));
        assert_eq!(wifi, path(" WiFi  60km ,10% loss"));
        assert_eq!(
            wifi.plain.delay,
            Duration::from_secs_f64(60e3 / SPEED_OF_LIGHT)
        );
        assert!(wifi.plain.confirm.is_some() && wifi.bare.confirm.is_none());
        let mesh = path("three-hop mesh, 20 % loss, bursts of 4, 2 Mbit/s");
        assert_eq!(
            (mesh.plain.hops, mesh.plain.loss, mesh.plain.burst),
            (3, 0.2, 4.0)
        );
        assert_eq!(mesh.plain.rate, Bitrate(2_000_000));
        assert_eq!(path("802.15.4 4 hops").plain.hops, 4);
        let own = path("6 Mbit/s, 20 ms, 30 % loss");
        assert_eq!((own.plain.rate, own.plain.loss), (Bitrate(6_000_000), 0.3));
        assert_eq!(path("lora-like").plain, path("lora").plain);
        for (name, _) in NamedPath::names() {
            assert!(path(name).plain.bound_bps() > 1e3, "{name}");
        }
    }

    #[test]
    fn mistakes_name_the_part_and_the_remedy() {
        for (text, says) in [
            ("wify 60 km", "did you mean `wifi`"),
            ("", "the names are"),
            ("wifi 3 hops", "wifi has no number of hops"),
            ("wifi 60 parsec", "`wifi` takes `60 km`"),
            ("wifi 7 Mbit/s", "1, 2, 5.5 and 11 Mbit/s"),
            ("mesh 95 % loss", "at most 90 %"),
            ("wifi 1 km, 2 km", "two values of distance"),
            ("mesh 2.5 hops", "no number of hops"),
            ("path 10 loss", "no share of frames"),
            ("satellite -5 ms", "at most 10 s"),
            ("path 1e999 ms", "no number of a path"),
            ("wifi 5km 10% loss", "write `5km, 10% loss`"),
            ("path, 20 ms bursts of 4", "write `20 ms, bursts of 4`"),
            ("wifi 6 Mbps", "write `6 Mbit/s`"),
        ] {
            let said = NamedPath::parse(text).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }

    /// The closed form of stop and wait, which `chappe-lab-wildnet`'s simulated link meets within 2 %: packets of 1440 octets at
    /// 11 Mbit/s get 6.05 Mbit/s beside each other and 5.15 over 50 km. Without acknowledgements, SIFS (10 us) and an acknowledgement
    /// at 2 Mbit/s (248 us) fall away, and both propagations.
    #[test]
    fn wifi_has_the_rates_of_the_simulated_link() {
        let rate = |path: &Path| {
            let mut fates = chappe_emu::Fates::new(path, chappe_core::Seed(1), 0);
            1440.0 * 8.0 / path.cross(1440, &mut fates).takes.as_secs_f64() / 1e6
        };
        let near = |bps: f64, expected: f64| (bps / expected - 1.0).abs() < 0.02;
        let [short, long] = ["0 km", "50 km"].map(|far| path(&format!("wifi {far}, 0 % loss")));
        assert!(near(rate(&short.plain), 6.05) && near(rate(&long.plain), 5.15));
        let bare = 1440.0 * 8.0 / (1440.0 * 8.0 / 6.05 - 258.0);
        assert!(near(rate(&long.bare), bare), "{} {bare}", rate(&long.bare));
    }
}
