//! Transfers over stages of relays, as most tests begin them.

use super::*;

/// A transfer over stages of relays: node 0 is the destination, node 1 the source, relays follow path by path.
pub struct Setting {
    pub hops: usize,
    pub paths: usize,
    pub payload: u8,
    pub config: Config,
    pub seed: u64,
    /// Improved variant: groups, and combinations after a segment.
    pub groups: u8,
    pub repair: u8,
    /// Improved variant: paths whose relays answer first.
    pub answering: usize,
    /// PRR of every link between neighbouring stages, as a function of channel, sender, receiver.
    pub prr: fn(Channel, usize, usize) -> f64,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            hops: 4,
            paths: 6,
            payload: 118,
            config: Config::default(),
            seed: 1,
            groups: 2,
            repair: 2,
            answering: usize::MAX,
            prr: |_, _, _| 1.0,
        }
    }
}

pub const DESTINATION: usize = 0;
pub const SOURCE: usize = 1;

impl Setting {
    /// The improved variant with packets as long as it sends them, and a path for each group.
    pub fn improved(config: Config, groups: u8) -> Setting {
        Setting {
            payload: config.payload_max() as u8,
            config,
            groups,
            paths: groups.into(),
            ..Setting::default()
        }
    }

    pub fn path_set(&self) -> Vec<Vec<usize>> {
        let relays = self.hops - 1;
        let path = |path| (0..relays).map(|stage| 2 + path * relays + stage).collect();
        (0..self.paths).map(path).collect()
    }

    pub fn stage_of(&self, node: usize) -> usize {
        match node {
            DESTINATION => self.hops,
            SOURCE => 0,
            _ => (node - 2) % (self.hops - 1) + 1,
        }
    }

    pub fn nodes(&self) -> usize {
        2 + self.paths * (self.hops - 1)
    }

    pub fn plan(&self, transfer: u8) -> Plan {
        let mut random = Seed(self.seed).stream(Purpose::Topology);
        let channels = ChannelOrder::random(&mut random);
        self.plan_on(transfer, channels)
    }

    pub fn plan_on(&self, transfer: u8, channels: ChannelOrder) -> Plan {
        if self.config.variant != Variant::Paper {
            return self.improved_plan(transfer, channels);
        }
        let wanted = Wanted {
            transfer,
            payload: self.payload,
            source: SOURCE as u16,
            destination: DESTINATION as u16,
            channels,
        };
        let mut random = Seed(self.seed).stream(Purpose::Topology);
        let profile = Profile::PAPER;
        let paths = self.path_set();
        Plan::from_paths(wanted, &profile, &paths, &mut random, 0.8, |_| 1.0).unwrap()
    }

    /// Paths in turns to the groups; the session is the transfer's number.
    fn improved_plan(&self, transfer: u8, channels: ChannelOrder) -> Plan {
        let wanted = Wanted {
            transfer,
            payload: self.payload,
            source: SOURCE as u16,
            destination: DESTINATION as u16,
            channels,
        };
        let groups = self.groups.min(self.paths as u8);
        let mut parts = Vec::new();
        for (path, relays) in self.path_set().iter().enumerate() {
            for (stage, &node) in (1..).zip(relays) {
                let (node, group) = (node as u16, path as u8 % groups);
                parts.push(ImprovedPart {
                    place: Place { node, stage, group },
                    answers: path < self.answering,
                });
            }
        }
        let stages = Stages {
            hops: self.hops as u8,
            groups,
            parts: &parts,
            repair: self.repair,
            session: transfer.into(),
        };
        Plan::from_stages(wanted, &self.config, stages).unwrap()
    }

    pub fn fresh(&self, node: usize, object: Bytes) -> Node {
        let config = self.config.clone();
        let number = node as u16;
        match node {
            DESTINATION => {
                let store = Growing::default();
                Node::Destination(Destination::new(config, &CAPS, number, store).unwrap())
            }
            SOURCE => Node::Source(Source::new(config, &CAPS, number, object).unwrap()),
            _ => Node::Relay(Relay::new(config, &CAPS, number).unwrap()),
        }
    }

    /// The network; a frame reaches the neighbouring stages and, in its own stage, the other relays.
    pub fn net(&self, object: Bytes) -> Net {
        let nodes = (0..self.nodes()).map(|node| self.fresh(node, object));
        let stages: Vec<usize> = (0..self.nodes()).map(|node| self.stage_of(node)).collect();
        let link = self.prr;
        let prr = move |channel, from: usize, to: usize| {
            let near = stages[from].abs_diff(stages[to]) <= 1;
            let ends = from != to && near;
            if ends { link(channel, from, to) } else { 0.0 }
        };
        Net::new(nodes.collect(), Box::new(prr), self.seed)
    }
}

/// Random bytes that live as long as the test program.
pub fn object(len: usize, seed: u64) -> Bytes {
    let mut bytes = vec![0; len];
    Seed(seed).stream(Purpose::Traffic(0)).fill(&mut bytes);
    Vec::leak(bytes)
}

/// Starts a transfer at the network's present time.
pub fn start(net: &mut Net, plan: Plan, checkpoint: Option<&Checkpoint>) {
    let now = net.clock(DESTINATION);
    net.destination(DESTINATION)
        .start(plan, checkpoint, now)
        .unwrap();
    net.drain(DESTINATION);
}

/// A network whose destination is a gateway that has begun a transfer.
pub fn with_gateway(setting: &Setting, plan: Plan, object: Bytes) -> Net {
    let mut net = setting.net(object);
    let (config, store) = (setting.config.clone(), Growing::default());
    let trials = Vec::new();
    let planner = Fixed { plan, trials };
    let gateway = Gateway::new(config, &CAPS, DESTINATION as u16, store, planner);
    net.place(DESTINATION, Node::Gateway(gateway.unwrap()));
    let now = net.clock(DESTINATION);
    net.gateway(DESTINATION).start(now).unwrap();
    net.drain(DESTINATION);
    net
}

/// Runs until source and destination are through; returns what the destination has.
pub fn finish(net: &mut Net, limit: Duration) -> Progress {
    net.run(limit, |net| {
        let source = net.source(SOURCE).ended().is_some();
        source && net.destination(DESTINATION).is_idle()
    });
    net.destination(DESTINATION).progress()
}

/// A whole transfer; checks that every octet is right. Returns the network and the duration from the first wake-up
/// transmission to the last packet.
pub fn transfer(setting: &Setting, object: Bytes) -> (Net, Duration) {
    let mut net = setting.net(object);
    start(&mut net, setting.plan(1), None);
    let begun = net.clock(DESTINATION);
    let progress = finish(&mut net, Duration::from_secs(300));
    let destination = net.destination(DESTINATION);
    let completed = progress
        .completed
        .unwrap_or_else(|| panic!("incomplete: {progress:?}"));
    assert!(destination.store().finished);
    assert!(destination.store().bytes == object, "other octets arrived");
    (net, completed.saturating_since(begun))
}
