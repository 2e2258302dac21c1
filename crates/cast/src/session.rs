//! A member on network interfaces, from opening the link to leaving the group.

mod reports;

use std::ops::ControlFlow;

use chappe_core::{Address, Bitrate, Duration, Instant, Purpose, Seed};
use chappe_live::{Carrier, Config, Group as Audience, Hellos, Live, Loss, Pace, Port, Statistics};
use chappe_sys::wireless;

use crate::error::{Error, Result};
use crate::event::{Event, Link};
use crate::group::Seat;
use crate::member::{Member, Settings};
use crate::roster::{FRAME_MIN, Record, Roles};
use crate::work::{Bell, Rope};
use reports::Reports;

/// The options of a member's link.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of the interfaces; a router has several. Each broadcast leaves on all of them.
    pub interfaces: Vec<String>,
    /// The encapsulation of frames.
    pub carrier: Carrier,
    /// The list of members, and this member's number and key.
    pub seat: Seat,
    /// The ceiling of the pace of frames on each interface, headers of all layers included. [`CEILING`] where nothing else limits it.
    pub rate: Bitrate,
    /// Largest IP packet, or payload of an Ethernet frame, to send; default: the smallest MTU of the interfaces.
    pub mtu: Option<usize>,
    /// Whether members share airtime. Default: shared if one of the interfaces leads to a radio ([`wireless::is_radio`]).
    pub channel: Option<Channel>,
    /// Memory for incomplete batches in octets.
    pub memory: usize,
    /// How long links are measured before data are sent, at most: where nothing is lost, a sender begins earlier.
    pub measuring: Duration,
    /// Received frames to drop at random, for tests.
    pub loss: Option<Loss>,
}

/// Whether the frames of one member take airtime from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// They do: radios on one channel.
    Shared,
    /// They do not: each member has a separate rate, as on a switch.
    Separate,
}

impl Channel {
    /// The default for these interfaces: shared if one of them leads to a radio.
    fn of(interfaces: &[String]) -> Channel {
        match interfaces.iter().any(|name| wireless::is_radio(name)) {
            true => Channel::Shared,
            false => Channel::Separate,
        }
    }

    /// The value as on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Channel::Shared => "shared",
            Channel::Separate => "separate",
        }
    }
}

/// Observes a running session.
pub trait Watch {
    /// Called for each event.
    fn event(&mut self, event: Event);

    /// Called several times a second with a view of the state.
    fn look(&mut self, view: &View<'_>) {
        let _ = view;
    }

    /// Whether the session should end. Asked several times a second.
    fn is_over(&mut self) -> bool {
        false
    }
}

/// A view of a session's state.
pub struct View<'a> {
    /// The time since the start.
    pub now: Instant,
    /// The state of the member.
    pub member: &'a Member,
    /// The counters of the link.
    pub statistics: &'a Statistics,
}

/// What a sender, receiver or relay does with its member.
pub(crate) trait Role {
    /// Called after each wake-up. Breaks when the role is done.
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
    /// The role was done.
    Done,
    /// A signal arrived, or [`Watch::is_over`] returned true.
    Stopped,
}

/// A member and its link.
pub struct Session {
    live: Live<Member>,
    post: Post,
    /// The largest SDU in octets.
    frame_max: usize,
    /// The largest packet of the link in octets, all headers of IP included.
    mtu: usize,
    channel: Channel,
}

/// The ceiling of the pace if none is set: 10 Gbit/s, more than one member's processor can seal.
pub const CEILING: Bitrate = Bitrate(10_000_000_000);
/// The rate of a shared channel if no ceiling tells it: between the multicast rates of 802.11 that are common.
const USUAL: Bitrate = Bitrate(6_000_000);
/// The mean interval between the first hellos of a sender. Others wait for it to measure, and where it takes no airtime from them, half
/// of the usual interval costs 240 kbit/s.
const SENDER_HELLOS: Duration = Duration::from_millis(50);
/// How long a leaving member stays, so that it can repeat its goodbye a few times.
const GOODBYE: Duration = Duration::from_millis(350);
/// The same for a sender that has taken its offer back, which it repeats [more often](Member::revoke).
const REVOKED: Duration = Duration::from_millis(2000);
/// Interval between calls of [`Watch::look`].
const LOOK: Duration = Duration::from_millis(200);

