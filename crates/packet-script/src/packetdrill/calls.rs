//! System calls and `sysctl`.

use crate::parse::{Event, Line};

/// What the calls so far have told.
#[derive(Debug, Default)]
pub struct Calls {
    /// Whether the peer's last SYN had window scaling and timestamps.
    pub peer_syn: Option<(bool, bool)>,
    /// What to take from the script's values of the stack's timestamps to get milliseconds of the script.
    pub clock: Option<u32>,
    /// What the script wants switched off that no stack without that switch can leave undone.
    pub without: Option<String>,
    /// Whether a connection was begun or waited for.
    opened: bool,
    /// File descriptors that listen.
    listening: Vec<i64>,
    /// `SO_LINGER` of no time: `close` resets.
    abrupt: bool,
    /// Parameters by socket options, which this crate sets before the script begins.
    config: Vec<(String, String)>,
    /// FreeBSD's `ecn.enable` of 2: accept ECN, do not ask for it.
    ecn_if_asked: bool,
}

/// Names of `sysctl` that leave the stack under test as it is: other resources, other systems' state, measurements.
const WITHOUT_EFFECT: [&str; 12] = [
    "hostcache",
    "maxsockbuf",
    "recvspace",
    "sendspace",
    "keepinit",
    "rexmit_slop",
    "rexmit_drop_options",
    "syncookies",
    "functions_default",
    "cc.algorithm",
    "path_mtu_discovery",
    "icmp",
];

impl Calls {
    /// The parameters that socket options and the kind of opening ask for.
    pub fn config(&self, lines: &[Line]) -> Vec<(String, String)> {
        let mut config = self.config.clone();
        let listens = lines.iter().any(|line| matches!(line.event, Event::Listen));
        if self.ecn_if_asked && listens {
            config.push(("ecn".into(), "on".into()));
        }
        config
    }

    /// A command between back quotes; `None` if nothing is to be played.
    pub fn command(
        &mut self,
        command: &str,
        config: &mut Vec<(String, String)>,
    ) -> Result<Option<Event>, String> {
        if command.starts_with("sockstat") {
            return self.state_of(command);
        }
        let words = command.split_whitespace();
        let pairs = words.filter_map(|word| word.split_once('='));
        // Google's suite sets Linux's defaults by a script of its own.
        if !command.contains("sysctl") && !command.contains("defaults.sh") {
            return Err(format!("the command `{command}`"));
        }
        for (name, value) in pairs {
            self.parameter(name, value, config)?;
        }
        Ok(None)
    }

    /// `sockstat ... | grep -c TIME_WAIT | grep 1`: FreeBSD's look at how many connections are in a state.
    fn state_of(&self, command: &str) -> Result<Option<Event>, String> {
        let told = command
            .rsplit_once("| grep -c ")
            .and_then(|(_, rest)| rest.split_once(" | grep "));
        match told {
            Some((state, "1")) => {
                let state = state.replace('_', "-").replace("RCVD", "RECEIVED");
                Ok(Some(Event::Expect(vec![("state".into(), state)])))
            }
            // Leftovers of other scripts, which do not exist here.
            Some((_, "0")) if !self.opened => Ok(None),
            _ => Err(format!("the command `{command}`")),
        }
    }

    fn parameter(
        &mut self,
        name: &str,
        value: &str,
        config: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        let name = name
            .trim_start_matches("net.inet.tcp.")
            .trim_start_matches("net.ipv4.tcp_")
            .trim_start_matches("/proc/sys/net/ipv4/tcp_");
        let on = if value == "0" { "off" } else { "on" };
        let mut set = |key: &str, value: String| config.push((key.into(), value));
        match name {
            "sack.enable" | "sack" => set("sack", on.into()),
            "rfc1323" => {
                set("timestamps", on.into());
                set("window_scale", on.into());
            }
            "timestamps" => set("timestamps", on.into()),
            "window_scaling" => set("window_scale", on.into()),
            "ecn.enable" | "ecn" => {
                self.ecn_if_asked = value == "2";
                set("ecn", if value == "1" { "on" } else { "off" }.into());
            }
            "delacktime" => set("delayed_ack", format!("{value}ms")),
            "rexmit_initial" => set("rto_initial", format!("{value}ms")),
            "rexmit_min" => set("rto_min", format!("{value}ms")),
            "msl" => {
                let msl: u64 = value.parse().map_err(|_| format!("msl `{value}`"))?;
                set("time_wait", format!("{}ms", 2 * msl));
            }
            // The opposite of RFC 5961. Many such scripts are about what is the same with and without it.
            "insecure_rst" | "insecure_syn" | "insecure_ack" if value != "0" => {
                self.without = Some(format!("without RFC 5961 ({name})"));
            }
            "insecure_rst" | "insecure_syn" | "insecure_ack" => {}
            "blackhole" if value != "0" => return Err("silence of closed ports".into()),
            "blackhole" => {}
            _ if WITHOUT_EFFECT.iter().any(|word| name.contains(word)) => {}
            _ => return Err(format!("the parameter `{name}`")),
        }
        Ok(())
    }

