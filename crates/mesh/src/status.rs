//! The state of a node for people and programs: text, JSON, NetJSON's NetworkGraph, Prometheus.

mod json;
mod table;

use std::fmt::Write;
use std::net::IpAddr;

use chappe_core::Instant;
use chappe_live::Statistics;

use crate::node::{Node, Whither, Why};
use crate::packet::Net;
use crate::settings::{Hop, NodeConfig};
use json::Json;
use table::{COUNTERS, Facts};

/// The state of a node at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    number: u16,
    addresses: Vec<String>,
    mtu: usize,
    hop: Hop,
    /// Share of the channel and price of this node.
    airtime: Option<(f64, f64)>,
    neighbours: Vec<NeighbourStatus>,
    routes: Vec<RouteStatus>,
    flows: Vec<FlowStatus>,
    announced: Vec<(u16, Vec<Net>)>,
    /// Name, help, value: each a counter since the start.
    counters: Vec<(&'static str, &'static str, u64)>,
}

#[derive(Clone, Debug, PartialEq)]
struct NeighbourStatus {
    node: u16,
    etx: Option<f64>,
    /// The shares of broadcasts that arrive here and there.
    ratios: Option<(f64, Option<f64>)>,
    round_s: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
struct RouteStatus {
    node: u16,
    distance: Option<f64>,
    next_hops: Vec<u16>,
    waiting: u16,
    cost_s: Option<f64>,
    rate: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
struct FlowStatus {
    to: u16,
    flow: u16,
    packets: usize,
    octets: usize,
    wait_s: f64,
}

impl Status {
    /// Reads the state of a node and its driver.
    pub fn of(node: &Node, now: Instant, statistics: &Statistics) -> Status {
        let (config, router) = (node.config(), node.router());
        let addresses = config
            .networks
            .iter()
            .filter_map(|net| net.nth(config.number));
        let neighbour = |(number, etx)| {
            let heard = statistics
                .neighbours
                .iter()
                .find(|known| known.address.node_number() == Some(number));
            NeighbourStatus {
                node: number,
                etx,
                ratios: heard.map(|heard| (heard.from, heard.to)),
                round_s: node
                    .recovery()
                    .round(number)
                    .map(|round| round.as_secs_f64()),
            }
        };
        let route = |number| RouteStatus {
            node: number,
            distance: router.distance(number),
            next_hops: router.next_hops(number).collect(),
            waiting: router.queue(number),
            cost_s: router.cost(now, number),
            rate: router.rate(number),
        };
        let mut routes: Vec<_> = router.destinations().map(route).collect();
        routes.sort_by_key(|route| route.node);
        let flow =
            |((to, flow), packets, octets, wait): (_, _, _, chappe_core::Duration)| FlowStatus {
                to,
                flow,
                packets,
                octets,
                wait_s: wait.as_secs_f64(),
            };
        Status {
            number: config.number,
            addresses: addresses.map(|address| address.to_string()).collect(),
            mtu: config.mtu,
            hop: config.hop,
            airtime: router.airtime(),
            neighbours: router.neighbours().map(neighbour).collect(),
            routes,
            flows: node.host().flows(now).map(flow).collect(),
            announced: node
                .announced(now)
                .map(|(node, nets)| (node, nets.to_vec()))
                .collect(),
            counters: counters(node, statistics),
        }
    }

    /// The state as text for people.
    pub fn text(&self) -> String {
        let mut out = format!(
            "node {}: {}, MTU {}, {}\n",
            self.number,
            self.addresses.join(", "),
            self.mtu,
            hop(self.hop)
        );
        if let Some((share, price)) = self.airtime {
            let _ = writeln!(
                out,
                "air: {:.1} % used by this node, price {price:.3}",
                100.0 * share
            );
        }
        let _ = writeln!(out, "\nneighbour   ETX  from %  to %  answers in");
        for known in &self.neighbours {
            let percent = |share: Option<f64>| {
                share.map_or("-".into(), |share| format!("{:.0}", 100.0 * share))
            };
            let (from, to) = known
                .ratios
                .map_or((None, None), |(from, to)| (Some(from), to));
            let etx = known.etx.map_or("-".into(), |etx| format!("{etx:.2}"));
            let round = known
                .round_s
                .map_or("-".into(), |round| format!("{:.1} ms", 1e3 * round));
            let _ = writeln!(
                out,
                "{:9} {etx:>5} {:>7} {:>5}  {round:>10}",
                known.node,
                percent(from),
                percent(to)
            );
        }
        let _ = writeln!(
            out,
            "\n     node   ETX  next hops  waiting  price of a packet  rate"
        );
        for route in &self.routes {
            let hops: Vec<_> = route.next_hops.iter().map(u16::to_string).collect();
            let distance = route.distance.map_or("-".into(), |etx| format!("{etx:.2}"));
            let cost = route
                .cost_s
                .map_or("-".into(), |cost| format!("{:.2} ms", 1e3 * cost));
            let rate = route.rate.map_or("-".into(), |rate| format!("{rate:.0}/s"));
            let _ = writeln!(
                out,
                "{:9} {distance:>5} {:>10} {:>8} {cost:>18} {rate:>5}",
                route.node,
                hops.join(" "),
                route.waiting
            );
        }
        for (node, nets) in &self.announced {
            let nets: Vec<_> = nets.iter().map(Net::to_string).collect();
            let _ = writeln!(out, "behind {node}: {}", nets.join(", "));
        }
        if !self.flows.is_empty() {
            let _ = writeln!(out, "\nflow    to  packets   octets     waits");
        }
        for flow in &self.flows {
            let _ = writeln!(
                out,
                "{:04x} {:>5} {:>8} {:>8} {:>6.0} ms",
                flow.flow,
                flow.to,
                flow.packets,
                flow.octets,
                1e3 * flow.wait_s
            );
        }
        let _ = writeln!(out);
        for (name, _, value) in self.counters.iter().filter(|(_, _, value)| *value > 0) {
            let _ = writeln!(out, "{name} {value}");
        }
        out
    }

