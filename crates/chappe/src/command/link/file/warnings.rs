//! Settings that are valid but probably not intended.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use chappe_scenario::format::Located;
use chappe_sys::Endpoint;

use super::link::LinkTable;
use super::peer::PeerTable;
use super::{Entry, Source};

pub(super) fn of(
    link: &LinkTable,
    addresses: &[(IpAddr, u8)],
    peers: &[Entry],
    tables: &[(Source, PeerTable)],
    source: &Source,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for peer in peers {
        let config = &peer.config;
        let name = &config.name;
        let has = |to: IpAddr| config.networks.iter().any(|net| net.has(to));
        // A network may contain both ends; a single address belongs to the other end only.
        let only = |to: IpAddr| {
            let whole = if to.is_ipv6() { 128 } else { 32 };
            let mut nets = config.networks.iter();
            nets.any(|net| net.address == to && net.has(to) && net.prefix >= whole)
        };
        for (own, _) in addresses.iter().filter(|own| only(own.0)) {
            warnings.push(format!(
                "{own} is this host's address and also in `networks` of {name}: give the two ends different addresses"
            ));
        }
        if let Some(Endpoint::Udp(to)) = config.endpoint
            && has(to.ip())
        {
            warnings.push(format!(
                "the endpoint {} of {name} is in its own `networks`: it needs a separate route that avoids the link",
                to.ip()
            ));
        }
        for (at, other) in peers.iter().enumerate() {
            let twice = config
                .networks
                .iter()
                .find(|net| other.config.networks.contains(net));
            if let (Some(net), true) = (twice, peers.iter().position(|one| one == peer) < Some(at))
            {
                warnings.push(format!(
                    "the network {}/{} is behind {name} and behind {}: packets go to {name}",
                    net.address, net.prefix, other.config.name
                ));
            }
        }
    }
    if peers.is_empty() {
        warnings
            .push("there is no peer yet: add a [[peer]], or a file to the folder `peers`".into());
    }
    let own = link.key_file.iter().map(|file| (source, file));
    let shared = tables
        .iter()
        .filter_map(|(source, table)| Some((source, table.preshared_key_file.as_ref()?)));
    let readable = |(source, file): (&Source, &Located<PathBuf>)| {
        let path = source.folder.join(file.get_ref());
        let mode = std::fs::metadata(&path).map_or(0, |data| data.permissions().mode());
        (mode & 0o044 != 0).then_some(path)
    };
    warnings.extend(own.chain(shared).filter_map(readable).map(|path| {
        format!(
            "other users of this machine can read {}: run `chmod 600`",
            path.display()
        )
    }));
    warnings
}
