//! Creating, connecting and removing network interfaces, as `ip link`, `ip address` and `ip route` do.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

use crate::Interface;
use crate::error::{Error, NEEDS_NET_ADMIN, Result};
use crate::netlink::{self, Netlink, Request};

/// The attribute VETH_INFO_PEER (linux/veth.h).
const VETH_INFO_PEER: u16 = 1;

/// Octets of `struct rtmsg` and `struct ifinfomsg`.
const RTMSG: usize = 12;
const IFINFOMSG: usize = 16;

/// Of linux/neighbour.h: the attributes of a table of neighbours, and of its parameters for an interface.
const NDTA_NAME: u16 = 1;
const NDTA_PARMS: u16 = 6;
const NDTPA_IFINDEX: u16 = 1;
const NDTPA_RETRANS_TIME: u16 = 5;
const NDTPA_MCAST_PROBES: u16 = 11;

/// The interfaces of one network namespace.
#[derive(Debug)]
pub struct Links {
    netlink: Netlink,
}

impl Links {
    /// Opens route netlink in the calling thread's namespace.
    pub fn open() -> Result<Links> {
        let netlink = Netlink::open().map_err(|error| Error::new("reach route netlink", error))?;
        Ok(Links { netlink })
    }

    /// Creates a veth pair: `here` in this namespace, `there` in the namespace `away`. Both ends are down.
    pub fn veth(&self, here: &str, there: &str, away: impl AsFd) -> Result<()> {
        let away = away.as_fd().as_raw_fd().to_ne_bytes();
        let peer = |data: Request| {
            data.nested(VETH_INFO_PEER, |peer| {
                peer.interface(0, 0, 0)
                    .put_name(libc::IFLA_IFNAME, there)
                    .put(libc::IFLA_NET_NS_FD, &away)
            })
        };
        let request =
            create()
                .put_name(libc::IFLA_IFNAME, here)
                .nested(libc::IFLA_LINKINFO, |info| {
                    info.put_name(libc::IFLA_INFO_KIND, "veth")
                        .nested(libc::IFLA_INFO_DATA, peer)
                });
        self.ask("create a veth pair", here, request)
    }

    /// Creates a bridge, which is down.
    pub fn bridge(&self, name: &str) -> Result<()> {
        let request = create()
            .put_name(libc::IFLA_IFNAME, name)
            .nested(libc::IFLA_LINKINFO, |info| {
                info.put_name(libc::IFLA_INFO_KIND, "bridge")
            });
        self.ask("create a bridge", name, request)
    }

    /// Adds the interface `port` to `bridge`.
    pub fn join(&self, port: &str, bridge: &str) -> Result<()> {
        let master = Interface::find(bridge)?.index.to_ne_bytes();
        let request = change(port)?.put(libc::IFLA_MASTER, &master);
        self.ask("join a bridge", port, request)
    }

    /// Brings the interface up.
    pub fn up(&self, name: &str) -> Result<()> {
        let up = libc::IFF_UP as u32;
        self.ask("turn the interface on", name, flags(name, up, up)?)
    }

    /// Takes the interface down.
    pub fn down(&self, name: &str) -> Result<()> {
        self.ask(
            "turn the interface off",
            name,
            flags(name, 0, libc::IFF_UP as u32)?,
        )
    }

