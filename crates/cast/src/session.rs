//! A member on a real interface, from the opening of the link to the goodbye.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use chappe_core::{Address, Bitrate, Duration, Instant, Purpose, Seed};
use chappe_live::{Carrier, Config, GroupKey, Hellos, Live, Loss, Pace, Port, Statistics};
use chappe_sys::wireless;

use crate::error::{Error, Result};
use crate::event::{Event, Link};
use crate::key::VerifyKey;
use crate::member::{Member, Settings};
use crate::roster::{MEMBER_MAX, Record, Roles};

/// How a member reaches the others.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interfaces, by name: one, or all that a router is to join. Each gets its own frames at full rate.
    pub interfaces: Vec<String>,
    /// What carries the frames.
    pub carrier: Carrier,
    /// The group's key.
    pub key: GroupKey,
    /// The member's number; without it, the last octet of the interface's IPv4 address, or of its hardware address.
    pub node: Option<u16>,
    /// The name that others see; without it, the host's.
    pub name: Option<String>,
    /// How fast frames leave, headers of all layers included.
    pub rate: Bitrate,
    /// Whether members take each other's airtime; without it, shared if one of the interfaces leads to a radio
    /// ([`wireless::is_radio`]).
    pub channel: Option<Channel>,
    /// Octets of memory for batches that are not complete.
    pub memory: usize,
    /// How long links are measured before data flow.
    pub measuring: Duration,
    /// Frames to lose on purpose, for tests.
    pub loss: Option<Loss>,
}

/// What a frame of one member takes from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Airtime: radios of one channel.
    Shared,
    /// Nothing: each member has a rate of its own, as on a switch.
    Separate,
}

impl Channel {
    /// What the interfaces suggest: shared if one of them leads to a radio.
    fn of(interfaces: &[String]) -> Channel {
        match interfaces.iter().any(|name| wireless::is_radio(name)) {
            true => Channel::Shared,
            false => Channel::Separate,
        }
    }

    /// The word for it, as on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Channel::Shared => "shared",
            Channel::Separate => "separate",
        }
    }
}

/// What is told while a session runs.
pub trait Watch {
    /// Something has happened.
    fn event(&mut self, event: Event);

    /// A look at everything, several times a second.
    fn look(&mut self, view: &View<'_>) {
        let _ = view;
    }

    /// Whether the session is to end.
    fn is_over(&mut self) -> bool {
        false
    }
}

/// Everything that can be looked at.
pub struct View<'a> {
    /// Since the start.
    pub now: Instant,
    /// The member.
    pub member: &'a Member,
    /// The link.
    pub statistics: &'a Statistics,
}

/// What a role does with a member.
pub(crate) trait Role {
    /// Its turn: after each wake-up. Breaks when there is no more to do.
    fn step(
        &mut self,
        now: Instant,
        member: &mut Member,
        statistics: &Statistics,
        watch: &mut dyn Watch,
    ) -> Result<ControlFlow<()>>;
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// There was no more to do.
    Done,
    /// By a signal, or because [`Watch::is_over`].
    Stopped,
}

/// A member with its link.
pub struct Session {
    live: Live<Member>,
    /// Octets of the largest frame.
    frame_max: usize,
    channel: Channel,
    node: u16,
    known: BTreeMap<u16, (u64, String)>,
    links_reported: Option<Instant>,
    looked: Instant,
    conflict: bool,
}

/// Goodbyes take so long: a few frames, for those that are lost.
const GOODBYE: Duration = Duration::from_millis(350);
/// The time between looks.
const LOOK: Duration = Duration::from_millis(200);
/// The least frame: records and tickets must fit, and data should not be all headers.
const FRAME_MIN: usize = 400;

impl Session {
    /// Opens the link.
    pub fn open(options: &Options, roles: Roles, verify: Option<VerifyKey>) -> Result<Session> {
        let node = match options.node {
            Some(node) if node > MEMBER_MAX => {
                let what = format!("{node} is no number of a member");
                return Err(Error::input(what, format!("give --node 0 to {MEMBER_MAX}")));
            }
            Some(node) => node,
            None => number_of(options.interfaces.first().map_or("", String::as_str))?,
        };
        let names = options.interfaces.iter();
        let ports = names.map(|name| port(name, node, options.carrier));
        let ports: Vec<Port> = ports.collect::<Result<_>>()?;
        let frames = ports.iter().map(|port| port.caps().frame_max);
        let frame_max = frames.min().unwrap_or(0);
        let name = options.name.clone().unwrap_or_else(host_name);
        let usual = || Channel::of(&options.interfaces);
        let channel = options.channel.unwrap_or_else(usual);
        let settings = Settings {
            shared: channel == Channel::Shared,
            node,
            name,
            roles,
            verify,
            frame_max,
            memory: options.memory,
            rate: options.rate,
        };
        let random = Seed(chappe_sys::random_u64()?).stream(Purpose::Node(node.into()));
        let member = Member::new(settings, random);
        let config = Config {
            loss: options.loss.clone(),
            hellos: Hellos {
                measuring: options.measuring,
                ..Hellos::default()
            },
            observe_every: Duration::from_millis(100),
            ..Config::new(Pace::Rate(options.rate), options.key.clone())
        };
        Ok(Session {
            live: Live::with_ports(config, ports, Box::new(member))?,
            frame_max,
            channel,
            node,
            known: BTreeMap::new(),
            links_reported: None,
            looked: Instant::ZERO,
            conflict: false,
        })
    }

