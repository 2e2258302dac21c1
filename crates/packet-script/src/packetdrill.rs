//! Scripts in packetdrill's language (N. Cardwell and others, "packetdrill: Scriptable Network Stack Testing, from Sockets
//! to Packets", USENIX ATC 2013), as Google's and FreeBSD's suites have them, read into lines of this crate.
//!
//! Such a script speaks of a kernel: file descriptors, socket options, `sysctl`. What has a counterpart here is translated;
//! what has none makes the script one that cannot be played, which is not a failure of the stack.

mod calls;
mod packets;
mod statements;

use chappe_core::Duration;

use crate::parse::{Event, Line, Script};
use calls::Calls;
use statements::{Moment, Statement, statements};

/// How a script of packetdrill ended that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortfall {
    /// The script asks for what this crate cannot express or observe, in these words.
    Unplayable(String),
    /// The stack did something else than the script says.
    Failed(String),
}

/// What kernels do where a script sets nothing, as parameters of a stack. They differ from this crate's defaults: scripts
/// of others rely on them without saying so.
const KERNEL: [(&str, &str); 5] = [
    // `net.inet.tcp.recvspace` and `sendspace` of FreeBSD.
    ("receive_buffer", "65536"),
    ("send_buffer", "32768"),
    // RFC 6928, in both kernels.
    ("initial_window", "10"),
    ("timestamps", "on"),
    ("window_scale", "on"),
];

/// Reads a script of packetdrill.
pub fn read(text: &str) -> Result<Script, String> {
    let mut script = Script::default();
    for (key, value) in KERNEL {
        script.config.push((key.into(), value.into()));
    }
    let mut version_6 = true;
    let mut calls = Calls::default();
    let mut clock = Duration::ZERO;
    let found = statements(text)?;
    for statement in &found {
        let fail =
            |why: String| format!("line {}: {why}\n  | {}", statement.number, statement.text);
        if let Some(option) = statement.text.strip_prefix("--") {
            option_of(option, &mut script, &mut version_6);
            continue;
        }
        let (moment, rest) = statements::moment(&statement.text).map_err(fail)?;
        let (after, until) = spans(moment, &mut clock);
        let event = event(rest, &mut calls, &mut script, clock).map_err(fail)?;
        match event {
            Some(event) => script.lines.push(line(statement, after, until, event)),
            // Its time still passes.
            None if after > Duration::ZERO => {
                script
                    .lines
                    .push(line(statement, after, None, Event::Quiet));
            }
            None => {}
        }
    }
    // Ethernet's 1500 octets without headers, as both kernels offer it.
    let mss = if version_6 { "1440" } else { "1460" };
    script.config.insert(0, ("mss".into(), mss.into()));
    script.config.extend(calls.config(&script.lines));
    script.without = calls.without;
    // packetdrill looks at a packet only when a line awaits one.
    script.open_end = true;
    Ok(script)
}

fn line(statement: &Statement, after: Duration, until: Option<Duration>, event: Event) -> Line {
    Line {
        number: statement.number,
        text: statement.text.clone(),
        after,
        until,
        event,
    }
}

/// `--ip_version=ipv4`, `--tolerance_usecs=10000`; others do not matter here.
fn option_of(option: &str, script: &mut Script, version_6: &mut bool) {
    match option.split_once('=') {
        Some(("ip_version", version)) => *version_6 = version.trim() != "ipv4",
        Some(("tolerance_usecs", micros)) => {
            let micros = micros.trim().parse().ok();
            script.tolerance = micros.map(Duration::from_micros);
        }
        _ => {}
    }
}

/// From a moment to the times of a line, which count from the line before; `clock` is the time of that line.
fn spans(moment: Moment, clock: &mut Duration) -> (Duration, Option<Duration>) {
    /// Longer than any timer of TCP.
    const WHENEVER: Duration = Duration::from_secs(86_400);
    match moment {
        Moment::After(after) => {
            *clock += after;
            (after, None)
        }
        Moment::Between(from, to) => {
            *clock += from;
            (from, Some(to))
        }
        Moment::At(at) => {
            let after = at.saturating_sub(*clock);
            *clock = at.max(*clock);
            (after, None)
        }
        Moment::Any => (Duration::ZERO, Some(WHENEVER)),
    }
}

