//! Masts in the simulator: from their start, through restarts of masts, to their end.

use chappe_core::{Instant, Seed};
use chappe_lab::run::RunError;
use chappe_sim::{AirTime, Fault, Recorder, Simulator, World};
use chappe_tcplp::host::Host;
use chappe_tcplp::tcp::Local;

use crate::hosts::{BulkApp, HostMemory};
use crate::life::Life;
use crate::masts::Masts;
use crate::relay::Relay;
use crate::station::{Station, TunedStation};
use crate::traffic::Traffic;
use crate::udp::UDP_PAYLOAD;

/// Masts in the simulator.
pub struct RunningMasts<'a, R: Recorder> {
    /// The radios and the medium.
    pub simulator: Simulator<TunedStation<'a>, R>,
    /// Each radio's ends of the queues between the radios of its mast.
    relays: Vec<Relay>,
    /// The latest slot of the first mast: its number and its end.
    turn: (u64, Instant),
    /// The longest time from the end of one of its slots to the start of the next, minus the length of a slot, in s.
    pub(crate) idle: f64,
    masts: Masts,
    /// The radio of each host, and the host's place behind it.
    hosts: Vec<(usize, usize)>,
    seed: Seed,
    /// Masts that have restarted, in order of time.
    pub restarted: Vec<usize>,
    /// Stations that ended when their masts crashed, kept for their counters.
    pub ended: Vec<Station<'a>>,
}