    /// Sets the interface's MTU in octets.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<()> {
        let request = change(name)?.put(libc::IFLA_MTU, &mtu.to_ne_bytes());
        self.ask("set the MTU", name, request)
    }

    /// Sets the alias of the interface (`ip link set DEV alias TEXT`).
    pub fn set_alias(&self, name: &str, alias: &str) -> Result<()> {
        let request = change(name)?.put_name(libc::IFLA_IFALIAS, alias);
        self.ask("set the alias", name, request)
    }

    /// The alias of the interface, if it has one. Needs no privilege.
    pub fn alias(&self, name: &str) -> Result<Option<String>> {
        let index = Interface::find(name)?.index;
        let request = Request::new(libc::RTM_GETLINK, 0).interface(index, 0, 0);
        let answer = self.netlink.query(request);
        let messages =
            answer.map_err(|error| Error::new("ask about the interface", error).on(name))?;
        let alias = messages
            .iter()
            .filter(|message| message.kind == libc::RTM_NEWLINK)
            .flat_map(|message| netlink::attributes(message.body.get(IFINFOMSG..).unwrap_or(&[])))
            .find(|(kind, _)| *kind == libc::IFLA_IFALIAS);
        Ok(alias.map(|(_, value)| netlink::name(value)))
    }

    /// Sets the length of the interface's transmit queue in packets.
    pub fn set_queue_len(&self, name: &str, packets: u32) -> Result<()> {
        let request = change(name)?.put(libc::IFLA_TXQLEN, &packets.to_ne_bytes());
        self.ask("set the queue's length", name, request)
    }

    /// Adds an IPv4 address with the subnet of its first `prefix` bits.
    pub fn add_address(&self, name: &str, address: Ipv4Addr, prefix: u8) -> Result<()> {
        let index = Interface::find(name)?.index;
        let host_bits = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
        let broadcast = Ipv4Addr::from(u32::from(address) | host_bits);
        let request = Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
            .address(libc::AF_INET, prefix, index)
            .put(libc::IFA_LOCAL, &address.octets())
            .put(libc::IFA_ADDRESS, &address.octets())
            .put(libc::IFA_BROADCAST, &broadcast.octets());
        self.ask("add an address", name, request)
    }

    /// Adds an IPv6 address with the subnet of its first `prefix` bits, without duplicate address detection (RFC 4862,
    /// 5.4), which is pointless where the other end is this program.
    pub fn add_address_v6(&self, name: &str, address: Ipv6Addr, prefix: u8) -> Result<()> {
        let index = Interface::find(name)?.index;
        let request = Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
            .address(libc::AF_INET6, prefix, index)
            .put(libc::IFA_LOCAL, &address.octets())
            .put(libc::IFA_ADDRESS, &address.octets())
            .put(libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes());
        self.ask("add an IPv6 address", name, request)
    }

    /// Sets the link-layer address. Bring the interface down first: some drivers refuse the change while it is up.
    pub fn set_hardware(&self, name: &str, address: [u8; 6]) -> Result<()> {
        let request = change(name)?.put(libc::IFLA_ADDRESS, &address);
        self.ask("set the link-layer address", name, request)
    }

    /// Sets after how many ms a request of ARP on the interface is repeated, and how many are sent until the address counts as
    /// unreachable (`retrans_time_ms` and `mcast_solicit` of arp(7)).
    pub fn set_arp(&self, name: &str, repeat_ms: u64, requests: u32) -> Result<()> {
        let index = Interface::find(name)?.index;
        let request = Request::new(libc::RTM_SETNEIGHTBL, 0)
            .neighbours(libc::AF_INET)
            .put_name(NDTA_NAME, "arp_cache")
            .nested(NDTA_PARMS, |parameters| {
                parameters
                    .put(NDTPA_IFINDEX, &index.to_ne_bytes())
                    .put(NDTPA_RETRANS_TIME, &repeat_ms.to_ne_bytes())
                    .put(NDTPA_MCAST_PROBES, &requests.to_ne_bytes())
            });
        self.ask("set the times of ARP", name, request)
    }

    /// Adds or replaces the route to `destination`/`prefix` through the next hop `via` on the interface.
    pub fn add_route(
        &self,
        name: &str,
        (destination, prefix): (Ipv4Addr, u8),
        via: Ipv4Addr,
    ) -> Result<()> {
        let index = Interface::find(name)?.index;
        let request = Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE)
            .route(libc::AF_INET, prefix)
            .put(libc::RTA_DST, &destination.octets())
            .put(libc::RTA_GATEWAY, &via.octets())
            .put(libc::RTA_OIF, &index.to_ne_bytes());
        self.ask("add a route", name, request)
    }

    /// Adds or replaces the route to `destination`/`prefix` through the interface itself. It vanishes with the interface.
    pub fn add_route_to(&self, name: &str, destination: IpAddr, prefix: u8) -> Result<()> {
        let create = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let request = device_route(
            libc::RTM_NEWROUTE,
            create,
            name,
            (destination, prefix),
            None,
        )?;
        self.ask(
            &format!("add a route to {destination}/{prefix}"),
            name,
            request,
        )
    }

    /// Removes the route to `destination`/`prefix` through the interface.
    pub fn remove_route_to(&self, name: &str, destination: IpAddr, prefix: u8) -> Result<()> {
        let request = device_route(libc::RTM_DELROUTE, 0, name, (destination, prefix), None)?;
        self.ask(
            &format!("remove the route to {destination}/{prefix}"),
            name,
            request,
        )
    }

    /// Adds or replaces the route to a network over the interface itself. `protocol` names who added it (`ip route ... proto`),
    /// and of two routes the one with the lower metric counts.
    pub fn add_device_route(
        &self,
        name: &str,
        to: (IpAddr, u8),
        protocol: u8,
        metric: u32,
    ) -> Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let request = device_route(
            libc::RTM_NEWROUTE,
            flags,
            name,
            to,
            Some((protocol, metric)),
        )?;
        self.ask("add a route", name, request)
    }

    /// Removes a route that [`add_device_route`](Self::add_device_route) added.
    pub fn remove_device_route(
        &self,
        name: &str,
        to: (IpAddr, u8),
        protocol: u8,
        metric: u32,
    ) -> Result<()> {
        let request = device_route(libc::RTM_DELROUTE, 0, name, to, Some((protocol, metric)))?;
        self.ask("remove a route", name, request)
    }

    /// Moves the interface to another namespace, where it is down and has no addresses.
    pub fn move_to(&self, name: &str, away: impl AsFd) -> Result<()> {
        let fd = away.as_fd().as_raw_fd().to_ne_bytes();
        let request = change(name)?.put(libc::IFLA_NET_NS_FD, &fd);
        self.ask("move the interface", name, request)
    }

    /// Removes the interface; of a veth pair, both ends.
    pub fn remove(&self, name: &str) -> Result<()> {
        let index = Interface::find(name)?.index;
        let request = Request::new(libc::RTM_DELLINK, 0).interface(index, 0, 0);
        self.ask("remove the interface", name, request)
    }

    /// The interface of the kernel's route to an address.
    pub fn towards(&self, to: IpAddr) -> Result<String> {
        let failed = |error: io::Error| Error::new(format!("find a route to {to}"), error);
        let octets = match to {
            IpAddr::V4(to) => to.octets().to_vec(),
            IpAddr::V6(to) => to.octets().to_vec(),
        };
        let family = [libc::AF_INET, libc::AF_INET6][usize::from(to.is_ipv6())];
        let request = Request::new(libc::RTM_GETROUTE, 0)
            .way(family, octets.len() as u8 * 8)
            .put(libc::RTA_DST, &octets);
        let messages = self.netlink.query(request).map_err(failed)?;
        let index = messages
            .iter()
            .filter(|message| message.kind == libc::RTM_NEWROUTE)
            .flat_map(|message| netlink::attributes(message.body.get(RTMSG..).unwrap_or_default()))
            .find(|(kind, _)| *kind == libc::RTA_OIF)
            .and_then(|(_, value)| netlink::number(value))
            .ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        Interface::name_of(index)
    }

    fn ask(&self, what: &str, on: &str, request: Request) -> Result<()> {
        self.netlink
            .ask(request)
            .map_err(|error| Error::new(what, error).on(on).needs(NEEDS_NET_ADMIN))
    }
}

