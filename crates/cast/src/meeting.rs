//! Senders and receivers that meet in virtual time.
//!
//! Goal: no session waits for what never comes, and no sender counts a receiver as complete that does not have the file. Method: the
//! roles of sessions, with files on the disk, over a link in virtual time that all share; work of threads is done at once. Hosts
//! start, are killed and start again at drawn moments.

mod cases;

use std::fs;
use std::path::PathBuf;

use chappe_core::{
    Address, Arrival, Bitrate, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose,
    Seed, Stream,
};
use chappe_live::{Neighbour, Statistics};

use crate::error::Error;
use crate::event::{Event, Summary};
use crate::group::Seat;
use crate::manifest::Protocol;
use crate::member::{Member, Settings};
use crate::receiver::{Receiver, Receiving, Relay};
use crate::roster::Roles;
use crate::scratch::Scratch;
use crate::sender::{Sender, Sending};
use crate::session::{Role, Watch};
use crate::work::Rope;

const FRAME_MAX: usize = 1442;
const RATE: Bitrate = Bitrate(8_000_000);
const STEP: Duration = Duration::from_millis(1);
/// Members of the group.
const MEMBERS: u16 = 8;
/// How long a host that has left repeats its goodbye, as a session does.
const GOODBYE: Duration = Duration::from_millis(350);
/// After which time a silent host is no neighbour any more, as on the link.
const SILENT: Duration = Duration::from_secs(3);

/// What a host does.
enum Part {
    Sends(Box<Sender<'static>>),
    Receives(Box<Receiver<'static>>),
    Relays(Relay),
}

impl Part {
    fn role(&mut self) -> &mut dyn Role {
        match self {
            Part::Sends(sender) => &mut **sender,
            Part::Receives(receiver) => &mut **receiver,
            Part::Relays(relay) => relay,
        }
    }
}

/// A watcher that keeps no event.
struct Deaf;

impl Watch for Deaf {
    fn event(&mut self, _: Event) {}
}

struct Host {
    node: u16,
    life: u64,
    started: Instant,
    member: Member,
    part: Part,
    /// When it is gone, once its role has ended.
    gone: Option<Instant>,
    free: Instant,
}

/// How a session has ended.
#[derive(Debug)]
struct End {
    node: u16,
    /// What a sender says of its receivers.
    summary: Option<Summary>,
    /// Why it has failed.
    error: Option<Error>,
}

/// Hosts that hear each other.
struct Meeting {
    place: Scratch,
    now: Instant,
    lives: u64,
    loss: f64,
    random: Stream,
    hosts: Vec<Host>,
    /// When a frame of each host was last sent, and in which life.
    heard: Vec<(u64, Instant)>,
    /// Hosts that neither hear nor are heard, and since when.
    away: Vec<(u16, Instant)>,
    /// Pairs of hosts that do not hear each other.
    apart: Vec<(u16, u16)>,
    ends: Vec<End>,
}

impl Meeting {
    fn new(name: &str, seed: u64, loss: f64) -> Meeting {
        Meeting {
            place: Scratch::new(&format!("{name}-{seed}")),
            now: Instant::ZERO,
            lives: 100,
            loss,
            random: Seed(seed).stream(Purpose::Reception),
            hosts: Vec::new(),
            heard: vec![(0, Instant::ZERO); MEMBERS.into()],
            away: Vec::new(),
            apart: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// A file of `len` octets that no pattern can hide, in a folder of that name.
    fn file(&self, folder: &str, len: usize) -> PathBuf {
        let mut octets = vec![0; len];
        Seed(len as u64)
            .stream(Purpose::Traffic(0))
            .fill(&mut octets);
        let path = self.place.path(folder);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("a.bin"), octets).unwrap();
        path.join("a.bin")
    }

    /// A member that sends or receives, or neither.
    fn member(&mut self, node: u16, sends: Option<bool>) -> Member {
        let settings = Settings {
            seat: Seat::example(node, MEMBERS, 1),
            roles: Roles {
                sends: sends == Some(true),
                receives: sends == Some(false),
                leaves: false,
            },
            frame_max: FRAME_MAX,
            memory: 8_000_000,
            rate: RATE,
            shared: false,
        };
        self.lives += 1;
        let random = Seed(self.random.next_u64()).stream(Purpose::Node(node.into()));
        Member::new(settings, random)
    }

    /// Starts a sender of this file, in packets of `payload` octets, for `receivers`.
    fn send(&mut self, node: u16, file: PathBuf, receivers: usize, payload: u16) {
        let sending: &'static Sending = Box::leak(Box::new(Sending {
            files: vec![file],
            receivers,
            wait: Duration::from_secs(20),
            keep: false,
            protocol: match std::env::var("CAST_PROTOCOL").as_deref() {
                Ok("pacifier") => Protocol::Pacifier,
                _ => Protocol::Improved,
            },
            nodes: 8,
            k: 32,
            expires: None,
            fleet: None,
        }));
        let member = self.member(node, Some(true));
        let seat = Seat::example(node, MEMBERS, 1);
        let measuring = Duration::from_millis(300);
        let sender = Sender::new(sending, &seat, measuring, payload, Rope::at_once());
        self.join(node, member, Part::Sends(Box::new(sender)));
    }