    /// `name(arguments) = result`; `None` if nothing happens to the connection.
    pub fn call(&mut self, text: &str) -> Result<Option<Event>, String> {
        let (name, rest) = text.split_once('(').ok_or(format!("`{text}`"))?;
        let end = rest
            .rfind(") =")
            .or(rest.rfind(")="))
            .ok_or("a call without a result")?;
        let (arguments, result) = rest.split_at(end);
        let result = result
            .trim_start_matches(')')
            .trim_start_matches([' ', '='])
            .trim();
        let fd = arguments
            .split(',')
            .next()
            .unwrap_or("")
            .trim()
            .parse()
            .unwrap_or(-1);
        let has = |word: &str| arguments.contains(word);
        match name.trim() {
            "socket" | "bind" | "fcntl" => Ok(None),
            "listen" => {
                self.opened = true;
                self.listening.push(fd);
                Ok(Some(Event::Listen))
            }
            "connect" => {
                self.opened = true;
                Ok(Some(Event::Connect))
            }
            "accept" => Ok(Some(Event::Accept)),
            "close" if self.listening.contains(&fd) || !self.opened => Ok(None),
            "close" if self.abrupt => Ok(Some(Event::Abort)),
            "close" => Ok(Some(Event::Close)),
            "shutdown" if has("SHUT_WR") || has("SHUT_RDWR") => Ok(Some(Event::Shutdown)),
            "read" | "recv" | "recvfrom" => received(arguments, result).map(Some),
            "write" | "send" | "sendto" => sent(arguments, result).map(Some),
            "getsockopt" if has("SO_ERROR") => failure(arguments).map(Some),
            // How a kernel rounds its buffers.
            "getsockopt" if has("SO_RCVBUF") || has("SO_SNDBUF") => Ok(None),
            "setsockopt" => self.option(arguments).map(|()| None),
            "getsockopt" => Err(format!("getsockopt of {}", option_name(arguments))),
            other => Err(format!("the call `{other}`")),
        }
    }

    fn option(&mut self, arguments: &str) -> Result<(), String> {
        let value = || -> Result<String, String> {
            let inside = arguments
                .split_once('[')
                .and_then(|(_, rest)| rest.split_once(']'));
            let (value, _) = inside.ok_or("a socket option without a value")?;
            Ok(value.trim().into())
        };
        let on = |value: String| if value == "0" { "off" } else { "on" }.to_string();
        let not = |value: String| if value == "0" { "on" } else { "off" }.to_string();
        match option_name(arguments) {
            "SO_REUSEADDR" => {}
            "SO_RCVBUF" => self.config.push(("receive_buffer".into(), value()?)),
            "SO_SNDBUF" => self.config.push(("send_buffer".into(), value()?)),
            "TCP_NODELAY" => self.config.push(("nagle".into(), not(value()?))),
            "TCP_MAXSEG" => self.config.push(("mss".into(), value()?)),
            "TCP_NOOPT" if on(value()?) == "on" => {
                for key in ["sack", "timestamps", "window_scale"] {
                    self.config.push((key.into(), "off".into()));
                }
            }
            // A limit on the opening that scripts set beyond what they wait for.
            "TCP_KEEPINIT" => {}
            "SO_LINGER" => self.abrupt = arguments.contains("onoff=1"),
            other => return Err(format!("setsockopt of {other}")),
        }
        Ok(())
    }
}

/// The third argument from the front: descriptor, level, name.
fn option_name(arguments: &str) -> &str {
    arguments.split(',').nth(2).unwrap_or("").trim()
}

/// `4, ..., 1024, MSG_PEEK` and a result: octets, 0 at the end, or -1 with the reason.
fn received(arguments: &str, result: &str) -> Result<Event, String> {
    let max = arguments.split(',').nth(2).unwrap_or("").trim();
    let max: usize = max.parse().map_err(|_| format!("a read of `{max}`"))?;
    let word = result.split_whitespace().next().unwrap_or("");
    let unread = |octets: usize| Event::Expect(vec![("unread".into(), octets.to_string())]);
    match word {
        "0" => Ok(Event::Eof),
        "-1" if result.contains("EAGAIN") => Ok(unread(0)),
        "-1" => failure(&format!(
            "[{}]",
            result.split_whitespace().nth(1).unwrap_or("")
        )),
        octets => {
            let got: usize = octets
                .parse()
                .map_err(|_| format!("a read of `{octets}`"))?;
            // What a look takes is what lies there, unless there is more than it takes.
            match arguments.contains("MSG_PEEK") {
                true if got < max => Ok(unread(got)),
                true => Err("a look at a part of what lies there".into()),
                false => Ok(Event::Read { max, got }),
            }
        }
    }
}

fn sent(arguments: &str, result: &str) -> Result<Event, String> {
    let len = arguments.split(',').nth(2).unwrap_or("").trim();
    let len = len.parse().map_err(|_| format!("a write of `{len}`"))?;
    let taken = result.split_whitespace().next().unwrap_or("");
    let taken = taken
        .parse()
        .map_err(|_| format!("a write that ends with `{result}`"))?;
    Ok(Event::Write { len, taken })
}

/// `SO_ERROR, [ETIMEDOUT]` and the like.
fn failure(arguments: &str) -> Result<Event, String> {
    let error = arguments
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let want = match error.map_or("", |(error, _)| error.trim()) {
        "0" => "none",
        "ECONNREFUSED" => "refused",
        "ECONNRESET" => "reset",
        "ETIMEDOUT" => "timed-out",
        "ECONNABORTED" => "aborted",
        other => return Err(format!("the error `{other}`")),
    };
    Ok(Event::Expect(vec![("failure".into(), want.into())]))
}