/// A request about a route through an interface. With `(protocol, metric)` it is one among several of its destination.
fn device_route(
    kind: u16,
    flags: i32,
    name: &str,
    (to, prefix): (IpAddr, u8),
    owner: Option<(u8, u32)>,
) -> Result<Request> {
    let index = Interface::find(name)?.index;
    let (family, octets) = match to {
        IpAddr::V4(to) => (libc::AF_INET, to.octets().to_vec()),
        IpAddr::V6(to) => (libc::AF_INET6, to.octets().to_vec()),
    };
    let request = Request::new(kind, flags);
    let request = match owner {
        None => request.route(family, prefix),
        Some((protocol, _)) => request.route_by(family, prefix, protocol),
    };
    let request = request
        .put(libc::RTA_DST, &octets)
        .put(libc::RTA_OIF, &index.to_ne_bytes());
    Ok(match owner {
        None => request,
        Some((_, metric)) => request.put(libc::RTA_PRIORITY, &metric.to_ne_bytes()),
    })
}

fn create() -> Request {
    Request::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL).interface(0, 0, 0)
}

fn change(name: &str) -> Result<Request> {
    flags(name, 0, 0)
}

fn flags(name: &str, flags: u32, mask: u32) -> Result<Request> {
    let index = Interface::find(name)?.index;
    Ok(Request::new(libc::RTM_NEWLINK, 0).interface(index, flags, mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the kernel's answer about a route is read, for IPv4 and IPv6. Method: the loopback addresses, if there are any.
    #[test]
    fn routes_to_loopback_lead_through_lo() {
        let lo = Interface::find("lo").unwrap();
        if !lo.up {
            return chappe_testkit::skip("the loopback interface is down");
        }
        let links = Links::open().unwrap();
        assert_eq!(links.towards(Ipv4Addr::LOCALHOST.into()).unwrap(), "lo");
        match links.towards(Ipv6Addr::LOCALHOST.into()) {
            Ok(interface) => assert_eq!(interface, "lo"),
            Err(error) => chappe_testkit::skip(format!("no IPv6 route: {error}")),
        }
    }
}
