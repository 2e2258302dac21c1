//! This crate's TCP under test.

use chappe_core::{HostNode, Instant};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{Config, Endpoint, Failure, Few, KeepAlive, NewReno, Phase, Unlimited};

use chappe_packet_script::{Answer, Call, LOCAL_PORT, REMOTE_PORT, Stack, span};

use super::host::{Connection, Host, Sizes, address};

/// A host whose parameters can be set until the first call.
pub struct Ours {
    config: Config,
    sizes: Sizes,
    congestion: Any,
    host: Option<Host>,
    socket: Option<usize>,
}

impl Default for Ours {
    fn default() -> Self {
        Ours {
            // Scripts speak of segments of 1000 octets; timestamps and ECN only where they are the subject.
            config: Config {
                mss: 1000,
                ecn: false,
                timestamps: false,
                ..Config::STANDARD
            },
            sizes: Sizes::default(),
            congestion: Any::NewReno(NewReno),
            host: None,
            socket: None,
        }
    }
}

impl Ours {
    fn host(&mut self) -> &mut Host {
        let (config, sizes, congestion) = (self.config, self.sizes, self.congestion);
        self.host
            .get_or_insert_with(|| Host::new(1, config, sizes, congestion))
    }

    /// The connection of the script; before `accept` the half-open one.
    fn connection(&self) -> Option<&Connection> {
        let sockets = &self.host.as_ref()?.sockets;
        sockets.get(self.socket.unwrap_or(0))
    }

    fn connection_mut(&mut self) -> Result<&mut Connection, String> {
        let socket = self.socket.ok_or("there is no connection")?;
        self.host()
            .sockets
            .get_mut(socket)
            .ok_or("no such socket".into())
    }
}

