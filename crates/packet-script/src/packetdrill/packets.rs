//! Packets in packetdrill's language.

use chappe_core::Duration;
use chappe_tcplp::tcp::Flags;

use super::calls::Calls;
use crate::packet::PacketSpec;
use crate::parse;

/// Who sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Peer,
    Stack,
}

/// Reads a packet: the text behind `<` or `>`.
pub fn packet(
    text: &str,
    side: Side,
    calls: &mut Calls,
    clock: Duration,
) -> Result<PacketSpec, String> {
    let text = text.trim();
    for (word, what) in [
        ("icmp", "ICMP"),
        ("udp", "UDP"),
        ("gre", "GRE"),
        ("ipv4", "IP in IP"),
        ("ipv6", "IP in IP"),
        ("mpls", "MPLS"),
        ("sctp", "SCTP"),
        ("[flowlabel", "flow labels"),
        ("(tos", "traffic class"),
        ("[tos", "traffic class"),
        ("(ttl", "hop limit"),
        ("(hlim", "hop limit"),
        ("addr[", "several addresses"),
    ] {
        if text.starts_with(word) {
            return Err(what.into());
        }
    }
    let (head, options) = match text.split_once('<') {
        Some((head, rest)) => (head, rest.split_once('>').map(|(options, _)| options)),
        None => (text, None),
    };
    if text.contains('<') && options.is_none() {
        return Err("options without an end".into());
    }
    // Both languages agree on the rest, but for `-`, which means no flag, and for words that have no space.
    let head = spaced(head);
    let mut spec = parse::packet(&head)?;
    if side == Side::Stack && !head.starts_with('[') {
        // Without a mark nothing is said of the ECN bits.
        spec.ecn = None;
    }
    if let Some(options) = options {
        spec.options = parse::options_of(&translated(options, side, calls, clock)?)?;
    }
    if side == Side::Stack {
        let given = &mut spec.options;
        if !given.any {
            // Here the list of options is complete.
            given.mss = given.mss.or(Some(None));
            given.window_scale = given.window_scale.or(Some(None));
            given.sack_permitted = given.sack_permitted.or(Some(false));
            given.timestamps = given.timestamps.or(Some(None));
        }
        given.shape = true;
        // FreeBSD answers a SYN without these options by a SYN-ACK with them where both ends open, against RFC 7323 2.5 and
        // 3.2. What such a script is about comes later.
        if let (true, Some((scale, timestamps))) =
            (spec.flags.has(Flags::SYN | Flags::ACK), calls.peer_syn)
        {
            given.window_scale = given.window_scale.filter(|_| scale);
            given.timestamps = given.timestamps.filter(|_| timestamps);
        }
    } else if spec.flags.has(Flags::SYN) {
        let has = &spec.options;
        calls.peer_syn = Some((has.window_scale.is_some(), has.timestamps.is_some()));
    }
    Ok(spec)
}

/// `1:1(0)` may be written `1:1 (0)`, and `-` is no flag.
fn spaced(head: &str) -> String {
    let words: Vec<&str> = head.split_whitespace().collect();
    let mut text = words.join(" ").replace(" (", "(");
    if let Some(rest) = text.strip_prefix("- ") {
        text = format!("0 {rest}");
    }
    text
}

/// Options in this crate's words. TSval of the stack counts from where it likes; the first one in the script gives the
/// origin, so that an echo that arrives later means the same moment.
fn translated(
    options: &str,
    side: Side,
    calls: &mut Calls,
    clock: Duration,
) -> Result<String, String> {
    let mut words = Vec::new();
    for option in options.split(',').map(str::trim) {
        let parts: Vec<&str> = option.split_whitespace().collect();
        match parts.as_slice() {
            ["nop" | "eol"] | [] => {}
            ["sackOK"] => words.push("sackok".to_string()),
            ["TS" | "ts", "val", value, "ecr", echo] => {
                let value = parse::number::<u32>(value)?;
                let echo = parse::number::<u32>(echo)?;
                let words_of = |value: u32, echo: u32| format!("ts {value} ecr {echo}");
                words.push(match side {
                    Side::Stack => {
                        let now = (clock.nanos() / 1_000_000) as u32;
                        calls.clock.get_or_insert(value.wrapping_sub(now));
                        words_of(0, echo)
                    }
                    Side::Peer => words_of(value, echo.wrapping_sub(calls.clock.unwrap_or(0))),
                });
            }
            ["..."] | ["mss" | "wscale", _] => words.push(option.to_string()),
            ["sack", ..] => words.push(option.to_string()),
            _ => return Err(format!("the option `{option}`")),
        }
    }
    Ok(words.join(", "))
}
