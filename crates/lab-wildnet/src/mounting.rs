//! Builds the stations of masts: radios with their slots or DCF, hosts behind them, and queues between the radios of a mast.

use chappe_core::{Address, Instant, OverMac, Seed};
use chappe_mac::dot11::Dot11;
use chappe_tcplp::tcp::Local;
use chappe_wildnet::baseline::{Snoop, SnoopConfig};
use chappe_wildnet::{Link, Radio, Site};

use crate::experiment::WARM_UP;
use crate::hosts::{BulkApp, SocketMemory, tcp_host};
use crate::life::Life;
use crate::masts::{Masts, Path, Seat};
use crate::pings::{self, Pings};
use crate::rate_control::Rates;
use crate::relay::{Exit, Relay};
use crate::scheme::{Load, Scheme, SlotForm};
use crate::station::{Slots, Station, TunedStation, TxQueue, URGENT_SERVICE};
use crate::stream::Tunnel;
use crate::traffic::{Junction, Traffic};
use crate::udp::Udp;

impl Masts {
    /// The queues of each mast, by radio. Those of a mast with one radio lead nowhere.
    pub(super) fn relays(&self) -> Vec<Relay> {
        // Not `vec!`, which would give all radios one queue.
        let mut all: Vec<Relay> = (0..self.radios()).map(|_| Relay::default()).collect();
        let routes = self.routes();
        for mast in 0..self.layout.masts() {
            let radios = self.layout.radios_at(mast);
            for radio in &radios {
                let others = radios.iter().filter(|other| *other != radio);
                let exit = |&other: &usize| Exit {
                    queue: all[other].incoming.clone(),
                    hosts: routes[other].clone(),
                };
                let exits = others.map(exit).collect();
                all[*radio].exits = exits;
            }
        }
        all
    }

    /// For each radio the numbers of the hosts to which packets leave by it.
    fn routes(&self) -> Vec<Vec<u16>> {
        let mut routes = vec![Vec::new(); self.radios()];
        for (seat, number) in self.seats().iter().zip(self.numbers()) {
            let end = self.layout.mast_of(seat.radio);
            // From every mast, as a router's table has it: ways to one host do not depend on where they begin.
            for mast in (0..self.layout.masts()).filter(|mast| *mast != end) {
                if let Some(first) = self.layout.way(mast, end).first() {
                    routes[*first].push(number);
                }
            }
        }
        routes
    }