    /// What is told first.
    pub(crate) fn started(&self, options: &Options) -> Event {
        Event::Started {
            node: self.node,
            name: options.name.clone().unwrap_or_else(host_name),
            interface: options.interfaces.join(", "),
            frame_max_bytes: self.frame_max,
            channel: self.channel.word(),
        }
    }

    /// The member's number.
    pub fn node(&self) -> u16 {
        self.node
    }

    /// Octets of the largest frame.
    pub fn frame_max(&self) -> usize {
        self.frame_max
    }

    /// Plays a role until there is no more to do, then says goodbye.
    pub(crate) fn play(&mut self, role: &mut dyn Role, watch: &mut dyn Watch) -> Result<Ending> {
        let Session {
            live,
            known,
            links_reported,
            looked,
            conflict,
            node,
            ..
        } = self;
        let (mut failure, mut stopped) = (None, false);
        let ending = live.run(|member, now, statistics| {
            member.observe(now, statistics);
            if !*conflict && (statistics.address_conflicts > 2 || member.roster().contested() > 20)
            {
                *conflict = true;
                failure = Some(conflicting(*node));
            }
            report_members(now, member, known, watch);
            report_links(now, member, links_reported, watch);
            match role.step(now, member, statistics, watch) {
                Ok(flow) if flow.is_break() => return flow,
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
            if now >= *looked + LOOK {
                *looked = now;
                let view = View {
                    now,
                    member,
                    statistics,
                };
                watch.look(&view);
                stopped = watch.is_over();
            }
            match failure.is_some() || stopped {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        self.say_goodbye()?;
        match (failure, ending) {
            (Some(error), _) => Err(error),
            (None, chappe_live::Ending::Asked) if !stopped => Ok(Ending::Done),
            _ => Ok(Ending::Stopped),
        }
    }

    fn say_goodbye(&mut self) -> Result<()> {
        let mut until = None;
        self.live.run(|member, now, statistics| {
            let until = *until.get_or_insert_with(|| {
                member.leave(now);
                now + GOODBYE
            });
            member.observe(now, statistics);
            match now >= until {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(())
    }

    /// The link's counters.
    pub fn statistics(&self) -> &Statistics {
        self.live.statistics()
    }
}

/// Opens an interface whose frames are long enough.
fn port(interface: &str, node: u16, carrier: Carrier) -> Result<Port> {
    let port = Port::open(interface, Address::node(node), carrier)?;
    let (frame_max, mtu) = (port.caps().frame_max, port.interface().mtu);
    if frame_max < FRAME_MIN {
        let what =
            format!("the MTU of {interface}, {mtu} octets, leaves {frame_max} octets of a frame");
        let todo = format!("{FRAME_MIN} are needed: `ip link set {interface} mtu 1500`");
        return Err(Error::environment(what, todo));
    }
    Ok(port)
}

fn conflicting(node: u16) -> Error {
    Error::input(
        format!("another member has the number {node} too"),
        "give each member a number of its own: --node N",
    )
}

/// What a member does, in a word.
pub fn role_word(record: &Record) -> &'static str {
    match record.roles {
        Roles { sends: true, .. } => "sender",
        Roles { receives: true, .. } => "receiver",
        _ => "relay",
    }
}

fn report_members(
    now: Instant,
    member: &Member,
    known: &mut BTreeMap<u16, (u64, String)>,
    watch: &mut dyn Watch,
) {
    for record in member.roster().others(now) {
        let before = known.insert(record.node, (record.life, record.name.clone()));
        if before.is_none_or(|(life, _)| life != record.life) {
            let (node, name, role) = (record.node, record.name.clone(), role_word(record));
            watch.event(Event::Joined { node, name, role });
        }
    }
    known.retain(|&node, (_, name)| {
        let here = member.roster().get(now, node).is_some();
        if !here {
            let name = std::mem::take(name);
            watch.event(Event::Left { node, name });
        }
        here
    });
}

/// The time between tellings of the links.
const LINKS: Duration = Duration::from_secs(5);

/// The links, once they are measured and every few seconds.
fn report_links(now: Instant, member: &Member, told: &mut Option<Instant>, watch: &mut dyn Watch) {
    let first = Instant::ZERO + Duration::from_millis(1900);
    let due = told.map_or(first, |told| told + LINKS);
    let Some(links) = member.links().filter(|_| now >= due) else {
        return;
    };
    let nodes = links.nodes() as u16;
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    let links: Vec<Link> = pairs
        .map(|(from, to)| Link {
            from,
            to,
            delivery: links.ratio(from, to),
        })
        .filter(|link| link.delivery > 0.0)
        .collect();
    if !links.is_empty() {
        *told = Some(now);
        watch.event(Event::Links { links });
    }
}

/// The number that an interface suggests.
fn number_of(interface: &str) -> Result<u16> {
    let found = chappe_sys::Interface::find(interface)?;
    let octet = match found.ipv4 {
        Some(address) => address.octets()[3],
        None => found.hardware[5],
    };
    Ok(octet.into())
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "host".into(), |name| name.trim().to_owned())
}