fn event(
    rest: &str,
    calls: &mut Calls,
    script: &mut Script,
    clock: Duration,
) -> Result<Option<Event>, String> {
    match rest.chars().next() {
        Some('<') => {
            let spec = packets::packet(&rest[1..], packets::Side::Peer, calls, clock)?;
            Ok(Some(Event::Arrives(spec)))
        }
        Some('>') => {
            let spec = packets::packet(&rest[1..], packets::Side::Stack, calls, clock)?;
            Ok(Some(Event::Leaves(spec)))
        }
        Some('`') => calls.command(rest.trim_matches('`'), &mut script.config),
        Some('%') => Err("code in another language".into()),
        _ => calls.call(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<String> {
        let script = read(text).unwrap();
        script
            .lines
            .iter()
            .map(|line| format!("{:?}", line.event))
            .collect()
    }

    /// Goal: statements, comments and times are read as packetdrill does. Method: one of each kind.
    #[test]
    fn statements_and_times() {
        let text = "--ip_version=ipv4\n--tolerance_usecs=5000\n\n// A comment.\n 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
            +0 bind(3, ...,\n   ...) = 0 /* over\nlines */\n+0 listen(3, 1) = 0\n+ 0.5 < S 0:0(0) win 100 <mss 9,nop>\n\
            2.5 > S. 0:0(0) ack 1 <...>\n+0~+.1 > . 1:1(0) ack 1\n* > . 1:1(0) ack 1\n0.1...0.2 close(3) = 0\n";
        let script = read(text).unwrap();
        assert_eq!(script.tolerance, Some(Duration::from_millis(5)));
        assert!(script.config.contains(&("mss".into(), "1460".into())));
        let times: Vec<_> = script
            .lines
            .iter()
            .map(|line| (line.after, line.until))
            .collect();
        let zero = Duration::ZERO;
        assert_eq!(
            times,
            [
                (zero, None),
                (Duration::from_millis(500), None),
                (Duration::from_secs(2), None),
                (zero, Some(Duration::from_millis(100))),
                (zero, Some(Duration::from_secs(86_400))),
            ],
            "closing the socket that listens is no event"
        );
    }

    /// Goal: a read of nothing, of a part, at the end and with a look become what the player checks.
    #[test]
    fn reads() {
        let open = "0 listen(3, 1) = 0\n+0 accept(3, ..., ...) = 4\n";
        for (call, want) in [
            (
                "recv(4, ..., 1024, MSG_PEEK) = 99",
                "Expect([(\"unread\", \"99\")])",
            ),
            ("read(4, ..., 1024) = 99", "Read { max: 1024, got: 99 }"),
            ("read(4, ..., 1024) = 0", "Eof"),
            (
                "read(4, ..., 10) = -1 EAGAIN (Try again)",
                "Expect([(\"unread\", \"0\")])",
            ),
            (
                "getsockopt(4, SOL_SOCKET, SO_ERROR, [ECONNRESET], [4]) = 0",
                "Expect([(\"failure\", \"reset\")])",
            ),
            (
                "send(4, ..., 1000, 0) = 500",
                "Write { len: 1000, taken: 500 }",
            ),
        ] {
            assert_eq!(events(&format!("{open}+0 {call}\n"))[2], want, "{call}");
        }
    }

    /// Goal: FreeBSD's looks at states are checks, of parts for several stacks the standard's is played, and nothing closes what
    /// was never opened. Method: one of each.
    #[test]
    fn states_and_parts() {
        let look = "`sockstat -6 -P tcp -s | grep -c";
        let text = format!(
            "0 {look} SYN_RCVD | grep 0`\n+0 close(9) = 0\n+0 listen(3, 1) = 0\n+0 {look} SYN_RCVD | grep 1`\n#ifdef STANDARD\n\
             +0 accept(3, ..., ...) = 4\n#else\n+0 poll(...) = 1\n#endif\n#ifdef FreeBSD\n+0 poll(...) = 1\n#else\n\
             +0 close(4) = 0\n#endif\n"
        );
        let state = "Expect([(\"state\", \"SYN-RECEIVED\")])";
        assert_eq!(events(&text), ["Listen", state, "Accept", "Close"]);
    }

    /// Goal: what cannot be expressed is named with its line, before anything is played.
    #[test]
    fn what_cannot_be_played() {
        for (line, why) in [
            ("+0 < icmp unreachable [1:1(0)]", "ICMP"),
            ("+0 < [flowlabel 0x1] . 1:1(0)", "flow labels"),
            ("+0 > S 0:0(0) <FO aaaa>", "the option `FO aaaa`"),
            ("+0 %{ assert tcpi_unacked == 1 }%", "another language"),
            ("+0 poll(...) = 1", "the call `poll`"),
            (
                "+0 getsockopt(3, SOL_TCP, TCP_INFO, {}, [9]) = 0",
                "TCP_INFO",
            ),
            (
                "+0 `sysctl -w net.inet.tcp.blackhole=2`",
                "silence of closed ports",
            ),
            ("+0 `sockstat -6 -s`", "the command"),
            ("+0 `ip route replace x`", "the command"),
            ("+x close(3) = 0", "not a time"),
            ("+0 < S 0:9(0)", "seq + len is not end"),
        ] {
            let said = read(&format!("// Line 1.\n{line}\n"))
                .map(|_| ())
                .unwrap_err();
            assert!(
                said.starts_with("line 2: ") && said.contains(why),
                "{line}: {said}"
            );
        }
        let said = read("listen(3, 1) = 0\n").map(|_| ()).unwrap_err();
        assert!(said.contains("does not begin with a time"), "{said}");
    }
}