    /// The stations of all radios. `app` gives the application of each of [`Masts::seats`].
    pub(super) fn nodes<'a>(
        &self,
        memory: &'a mut [SocketMemory],
        locals: &'a [Local],
        (relays, app): (&[Relay], impl Fn(usize) -> BulkApp),
        seed: Seed,
    ) -> Vec<Box<TunedStation<'a>>> {
        let life = Life { number: 0, seed };
        let masts = 0..self.layout.masts();
        let sites: Vec<Option<Site>> = masts.map(|mast| self.site(mast, &life)).collect();
        let mut hosts: Vec<Vec<(u16, Traffic<'a>)>> = Vec::new();
        hosts.resize_with(self.radios(), Vec::new);
        let parts = self.seats().into_iter().zip(self.numbers()).enumerate();
        for ((place, (seat, number)), (memory, local)) in parts.zip(memory.iter_mut().zip(locals)) {
            let traffic = self.traffic(&seat, (memory, local), app(place));
            hosts[seat.radio].push((number, traffic));
        }
        let stations = hosts.into_iter().zip(relays).enumerate();
        let station = |(radio, (hosts, relay)): (usize, (Vec<_>, &Relay))| {
            let site = sites[self.layout.mast_of(radio)].as_ref();
            let traffic = self.behind(hosts, relay);
            Box::new(self.mounted(radio, site, &life, traffic))
        };
        stations.map(station).collect()
    }

    /// What stands behind a radio: nothing but the other radios, its only host, or a router for all of them.
    fn behind<'a>(&self, mut hosts: Vec<(u16, Traffic<'a>)>, relay: &Relay) -> Traffic<'a> {
        // On a line, traffic ends at the masts with one radio, or nothing is forwarded at all.
        let forwards = matches!(self.path, Path::Pairs(_)) && !relay.exits.is_empty();
        match hosts.len() {
            0 => Traffic::Relay(relay.clone()),
            1 if !forwards => hosts.swap_remove(0).1,
            _ => Traffic::Junction(Box::new(Junction::new(hosts, relay.clone()))),
        }
    }

    /// The slots that the radios of a mast share; `None` under the DCF.
    pub(super) fn site(&self, mast: usize, life: &Life) -> Option<Site> {
        let (slots, _) = self.scheme.slot_configs()?;
        let radios = self.layout.radios_at(mast);
        let first = radios.first()?;
        Some(Site::new(slots, radios.len(), life.random(*first)))
    }

    /// The station of a radio in one life of its mast.
    pub(super) fn mounted<'a>(
        &self,
        radio: usize,
        site: Option<&Site>,
        life: &Life,
        traffic: Traffic<'a>,
    ) -> TunedStation<'a> {
        let addresses = [radio, radio ^ 1].map(|radio| Address::node(radio as u16 + 1));
        let station = match site {
            Some(site) => {
                let place = self.layout.place(radio);
                // Numbers below `radios` are the sites' streams, see `site`.
                let random = life.random(radio + self.radios());
                // The epoch must differ from the previous life's: by it, the peer recognises reports on frames from before.
                let epoch = (radio as u8).wrapping_add(life.number);
                self.slots(epoch, (site.clone(), place), addresses, random, traffic)
            }
            None => self.plain((radio, addresses), life.random(radio), traffic),
        };
        TunedStation::new(station, self.hops[radio / 2].channel)
    }

    /// One host, whatever it exchanges.
    fn traffic<'a>(
        &self,
        seat: &Seat,
        (memory, local): (&'a mut SocketMemory, &'a Local),
        app: BulkApp,
    ) -> Traffic<'a> {
        match self.load {
            Load::Tcp if self.snoop => {
                let agent = Snoop::new(SnoopConfig::default());
                Traffic::Snooped(Box::new(agent), tcp_host(memory, local, app))
            }
            Load::Tcp => Traffic::Tcp(tcp_host(memory, local, app)),
            Load::Kcp(config) => Traffic::Kcp(Box::new(Tunnel::new(config, seat.sends))),
            Load::Ping { apart, .. } => {
                let since = Instant::ZERO + WARM_UP;
                let counted = (since, since + self.time);
                let bulk = Udp::new(self.source(seat), counted.0, counted.1);
                Traffic::Pinged(Box::new(Pings::new(
                    bulk,
                    (seat.radio == 0, apart),
                    counted,
                )))
            }
            Load::Udp | Load::Steady(_) => {
                let since = Instant::ZERO + WARM_UP;
                Traffic::Udp(Udp::new(self.source(seat), since, since + self.time))
            }
        }
    }

    fn slots<'a>(
        &self,
        epoch: u8,
        (site, place): (Site, usize),
        [me, peer]: [Address; 2],
        random: chappe_core::Stream,
        traffic: Traffic<'a>,
    ) -> Station<'a> {
        let config = self.scheme.slot_configs().map(|(_, config)| config);
        let config = config.map(|mut config| {
            if matches!(self.load, Load::Ping { apart: true, .. }) {
                config.services[URGENT_SERVICE] = pings::PROMISE;
            }
            config
        });
        let link = config.map(|config| Link::new(config, epoch));
        let Some(Ok(link)) = link else {
            unreachable!("the lab's own configurations are sound")
        };
        let radio = Radio::new(link, site, place, (me, peer), random);
        let by_size = matches!(
            self.scheme,
            Scheme::Slots {
                form: SlotForm::Demand,
                ..
            }
        );
        Station::Slots(Box::new(Slots::new(radio, traffic, by_size)))
    }

    fn plain<'a>(
        &self,
        (radio, [me, peer]): (usize, [Address; 2]),
        random: chappe_core::Stream,
        traffic: Traffic<'a>,
    ) -> Station<'a> {
        let longest = self.hops.iter().map(|hop| hop.km).fold(0.0, f64::max);
        let Some(mut config) = self.scheme.dcf(longest) else {
            unreachable!("a scheme has slots, or contends")
        };
        (self.adjust_card)(radio, &mut config);
        let Scheme::Csma { retries, .. } = self.scheme else {
            unreachable!("it contends")
        };
        let rates = Rates::new(self.rate_control, config.data.preamble);
        let mac = Dot11::new(config, me, random);
        // Broadcast frames are not acknowledged, which is what a scheme without retries asks for.
        let to = retries.map_or(Address::BROADCAST, |_| peer);
        Station::Plain(Box::new(OverMac::new(
            mac,
            TxQueue::new(traffic, to).with_rates(rates),
        )))
    }
}