    /// Starts a receiver, which stays for further transfers with `keep`.
    fn receive(&mut self, node: u16, keep: bool) {
        let folder = self.folder(node);
        fs::create_dir_all(&folder).unwrap();
        let receiving: &'static Receiving = Box::leak(Box::new(Receiving {
            folder,
            overwrite: false,
            keep,
            whole: false,
            rollback: false,
            then: None,
            keep_parts: Duration::from_secs(3600),
        }));
        let member = self.member(node, Some(false));
        let receiver = Receiver::new(receiving, node, (FRAME_MAX, 1500), Rope::at_once());
        self.join(node, member, Part::Receives(Box::new(receiver)));
    }

    /// Starts a relay between two groups of hosts, which do not hear each other any more.
    fn relay(&mut self, node: u16, one: &[u16], other: &[u16]) {
        let member = self.member(node, None);
        self.join(node, member, Part::Relays(Relay));
        let pairs = one
            .iter()
            .flat_map(|&one| other.iter().map(move |&other| (one, other)));
        self.apart.extend(pairs);
    }

    /// Whether two hosts hear each other.
    fn hear(&self, one: u16, other: u16) -> bool {
        let away = self.away(one).or(self.away(other)).is_some();
        let apart = |&pair: &(u16, u16)| pair == (one, other) || pair == (other, one);
        !away && !self.apart.iter().any(apart)
    }

    fn folder(&self, node: u16) -> PathBuf {
        self.place.path(&format!("r{node}"))
    }

    fn join(&mut self, node: u16, member: Member, part: Part) {
        self.hosts.push(Host {
            node,
            life: self.lives,
            started: self.now,
            member,
            part,
            gone: None,
            free: self.now,
        });
    }

    /// Ends a host without a word. Returns whether it was there.
    fn kill(&mut self, node: u16) -> bool {
        let before = self.hosts.len();
        self.hosts.retain(|host| host.node != node);
        self.hosts.len() < before
    }

    /// Since when a host is away, if it is.
    fn away(&self, node: u16) -> Option<Instant> {
        let away = self.away.iter().find(|(away, _)| *away == node);
        away.map(|(_, since)| *since)
    }

    fn statistics(&self, host: &Host) -> Statistics {
        let share = 1.0 - self.loss;
        let apart = |one, other| self.apart.contains(&(one, other));
        let near = (0..MEMBERS).filter(|&node| node != host.node);
        let near = near.filter(|&node| !apart(node, host.node) && !apart(host.node, node));
        let last = self.away(host.node).unwrap_or(self.now);
        let near = near.map(|node| {
            let (life, heard) = self.heard[usize::from(node)];
            (node, (life, heard.min(last)))
        });
        let there = near
            .filter(|(_, (life, heard))| *life > 0 && self.now.saturating_since(*heard) < SILENT);
        let near = there.map(|(node, (life, heard))| Neighbour {
            address: Address::node(node),
            life,
            heard: heard.max(host.started),
            from: share,
            to: Some(share),
            sent: 0,
        });
        Statistics {
            life: host.life,
            hellos_sent: self.now.saturating_since(host.started).nanos() / 50_000_000,
            neighbours: near.collect(),
            ..Statistics::default()
        }
    }

    /// Lets a host's role go on until it waits for the link. Notes how it has ended.
    fn play(&mut self, at: usize) {
        let statistics = self.statistics(&self.hosts[at]);
        let now = self.now;
        let host = &mut self.hosts[at];
        if !self.away.iter().any(|(away, _)| *away == host.node) {
            // A hello, which the link sends.
            self.heard[usize::from(host.node)] = (host.life, now);
        }
        if host.gone.is_some() {
            return;
        }
        if now.nanos().is_multiple_of(10_000_000) {
            host.member.observe(now, &statistics);
        }
        let role = host.part.role();
        let flow = role.step(now, &mut host.member, &statistics, &mut Deaf);
        let over = match &flow {
            Ok(flow) => flow.is_break(),
            Err(_) => true,
        };
        if !over {
            return;
        }
        host.member.leave(now);
        host.gone = Some(now + GOODBYE);
        let error = match (flow, &host.part) {
            (Err(error), _) => Some(error),
            (Ok(_), Part::Sends(_) | Part::Relays(_)) => None,
            (Ok(_), Part::Receives(receiver)) => receiver.failure().cloned(),
        };
        let summary = match &host.part {
            Part::Sends(sender) => Some(sender.summary.clone()),
            Part::Receives(_) | Part::Relays(_) => None,
        };
        self.ends.push(End {
            node: host.node,
            summary,
            error,
        });
    }

    fn transmit(&mut self, at: usize) {
        let mut sdu = [0; FRAME_MAX];
        let now = self.now;
        while self.hosts[at].free <= now {
            let host = &mut self.hosts[at];
            let Some(send) = host.member.poll_link(now, Classes::ALL, &mut sdu) else {
                return;
            };
            host.free = host.free.max(now.saturating_before(STEP))
                + RATE.time_of((send.len as u64 + 72) * 8);
            let from = host.node;
            let mut taken = false;
            for other in (0..self.hosts.len()).filter(|&other| other != at) {
                let to = self.hosts[other].node;
                if !self.hear(from, to) {
                    continue;
                }
                let arrives = match send.to.is_broadcast() {
                    true => !self.random.chance(self.loss),
                    false => send.to == Address::node(to),
                };
                if arrives {
                    taken = true;
                    let arrival = Arrival {
                        from: Address::node(from),
                        to: send.to,
                        sdu: &sdu[..send.len],
                        power: None,
                    };
                    let member = &mut self.hosts[other].member;
                    member.handle_link(now, LinkEvent::Received(arrival));
                }
            }
            let outcome = match (send.to.is_broadcast(), taken) {
                (true, _) => Outcome::Unconfirmed,
                (false, true) => Outcome::Acknowledged { attempts: 1 },
                (false, false) => Outcome::Failed { attempts: 7 },
            };
            let token = send.token;
            let sent = LinkEvent::Sent { token, outcome };
            self.hosts[at].member.handle_link(now, sent);
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        let now = self.now;
        for at in 0..self.hosts.len() {
            self.play(at);
            let member = &mut self.hosts[at].member;
            if member.poll_timeout().is_some_and(|wake| wake.at <= now) {
                member.handle_timeout(now);
            }
            self.transmit(at);
        }
        self.hosts
            .retain(|host| host.gone.is_none_or(|gone| gone > now));
    }

    fn run_until(&mut self, end: Instant) {
        while self.now < end {
            self.step();
        }
    }

    /// Runs until no sender is there, or the end of patience. Returns how long it took.
    fn run_out(&mut self, patience: Duration) -> Option<Duration> {
        let begun = self.now;
        let sends = |host: &Host| matches!(host.part, Part::Sends(_)) && host.gone.is_none();
        while self.hosts.iter().any(sends) {
            if self.now > begun + patience {
                return None;
            }
            self.step();
        }
        Some(self.now.saturating_since(begun))
    }

    /// What a sender has said at its end, the last time that it ran to its end.
    fn end(&self, node: u16) -> Option<&End> {
        self.ends.iter().rev().find(|end| end.node == node)
    }

    /// The states of all hosts, for a failure's message.
    fn states(&self) -> String {
        let mut text = String::new();
        for host in &self.hosts {
            text += &format!(
                "\nhost {}: receivers {:?}",
                host.node,
                host.member.receivers()
            );
            for ticket in host.member.tickets() {
                text += &format!("\n  ticket of {}: {:x}", ticket.source, ticket.id());
            }
            for record in host.member.roster().all(self.now) {
                text += &format!("\n  record of {}: {:x?}", record.node, record.transfers);
            }
        }
        text
    }
}
