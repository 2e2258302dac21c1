//! Builds the stations of a line: radios with their slots or DCF, hosts behind them, and queues between the radios of a mast.

use std::cell::RefCell;
use std::rc::Rc;

use chappe_core::{Address, Instant, OverMac, Seed};
use chappe_mac::dot11::Dot11;
use chappe_tcplp::tcp::Local;
use chappe_wildnet::baseline::{Snoop, SnoopConfig};
use chappe_wildnet::{Link, Radio, Site};

use crate::experiment::WARM_UP;
use crate::hosts::{BulkApp, SocketMemory, tcp_host};
use crate::life::Life;
use crate::masts::Masts;
use crate::pings::{self, Pings};
use crate::relay::{HandoverQueue, Relay};
use crate::scheme::{Load, Scheme, SlotForm};
use crate::station::{Slots, Station, TunedStation, TxQueue, URGENT_SERVICE};
use crate::stream::Tunnel;
use crate::traffic::Traffic;
use crate::udp::Udp;

impl Masts {
    /// The queues of each mast, by radio. Those of the masts at the ends lead nowhere.
    pub(super) fn relays(&self) -> Vec<Relay> {
        let mut all = vec![Relay::default(); self.radios()];
        // Radios 0 and last stand at the ends. Between them, each odd radio and the next one share a mast.
        for left in (1..self.radios() - 1).step_by(2) {
            let queue = || Rc::new(RefCell::new(HandoverQueue::default()));
            let (there, back) = (queue(), queue());
            all[left] = Relay {
                incoming: back.clone(),
                outgoing: there.clone(),
            };
            all[left + 1] = Relay {
                incoming: there,
                outgoing: back,
            };
        }
        all
    }

    /// The stations of all radios. `app` gives the application of a radio's host.
    pub(super) fn nodes<'a>(
        &self,
        memory: &'a mut [SocketMemory],
        locals: &'a [Local],
        (relays, app): (&[Relay], impl Fn(usize) -> BulkApp),
        seed: Seed,
    ) -> Vec<Box<TunedStation<'a>>> {
        let life = Life { number: 0, seed };
        let masts = 0..=self.hops.len();
        let sites: Vec<Option<Site>> = masts.map(|mast| self.site(mast, &life)).collect();
        let mut nodes = Vec::new();
        for (radio, (memory, local)) in memory.iter_mut().zip(locals).enumerate() {
            let traffic = self.traffic(radio, (memory, local), app(radio), &relays[radio]);
            let site = sites[radio.div_ceil(2)].as_ref();
            nodes.push(Box::new(self.mounted(radio, site, &life, traffic)));
        }
        nodes
    }

    /// The slots that the radios of a mast share; `None` under the DCF.
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
                let place = usize::from(radio > 0 && radio.is_multiple_of(2));
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

    fn traffic<'a>(
        &self,
        radio: usize,
        (memory, local): (&'a mut SocketMemory, &'a Local),
        app: BulkApp,
        relay: &Relay,
    ) -> Traffic<'a> {
        if self.peer(radio).is_none() {
            return Traffic::Relay(relay.clone());
        }
        match self.load {
            Load::Tcp if self.snoop => {
                let agent = Snoop::new(SnoopConfig::default());
                Traffic::Snooped(Box::new(agent), tcp_host(memory, local, app))
            }
            Load::Tcp => Traffic::Tcp(tcp_host(memory, local, app)),
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
        let mac = Dot11::new(config, me, random);
        // Broadcast frames are not acknowledged, which is what a scheme without retries asks for.
        let to = retries.map_or(Address::BROADCAST, |_| peer);
        Station::Plain(Box::new(OverMac::new(mac, TxQueue::new(traffic, to))))
    }
}