impl Stack for Ours {
    fn configure(&mut self, key: &str, value: &str) -> Result<(), String> {
        let on = || match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(format!("{key} is on or off")),
        };
        let count = || {
            value
                .parse::<usize>()
                .map_err(|_| format!("{key}: no number"))
        };
        let config = &mut self.config;
        match key {
            "mss" => config.mss = count()? as u16,
            "rto_min" => config.rto_min = span(value)?,
            "rto_initial" => config.rto_initial = span(value)?,
            "rto_max" => config.rto_max = span(value)?,
            "retries_max" => config.retries_max = count()? as u8,
            "syn_retries_max" => config.syn_retries_max = count()? as u8,
            "delayed_ack" => config.delayed_ack = span(value)?,
            "ack_every" => config.ack_every = count()? as u8,
            "persist_max" => config.persist_max = span(value)?,
            "user_timeout" => config.user_timeout = span(value)?,
            "keep_alive" => {
                let mut parts = value.split('/');
                let mut next = || parts.next().ok_or("keep_alive=idle/interval/probes");
                config.keep_alive = Some(KeepAlive {
                    idle: span(next()?)?,
                    interval: span(next()?)?,
                    probes: next()?.parse().map_err(|_| "probes")?,
                });
            }
            "time_wait" => config.time_wait = span(value)?,
            "fin_wait_2" => config.fin_wait_2 = span(value)?,
            "initial_window" => config.initial_window = count()? as u8,
            "challenge_acks" => config.challenge_acks = count()? as u8,
            "nagle" => config.nagle = on()?,
            "sack" => config.sack = on()?,
            "timestamps" => config.timestamps = on()?,
            "window_scale" => config.window_scale = on()?,
            "ecn" => config.ecn = on()?,
            "limited_transmit" => config.limited_transmit = on()?,
            "rack" => config.rack = on()?,
            "tail_loss_probe" => config.tail_loss_probe = on()?,
            "prr" => config.prr = on()?,
            "undo" => config.undo = on()?,
            "idle_restart" => config.idle_restart = on()?,
            "send_buffer" => self.sizes.send = count()?,
            "receive_buffer" => self.sizes.receive = count()?,
            "ranges" => self.sizes.ranges = count()?,
            "flight" => self.sizes.flight = count()?,
            "congestion" => {
                self.congestion = match value {
                    "newreno" => Any::NewReno(NewReno),
                    "few" => Any::Few(Few::default()),
                    "none" => Any::Unlimited(Unlimited),
                    _ => return Err(format!("no congestion control `{value}`")),
                }
            }
            _ => return Err(format!("no parameter `{key}`")),
        }
        Ok(())
    }

    fn call(&mut self, now: Instant, call: &Call) -> Result<Answer, String> {
        match call {
            Call::Listen => self.host().listen(LOCAL_PORT, u16::MAX),
            Call::Connect => {
                let remote = Endpoint::new(address(2), REMOTE_PORT);
                let socket = self.host().connect(now, LOCAL_PORT, remote);
                self.socket = Some(socket);
            }
            Call::Accept => {
                let socket = self.host().accepted.pop_front();
                self.socket = Some(socket.ok_or("no connection was accepted")?);
            }
            Call::Write(data) => return Ok(Answer::Written(self.connection_mut()?.write(data))),
            Call::Read(max) => {
                let mut data = vec![0; *max];
                let len = self.connection_mut()?.read(&mut data);
                data.truncate(len);
                return Ok(Answer::Read(data));
            }
            Call::Shutdown => self.connection_mut()?.shutdown(),
            Call::Close => self.connection_mut()?.close(now),
            Call::Abort => self.connection_mut()?.abort(),
        }
        Ok(Answer::Done)
    }

    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.host().handle_packet(now, packet);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        self.host().poll_packet(now, packet)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.host.as_ref()?.poll_timeout()?.at)
    }

    fn observe(&self, key: &str) -> Option<String> {
        let socket = self.connection()?;
        let info = socket.info();
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_string();
        let millis = |span: chappe_core::Duration| (span.nanos() / 1_000_000).to_string();
        Some(match key {
            "state" => info.state.name().to_string(),
            "failure" => match socket.failure() {
                None => "none",
                Some(Failure::Refused) => "refused",
                Some(Failure::Reset) => "reset",
                Some(Failure::TimedOut) => "timed-out",
                Some(Failure::Aborted) => "aborted",
            }
            .to_string(),
            "phase" => match info.phase {
                Phase::Open => "open",
                Phase::Reduced => "reduced",
                Phase::Fast => "fast",
                Phase::Loss => "loss",
            }
            .to_string(),
            "eof" => yes(socket.at_end()),
            "awaits" => yes(socket.awaits_answer()),
            "wake" => socket.poll_timeout()?.why.replace(' ', "-"),
            "cwnd" => info.cwnd.to_string(),
            "ssthresh" => info.ssthresh.to_string(),
            "in_flight" => info.in_flight.to_string(),
            "pipe" => info.pipe.to_string(),
            "sacked" => info.sacked.to_string(),
            "lost" => info.lost.to_string(),
            "retransmitted" => info.retransmitted.to_string(),
            "send_window" => info.send_window.to_string(),
            "receive_window" => info.receive_window.to_string(),
            "unacknowledged" => info.unacknowledged.to_string(),
            "send_mss" => info.send_mss.to_string(),
            "unread" => info.unread.to_string(),
            "gaps" => info.gaps.to_string(),
            "writable" => socket.writable().to_string(),
            "rto" => millis(info.rto),
            "srtt" => millis(info.srtt),
            "rttvar" => millis(info.rttvar),
            "min_rtt" => millis(info.min_rtt),
            "backoff" => info.backoff.to_string(),
            "reordering" => yes(info.reordering),
            "sack" => yes(info.sack),
            "timestamps" => yes(info.timestamps),
            "ecn" => yes(info.ecn),
            "window_scale" => yes(info.window_scale),
            "retransmits" => info.counters.retransmits.to_string(),
            "timeouts" => info.counters.timeouts.to_string(),
            "recoveries" => info.counters.recoveries.to_string(),
            "undone" => info.counters.undone.to_string(),
            "duplicates" => info.counters.duplicates.to_string(),
            "dropped" => info.counters.dropped.to_string(),
            _ => return None,
        })
    }
}