    /// The state as one JSON document.
    pub fn json(&self) -> String {
        let mut json = Json::default();
        json.object(|json| {
            json.key("node").number(self.number.into());
            json.key("addresses")
                .list(&self.addresses, |json, address| json.text(address));
            json.key("mtu").number(self.mtu as f64);
            json.key("recovery").text(hop(self.hop));
            json.key("airtime")
                .maybe(self.airtime.map(|(share, _)| share));
            json.key("price")
                .maybe(self.airtime.map(|(_, price)| price));
            json.key("neighbours")
                .list(&self.neighbours, |json, known| {
                    json.object(|json| {
                        json.key("node").number(known.node.into());
                        json.key("etx").maybe(known.etx);
                        json.key("from").maybe(known.ratios.map(|(from, _)| from));
                        json.key("to").maybe(known.ratios.and_then(|(_, to)| to));
                        json.key("round_s").maybe(known.round_s);
                    });
                });
            json.key("routes").list(&self.routes, |json, route| {
                json.object(|json| {
                    json.key("node").number(route.node.into());
                    json.key("etx").maybe(route.distance);
                    json.key("next_hops")
                        .list(&route.next_hops, |json, hop| json.number((*hop).into()));
                    json.key("waiting").number(route.waiting.into());
                    json.key("cost_s").maybe(route.cost_s);
                    json.key("rate").maybe(route.rate);
                });
            });
            json.key("announced")
                .list(&self.announced, |json, (node, nets)| {
                    json.object(|json| {
                        json.key("node").number((*node).into());
                        json.key("networks")
                            .list(nets, |json, net| json.text(&net.to_string()));
                    });
                });
            json.key("flows").list(&self.flows, |json, flow| {
                json.object(|json| {
                    json.key("to").number(flow.to.into());
                    json.key("flow").number(flow.flow.into());
                    json.key("packets").number(flow.packets as f64);
                    json.key("octets").number(flow.octets as f64);
                    json.key("wait_s").number(flow.wait_s);
                });
            });
            json.key("counters").object(|json| {
                for (name, _, value) in &self.counters {
                    json.key(name).number(*value as f64);
                }
            });
        });
        json.finish()
    }

    /// A NetworkGraph of NetJSON (netjson.org, RFC draft 0.9): what this node knows of the mesh.
    pub fn netjson(&self) -> String {
        let mut json = Json::default();
        json.object(|json| {
            json.key("type").text("NetworkGraph");
            json.key("protocol").text("chappe-mesh");
            json.key("version").text(env!("CARGO_PKG_VERSION"));
            json.key("metric").text("ETX");
            json.key("router_id").text(&self.number.to_string());
            let all: Vec<u16> = std::iter::once(self.number)
                .chain(self.routes.iter().map(|route| route.node))
                .collect();
            json.key("nodes").list(&all, |json, node| {
                json.object(|json| json.key("id").text(&node.to_string()));
            });
            let links: Vec<_> = self
                .neighbours
                .iter()
                .filter_map(|known| Some((known.node, known.etx?)))
                .collect();
            json.key("links").list(&links, |json, (node, etx)| {
                json.object(|json| {
                    json.key("source").text(&self.number.to_string());
                    json.key("target").text(&node.to_string());
                    json.key("cost").number(*etx);
                });
            });
        });
        json.finish()
    }