impl Session {
    /// Opens the interfaces and creates the member. Fails if an interface is missing or its MTU too small.
    pub fn open(options: &Options, roles: Roles) -> Result<Session> {
        let seat = options.seat.clone();
        let node = seat.node;
        let names = options.interfaces.iter();
        let ports = names.map(|name| port(name, node, options));
        let ports: Vec<Port> = ports.collect::<Result<_>>()?;
        let frames = ports.iter().map(|port| port.caps().frame_max);
        let frame_max = frames.min().unwrap_or(0);
        let mtu = ports.iter().map(Port::mtu).min().unwrap_or(0);
        let usual = || Channel::of(&options.interfaces);
        let channel = options.channel.unwrap_or_else(usual);
        let settings = Settings {
            shared: channel == Channel::Shared,
            seat: seat.clone(),
            roles,
            frame_max,
            memory: options.memory,
            rate: options.rate,
        };
        let random = Seed(chappe_sys::random_u64()?).stream(Purpose::Node(node.into()));
        let member = Member::new(settings, random);
        let air = if options.rate < CEILING {
            options.rate
        } else {
            USUAL
        };
        let config = Config {
            loss: options.loss.clone(),
            hellos: Hellos {
                first: match roles.sends && channel == Channel::Separate {
                    true => SENDER_HELLOS,
                    false => Hellos::default().first,
                },
                measuring: options.measuring,
                ..Hellos::default()
            },
            shared: (channel == Channel::Shared).then_some(air),
            observe_every: Duration::from_millis(100),
            ..Config::new(Pace::Rate(options.rate), seat.membership())
        };
        let live = Live::with_ports(config, ports, Box::new(member))?;
        let crowded = |error| {
            let what = format!("cannot open a pair of sockets: {error}");
            Error::environment(what, "raise the limit of open files (ulimit -n)")
        };
        let bell = Bell::new().map_err(crowded)?;
        live.watch(&bell)?;
        Ok(Session {
            live,
            post: Post {
                bell,
                seat,
                common: frame_max,
                reports: Reports::default(),
                looked: Instant::ZERO,
                conflict: false,
            },
            frame_max,
            mtu,
            channel,
        })
    }

    /// The first event of a session.
    pub(crate) fn started(&self, options: &Options) -> Event {
        Event::Started {
            node: self.post.seat.node,
            name: self.post.seat.name(),
            interface: options.interfaces.join(", "),
            frame_max_bytes: self.frame_max,
            channel: self.channel.word(),
        }
    }

    /// What work on another thread rings when it is done.
    pub(crate) fn rope(&self) -> Rope {
        self.post.bell.rope()
    }

    /// The number of this member.
    pub fn node(&self) -> u16 {
        self.post.seat.node
    }

    /// The largest SDU of the link in octets.
    pub fn frame_max(&self) -> usize {
        self.frame_max
    }

    /// Runs a role until it is done, then leaves the group.
    pub(crate) fn play(&mut self, role: &mut dyn Role, watch: &mut dyn Watch) -> Result<Ending> {
        let halt = loop {
            let mut halt = None;
            let Session { live, post, .. } = self;
            live.run(|member, now, statistics| {
                match post.turn(now, member, statistics, role, watch) {
                    ControlFlow::Continue(()) => ControlFlow::Continue(()),
                    ControlFlow::Break(why) => {
                        halt = Some(why);
                        ControlFlow::Break(())
                    }
                }
            })?;
            match halt {
                Some(Halt::List { serial, members }) => {
                    live.join(post.seat.membership())?;
                    watch.event(Event::List { serial, members });
                }
                Some(Halt::Shorter) => live.limit(post.common),
                halt => break halt,
            }
        };
        self.say_goodbye()?;
        match halt {
            Some(Halt::Failed(error)) => Err(error),
            Some(Halt::Done) => Ok(Ending::Done),
            _ => Ok(Ending::Stopped),
        }
    }