impl<'a, R: Recorder> RunningMasts<'a, R> {
    /// Starts masts: builds their stations, and opens the connections of hosts. `app` gives the application of each of [`Masts::seats`].
    pub fn launch(
        masts: &Masts,
        memory: &'a mut HostMemory,
        seed: Seed,
        app: impl Fn(usize) -> BulkApp,
        recorder: R,
    ) -> Result<RunningMasts<'a, R>, RunError> {
        let locals: &'a [Local] = &memory.locals;
        let relays: Vec<Relay> = masts.relays();
        let nodes = masts.nodes(&mut memory.sockets, locals, (&relays, app), seed);
        let defect = |error: chappe_sim::Error| RunError::Defect(error.to_string());
        let mut world = World::new(masts.medium(seed).map_err(defect)?);
        world.link_losses = masts.losses();
        let jammers = masts.jammer.iter().cloned();
        world.faults = jammers
            .map(|jammer| (AirTime::ZERO, Fault::Jammer(jammer)))
            .chain(masts.faults.events.iter().cloned())
            .collect();
        let mut simulator = Simulator::new(world, nodes, seed, recorder).map_err(defect)?;
        let seats = masts.seats();
        let mut hosts = Vec::new();
        for (place, seat) in seats.iter().enumerate() {
            let before = seats[..place]
                .iter()
                .filter(|other| other.radio == seat.radio);
            hosts.push((seat.radio, before.count()));
        }
        for radio in 0..masts.radios() {
            let own = seats.iter().filter(|seat| seat.radio == radio);
            let peers = own.map(|seat| locals.get(seat.peer).filter(|_| seat.sends));
            let peers: Vec<Option<&Local>> = peers.collect();
            simulator.with_node(radio, |node, now| node.station.start(now, &peers));
        }
        Ok(RunningMasts::new(
            simulator,
            relays,
            (masts.clone(), hosts),
            seed,
        ))
    }

    fn new(
        simulator: Simulator<TunedStation<'a>, R>,
        relays: Vec<Relay>,
        (masts, hosts): (Masts, Vec<(usize, usize)>),
        seed: Seed,
    ) -> RunningMasts<'a, R> {
        RunningMasts {
            simulator,
            relays,
            turn: (0, Instant::ZERO),
            idle: 0.0,
            masts,
            hosts,
            seed,
            restarted: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Advances to `end`, and restarts masts on the way.
    pub fn advance_to(&mut self, end: AirTime) {
        while let Some(&(at, mast)) = self.masts.faults.restarts.get(self.restarted.len())
            && at <= end
        {
            self.simulate_to(at);
            self.restart(mast);
        }
        self.simulate_to(end);
    }

    /// Advances to `end`. After each event, packets cross from one radio of a mast to the other.
    fn simulate_to(&mut self, end: AirTime) {
        // A single link has no mast between two radios, so nothing to forward and no turns to watch.
        if self.relays.len() == 2 {
            return self.simulator.run_until(end);
        }
        // After every event, so that a forwarded packet leaves at the instant at which it arrived.
        while self.simulator.next_at() <= end {
            let at = self.simulator.next_at();
            self.simulator.run_until(at);
            for (radio, relay) in self.relays.iter().enumerate() {
                if relay.incoming.borrow_mut().take_fresh() {
                    let wake = |node: &mut TunedStation<'_>, now| node.station.nudge(now);
                    self.simulator.with_node(radio, wake);
                }
            }
            self.watch_turns();
        }
        self.simulator.run_until(end);
    }

    /// Notes how long the first mast waited between its slots.
    fn watch_turns(&mut self) {
        let Station::Slots(slots) = &self.simulator.node(0).station else {
            return;
        };
        let turn = slots.radio.turn();
        if turn.index == self.turn.0 {
            return;
        }
        // The first turn has no slot before it.
        if self.turn.0 > 0 {
            let gap = turn.start.saturating_since(self.turn.1).as_secs_f64();
            self.idle = self.idle.max(gap - turn.length.as_secs_f64());
        }
        self.turn = (turn.index, turn.start + turn.length);
    }

    /// A host, by its place among [`Masts::seats`].
    pub fn host(&self, seat: usize) -> Option<&Host<'a, BulkApp, 2>> {
        let (radio, place) = *self.hosts.get(seat)?;
        let hosts = self.simulator.node(radio).station.traffic().hosts();
        hosts.get(place).copied()
    }

    /// The radio behind which a host stands.
    pub fn radio_of(&self, seat: usize) -> usize {
        self.hosts.get(seat).map_or(0, |(radio, _)| *radio)
    }

    /// Octets of payload that all ends have received so far.
    pub fn received(&self) -> f64 {
        let of = |node: &TunedStation<'_>| match node.station.traffic() {
            Traffic::Udp(udp) => udp.received as f64 * UDP_PAYLOAD as f64,
            Traffic::Kcp(tunnel) => tunnel.flow.received as f64,
            Traffic::Pinged(pings) => pings.bulk.received as f64 * UDP_PAYLOAD as f64,
            traffic => traffic
                .hosts()
                .into_iter()
                .map(|host| host.app().received as f64)
                .sum(),
        };
        self.simulator.nodes().map(of).sum()
    }

    /// Whether there are faults of masts or links, and so counters of them.
    pub fn faulty(&self) -> bool {
        let faults = &self.masts.faults;
        !(faults.events.is_empty() && faults.restarts.is_empty() && faults.losses.is_empty())
    }

    /// Restarts a mast's router: its radios have new links, new slots and empty queues. Hosts behind them keep their state.
    fn restart(&mut self, mast: usize) {
        self.restarted.push(mast);
        let lives = self.restarted.iter().filter(|other| **other == mast);
        let life = Life {
            number: lives.count() as u8,
            seed: self.seed,
        };
        let site = self.masts.site(mast, &life);
        for radio in self.masts.layout.radios_at(mast) {
            // All queues of the mast are lost: what is incoming for one radio was received by another.
            self.relays[radio].incoming.borrow_mut().clear();
            let (masts, ended) = (&self.masts, &mut self.ended);
            self.simulator.revive(radio, |node| {
                // Hosts survive the restart, so their traffic moves to the new station.
                let nothing = Traffic::Relay(Relay::default());
                let traffic = std::mem::replace(node.station.traffic_mut(), nothing);
                let fresh = masts.mounted(radio, site.as_ref(), &life, traffic.restarted());
                ended.push(std::mem::replace(node.as_mut(), fresh).station);
            });
            let wake = |node: &mut TunedStation<'_>, now| node.station.nudge(now);
            self.simulator.with_node(radio, wake);
        }
    }
}