    /// The state in Prometheus' text format.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        let mut gauge = |name: &str, help: &str, rows: Vec<(String, f64)>| {
            let _ = writeln!(
                out,
                "# HELP chappe_mesh_{name} {help}\n# TYPE chappe_mesh_{name} gauge"
            );
            for (labels, value) in rows {
                let _ = writeln!(
                    out,
                    "chappe_mesh_{name}{{node=\"{}\"{labels}}} {value}",
                    self.number
                );
            }
        };
        let own = |value: Option<f64>| {
            value
                .map(|value| (String::new(), value))
                .into_iter()
                .collect()
        };
        gauge(
            "airtime",
            "Share of the channel that this node uses.",
            own(self.airtime.map(|air| air.0)),
        );
        gauge(
            "price",
            "Price of airtime at this node.",
            own(self.airtime.map(|air| air.1)),
        );
        let known =
            |known: &NeighbourStatus| Some((format!(",neighbour=\"{}\"", known.node), known.etx?));
        gauge(
            "etx",
            "Transmissions that a frame to a neighbour takes.",
            self.neighbours.iter().filter_map(known).collect(),
        );
        let to = |route: &RouteStatus| format!(",to=\"{}\"", route.node);
        let routes = self.routes.iter();
        gauge(
            "distance",
            "Distance to a node in ETX.",
            routes
                .clone()
                .filter_map(|route| Some((to(route), route.distance?)))
                .collect(),
        );
        gauge(
            "waiting",
            "Packets that wait here for a node.",
            routes
                .clone()
                .map(|route| (to(route), f64::from(route.waiting)))
                .collect(),
        );
        gauge(
            "rate",
            "Packets a second that this host may send to a node.",
            routes
                .filter_map(|route| Some((to(route), route.rate?)))
                .collect(),
        );
        for (name, help, value) in &self.counters {
            let _ = writeln!(
                out,
                "# HELP chappe_mesh_{name}_total {help}\n# TYPE chappe_mesh_{name}_total counter"
            );
            let _ = writeln!(
                out,
                "chappe_mesh_{name}_total{{node=\"{}\"}} {value}",
                self.number
            );
        }
        out
    }
}

fn hop(hop: Hop) -> &'static str {
    match hop {
        Hop::Broadcast => "broadcast",
        Hop::Unicast => "unicast",
    }
}

/// All counters, with what they count.
fn counters(node: &Node, statistics: &Statistics) -> Vec<(&'static str, &'static str, u64)> {
    let (own, router, host, recovery) = node.counters();
    let facts = Facts {
        own,
        router,
        host,
        recovery,
        live: statistics,
    };
    let rows = COUNTERS.iter();
    rows.map(|row| (row.name, row.help, (row.read)(&facts)))
        .collect()
}

/// The answer to `why ADDRESS`, for people.
pub fn explain(why: &Why, config: &NodeConfig, address: IpAddr) -> String {
    let node = match why.whither {
        Whither::Here => return format!("{address} is this node, {}\n", config.number),
        Whither::Group => {
            let fate = match config.groups {
                true => "to every node that is reachable",
                false => "nowhere, since `groups` is not set",
            };
            return format!("{address} is a group's: packets go {fate}\n");
        }
        Whither::Unknown => {
            return format!(
                "{address} lies behind no node that is known here and reachable, and no gateway is\n"
            );
        }
        Whither::Node(node) => node,
    };
    let mut out = format!("{address} is at node {node}");
    let Some(distance) = why.distance else {
        let _ = writeln!(out, ", which cannot be reached now");
        if why.ways.is_empty() {
            let _ = writeln!(out, "  no neighbour has told a route to it");
        }
        tell_ways(&mut out, why);
        return out;
    };
    let hops: Vec<_> = why.next_hops.iter().map(u16::to_string).collect();
    let _ = writeln!(
        out,
        ", {distance:.2} transmissions away, by {}",
        hops.join(" and ")
    );
    if let Some(cost) = why.cost {
        let _ = writeln!(
            out,
            "  a packet costs {:.2} ms of priced airtime",
            1e3 * cost
        );
    }
    if let Some(rate) = why.rate {
        let _ = writeln!(out, "  this host may send {rate:.0} packets a second there");
    }
    tell_ways(&mut out, why);
    out
}

fn tell_ways(out: &mut String, why: &Why) {
    for way in &why.ways {
        let reason = match (
            way.distance,
            way.feasible,
            why.next_hops.iter().position(|hop| *hop == way.node),
        ) {
            (None, _, _) => "no: it has no route, or its route leads through this node".to_owned(),
            (Some(etx), _, Some(0)) => format!("yes: the best, {etx:.2} transmissions"),
            (Some(etx), _, Some(_)) => format!("yes: beside the best, {etx:.2} transmissions"),
            (Some(etx), false, None) => format!(
                "no: {etx:.2} transmissions, but its route may lead back here; a newer one is asked for"
            ),
            (Some(etx), true, None) => {
                format!("no: {etx:.2} transmissions, and a second path would not pay")
            }
        };
        let _ = writeln!(
            out,
            "  by {}: {reason}; {:.0} packets wait there",
            way.node, way.backlog
        );
    }
}
