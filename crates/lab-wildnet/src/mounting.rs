//! From a line of masts to radios on the air: stations, hosts behind them, and what lies between the radios of a mast.

use std::cell::RefCell;
use std::rc::Rc;

use chappe_core::{Address, Instant, OverMac, Seed};
use chappe_lab::run::RunError;
use chappe_mac::dot11::Dot11;
use chappe_sim::{AirTime, Fault, Recorder, Simulator, World};
use chappe_tcplp::tcp::Local;
use chappe_wildnet::baseline::{Snoop, SnoopConfig};
use chappe_wildnet::{Link, Radio, Site};

use super::hosts::{Lent, Mail, local, start, tcp_host};
use super::lives::Life;
use super::masts::Masts;
use super::pings::{self, Pings};
use super::run::{Run, WARM_UP};
use super::station::{Mounted, Slots, Station, URGENT_SERVICE, Wire};
use super::stream::Tunnel;
use super::traffic::{Passage, Relay, Traffic, Udp};
use super::trial::{Form, Load, Scheme};

/// What the hosts of a run are lent for as long as it lasts.
pub struct Ground {
    memory: Vec<Lent>,
    locals: Vec<Local>,
}

impl Ground {
    /// For one run.
    pub fn of(masts: &Masts) -> Ground {
        Ground {
            memory: (0..masts.radios())
                .map(|_| Lent::new(masts.tcp.window))
                .collect(),
            locals: (1..=masts.radios() as u16)
                .map(|number| local(number, masts.tcp))
                .collect(),
        }
    }
}

impl Masts {
    /// Puts all radios on the air, hosts with what `mail` gives for their radio, and opens their connections.
    pub fn launch<'a, R: Recorder>(
        &self,
        ground: &'a mut Ground,
        seed: Seed,
        mail: impl Fn(usize) -> Mail,
        recorder: R,
    ) -> Result<Run<'a, R>, RunError> {
        let locals: &'a [Local] = &ground.locals;
        let passages: Vec<Relay> = self.passages();
        let nodes = self.nodes(&mut ground.memory, locals, (&passages, mail), seed);
        let defect = |error: chappe_sim::Error| RunError::Defect(error.to_string());
        let mut world = World::new(self.medium(seed).map_err(defect)?);
        world.link_losses = self.losses();
        let jammers = self.jammer.iter().cloned();
        world.faults = jammers
            .map(|jammer| (AirTime::ZERO, Fault::Jammer(jammer)))
            .chain(self.mishaps.strikes.iter().cloned())
            .collect();
        let mut simulator = Simulator::new(world, nodes, seed, recorder).map_err(defect)?;
        for radio in 0..self.radios() {
            let peer = self.peer(radio).filter(|_| self.sends(radio));
            let peer = peer.map(|peer| &locals[peer]);
            simulator.with_node(radio, |node, now| start(&mut node.station, now, peer));
        }
        Ok(Run::new(simulator, passages, self.clone(), seed))
    }

    /// What lies between the radios of each mast, from each radio's side; those of ends lead nowhere.
    fn passages(&self) -> Vec<Relay> {
        let mut all = vec![Relay::default(); self.radios()];
        for left in (1..self.radios() - 1).step_by(2) {
            let passage = || Rc::new(RefCell::new(Passage::default()));
            let (there, back) = (passage(), passage());
            all[left] = Relay {
                take: back.clone(),
                give: there.clone(),
            };
            all[left + 1] = Relay {
                take: there,
                give: back,
            };
        }
        all
    }

    fn nodes<'a>(
        &self,
        memory: &'a mut [Lent],
        locals: &'a [Local],
        (passages, mail): (&[Relay], impl Fn(usize) -> Mail),
        seed: Seed,
    ) -> Vec<Box<Mounted<'a>>> {
        let life = Life { number: 0, seed };
        let masts = 0..=self.hops.len();
        let sites: Vec<Option<Site>> = masts.map(|mast| self.site(mast, &life)).collect();
        let mut nodes = Vec::new();
        for (radio, (memory, local)) in memory.iter_mut().zip(locals).enumerate() {
            let traffic = self.traffic(radio, (memory, local), mail(radio), &passages[radio]);
            let site = sites[radio.div_ceil(2)].as_ref();
            nodes.push(Box::new(self.mounted(radio, site, &life, traffic)));
        }
        nodes
    }

    /// What the radios of a mast share, if they have slots.
    pub(super) fn site(&self, mast: usize, life: &Life) -> Option<Site> {
        let (slots, _) = self.scheme.slot_configs()?;
        let ends = mast == 0 || mast == self.hops.len();
        let first = 2 * mast - usize::from(mast > 0);
        Some(Site::new(
            slots,
            if ends { 1 } else { 2 },
            life.random(first),
        ))
    }

    pub(super) fn mounted<'a>(
        &self,
        radio: usize,
        site: Option<&Site>,
        life: &Life,
        traffic: Traffic<'a>,
    ) -> Mounted<'a> {
        let addresses = [radio, radio ^ 1].map(|radio| Address::node(radio as u16 + 1));
        let station = match site {
            Some(site) => {
                let place = usize::from(radio > 0 && radio.is_multiple_of(2));
                let random = life.random(radio + self.radios());
                let epoch = (radio as u8).wrapping_add(life.number);
                self.slots(epoch, (site.clone(), place), addresses, random, traffic)
            }
            None => self.plain((radio, addresses), life.random(radio), traffic),
        };
        Mounted::new(station, self.hops[radio / 2].channel)
    }

    fn traffic<'a>(
        &self,
        radio: usize,
        (memory, local): (&'a mut Lent, &'a Local),
        mail: Mail,
        passage: &Relay,
    ) -> Traffic<'a> {
        if self.peer(radio).is_none() {
            return Traffic::Relay(passage.clone());
        }
        match self.load {
            Load::Tcp if self.snoop => {
                let agent = Snoop::new(SnoopConfig::default());
                Traffic::Snooped(Box::new(agent), tcp_host(memory, local, mail))
            }
            Load::Tcp => Traffic::Tcp(tcp_host(memory, local, mail)),
            Load::Kcp(config) => Traffic::Kcp(Box::new(Tunnel::new(config, self.sends(radio)))),
            Load::Ping { apart, .. } => {
                let since = Instant::ZERO + WARM_UP;
                let counted = (since, since + self.time);
                let bulk = Udp::new(self.source(radio), counted.0, counted.1);
                Traffic::Pinged(Box::new(Pings::new(bulk, (radio == 0, apart), counted)))
            }
            Load::Udp | Load::Steady(_) => {
                let since = Instant::ZERO + WARM_UP;
                Traffic::Udp(Udp::new(self.source(radio), since, since + self.time))
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
                form: Form::Demand,
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
        (self.odd)(radio, &mut config);
        let Scheme::Csma { retries, .. } = self.scheme else {
            unreachable!("it contends")
        };
        let mac = Dot11::new(config, me, random);
        let to = retries.map_or(Address::BROADCAST, |_| peer);
        Station::Plain(Box::new(OverMac::new(mac, Wire::new(traffic, to))))
    }
}