    fn say_goodbye(&mut self) -> Result<()> {
        let mut until = None;
        let Session { live, post, .. } = self;
        live.run(|member, now, statistics| {
            if statistics.watched {
                post.bell.quiet();
            }
            let until = *until.get_or_insert_with(|| {
                member.leave(now);
                match member.has_revoked() {
                    true => now + REVOKED,
                    false => now + GOODBYE,
                }
            });
            member.observe(now, statistics);
            match now >= until {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(())
    }

    /// The largest packet of the link in octets: the MTU for which all frames are made.
    pub(crate) fn mtu(&self) -> usize {
        self.mtu
    }

    /// Whether the members share airtime.
    pub(crate) fn channel(&self) -> Channel {
        self.channel
    }

    /// The counters of the link.
    pub fn statistics(&self) -> &Statistics {
        self.live.statistics()
    }
}

/// What a session has at hand in each turn of its link.
struct Post {
    /// Rings when work on another thread is done.
    bell: Bell,
    seat: Seat,
    /// The largest SDU in octets that passes between all members, as far as they are known.
    common: usize,
    reports: Reports,
    looked: Instant,
    conflict: bool,
}

/// Why a session stops its link. It goes on after the first two.
enum Halt {
    /// A later list of the group's members has arrived, which the link does not know yet.
    List { serial: u32, members: usize },
    /// A member takes shorter frames only.
    Shorter,
    /// The role is done.
    Done,
    /// The watcher says that the session is over ([`Watch::is_over`]).
    Stopped,
    /// The session cannot go on.
    Failed(Error),
}

impl Post {
    /// What is done after each wake-up.
    fn turn(
        &mut self,
        now: Instant,
        member: &mut Member,
        statistics: &Statistics,
        role: &mut dyn Role,
        watch: &mut dyn Watch,
    ) -> ControlFlow<Halt> {
        if statistics.watched {
            self.bell.quiet();
        }
        self.renew(now, member, statistics)?;
        member.observe(now, statistics);
        if self.common != member.frame_max(now) {
            self.common = member.frame_max(now);
            return ControlFlow::Break(Halt::Shorter);
        }
        let mut failure = self.dispute(member, statistics);
        let own = (&*member, &self.seat);
        self.reports.tell(now, own, statistics, watch);
        let mut halt = None;
        match role.step(now, member, statistics, watch) {
            Ok(ControlFlow::Break(())) => halt = Some(Halt::Done),
            Ok(ControlFlow::Continue(())) => {}
            Err(error) => failure = Some(error),
        }
        if halt.is_none() && self.look(now, member, statistics, watch) {
            halt = Some(Halt::Stopped);
        }
        match failure.map(Halt::Failed).or(halt) {
            Some(halt) => ControlFlow::Break(halt),
            None => ControlFlow::Continue(()),
        }
    }

    /// Takes over a list of members that has arrived.
    fn renew(
        &mut self,
        now: Instant,
        member: &mut Member,
        statistics: &Statistics,
    ) -> ControlFlow<Halt> {
        let text = statistics.notice.as_ref();
        let Some(renewed) = text.and_then(|text| self.seat.renew(text)) else {
            return ControlFlow::Continue(());
        };
        if let Err(error) = renewed {
            return ControlFlow::Break(Halt::Failed(error));
        }
        member.join_group(now, self.seat.clone());
        let group = &self.seat.group;
        ControlFlow::Break(Halt::List {
            serial: group.serial,
            members: group.members.len(),
        })
    }

    /// The failure when another host first shows that it has this member's key: one that has agreed on keys under its number does.
    fn dispute(&mut self, member: &Member, statistics: &Statistics) -> Option<Error> {
        let contested = statistics.address_conflicts > 0 || member.roster().contested() > 20;
        if self.conflict || !contested {
            return None;
        }
        self.conflict = true;
        Some(conflicting(&self.seat))
    }

    /// Shows the state to the watcher now and then. Returns whether the watcher ends the session.
    fn look(
        &mut self,
        now: Instant,
        member: &Member,
        statistics: &Statistics,
        watch: &mut dyn Watch,
    ) -> bool {
        if now < self.looked + LOOK {
            return false;
        }
        self.looked = now;
        watch.look(&View {
            now,
            member,
            statistics,
        });
        watch.is_over()
    }
}

/// The name of the only interface that can carry frames of this kind. If there is none, or more than one, the error names them.
pub fn only_interface(carrier: Carrier) -> Result<String> {
    let needs_address = matches!(
        carrier,
        Carrier::Udp {
            group: Audience::Broadcast | Audience::Ipv4(_),
            ..
        }
    );
    let fits = |found: &chappe_sys::Interface| {
        found.running && found.name != "lo" && (found.ipv4.is_some() || !needs_address)
    };
    let all = chappe_sys::Interface::all()?;
    let names: Vec<String> = all
        .into_iter()
        .filter(fits)
        .map(|found| found.name)
        .collect();
    let why = match &names[..] {
        [only] => return Ok(only.clone()),
        [] if needs_address => "no interface is up and has an IPv4 address".to_owned(),
        [] => "no interface is up".to_owned(),
        names => format!("several interfaces are up: {}", names.join(", ")),
    };
    Err(Error::input(why, "name the interface: --interface NAME"))
}

/// Opens an interface whose frames are long enough.
fn port(interface: &str, node: u16, options: &Options) -> Result<Port> {
    let port = Port::open(interface, Address::node(node), options.carrier)?;
    let own = port.interface().mtu;
    if let Some(asked) = options.mtu.filter(|asked| *asked > own) {
        let what = format!("--mtu {asked} is more than the MTU of {interface}, {own} octets");
        let todo = format!("use --mtu {own} or less, or `ip link set {interface} mtu {asked}`");
        return Err(Error::input(what, todo));
    }
    let port = port.limit(options.mtu.unwrap_or(own));
    let (frame_max, mtu) = (port.caps().frame_max, port.mtu());
    if frame_max < FRAME_MIN {
        let least = mtu - frame_max + FRAME_MIN;
        return Err(match options.mtu {
            Some(_) => Error::input(
                format!("--mtu {mtu} leaves {frame_max} octets of a frame"),
                format!("use --mtu {least} or more"),
            ),
            None => Error::environment(
                format!(
                    "the MTU of {interface}, {mtu} octets, leaves {frame_max} octets of a frame"
                ),
                format!("{least} are needed: `ip link set {interface} mtu 1500`"),
            ),
        });
    }
    Ok(port)
}

fn conflicting(seat: &Seat) -> Error {
    Error::input(
        format!(
            "another host runs with the key of member {} ({})",
            seat.node,
            seat.name()
        ),
        "give each host a key of its own: `chappe cast key NAME`, then `chappe cast admit`",
    )
}

/// The role of a member as one word.
pub fn role_word(record: &Record) -> &'static str {
    match record.roles {
        Roles { sends: true, .. } => "sender",
        Roles { receives: true, .. } => "receiver",
        _ => "relay",
    }
}

/// When the links are reported first, unless a sender that begins earlier does.
pub(crate) const FIRST_LINKS: Instant = Instant::from_millis(1900);

/// The links that carry anything; `None` if there is none.
pub(crate) fn links_event(links: &chappe_pacifier::Links) -> Option<Event> {
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
    (!links.is_empty()).then_some(Event::Links { links })
}
