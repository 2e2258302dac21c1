//! The configuration file of `chappe link run`, with the keys and the folder of peers that it names.

mod endpoint;
mod keys;
mod link;
mod paths;
mod peer;
mod streams;
mod warnings;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chappe_core::Duration;
use chappe_link::{Carrier, PeerConfig, TunnelConfig};
use chappe_scenario::InputError;
use chappe_scenario::format::{self, Located};
use serde::Deserialize;

use link::LinkTable;
use peer::PeerTable;
use streams::{PortTable, ServeTable, SocksTable, Tables};

/// The commented configuration that `chappe link new` writes.
pub const TEMPLATE: &str = include_str!("file/template.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    link: LinkTable,
    #[serde(default)]
    peer: Vec<PeerTable>,
    #[serde(default)]
    port: Vec<PortTable>,
    socks: Option<SocksTable>,
    #[serde(default)]
    serve: Vec<ServeTable>,
}

/// A configuration file, checked.
pub struct Configuration {
    pub tunnel: TunnelConfig,
    pub peers: Vec<Entry>,
    pub metrics: Option<PathBuf>,
    /// The folder of peers.
    pub folder: Option<PathBuf>,
    /// The socket on which the link answers `chappe link status`; `None` for the usual one.
    pub status: Option<PathBuf>,
    /// What to run once the device is up, and before it goes.
    pub hooks: Hooks,
    /// Whether this host introduces its peers to each other.
    pub introduces: bool,
    /// Settings that are valid but probably not intended.
    pub warnings: Vec<String>,
}

/// A peer with what the tunnel itself need not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub config: PeerConfig,
    /// Its endpoint as a name and a port, to be looked up.
    pub host: Option<(String, u16)>,
    /// The same of each of its paths.
    pub path_hosts: Vec<Option<(String, u16)>>,
    /// Its distance in metres, if the file has it.
    pub distance: Option<f64>,
    /// The peer that is asked where this one is while it does not answer.
    pub introducer: Option<String>,
    /// What to run when it comes up, and when it is lost.
    pub hooks: Hooks,
}

/// Programs with their arguments that run when something comes up or goes down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    pub up: Vec<String>,
    pub down: Vec<String>,
    /// How long each may take.
    pub limit: Duration,
}

/// Reads a configuration with the keys and the folder that it names.
pub fn read(path: &Path) -> Result<Configuration, InputError> {
    let source = Source::read(path)?;
    let file: File = source.parse()?;
    let link = &file.link;
    let carrier = link.carrier(&source)?;
    let path_mtu = link.path_mtu(&source)?;
    let addresses = link.addresses(&source)?;
    let device = link.device(&source)?;
    let tables = Tables {
        ports: &file.port,
        socks: &file.socks,
        served: &file.serve,
        connections: &link.connections,
        buffer: &link.buffer,
    };
    let streams = tables.read(link.is_without_device(), addresses.len(), &source)?;
    // An old file's mistake is explained at its peer, which comes before the missing key of the host.
    let from_file: Vec<(Source, PeerTable)> = file
        .peer
        .into_iter()
        .map(|table| (source.clone(), table))
        .collect();
    for (source, table) in &from_file {
        table.refuse_old(source)?;
    }
    let secret = link.secret(&source)?;
    let mut tables = from_file;
    if let Some(folder) = &link.peers {
        tables.extend(folder_of_peers(&source, folder)?);
    }
    let peers = peers(&tables, &carrier, path_mtu)?;
    if let Some(own) = peers
        .iter()
        .find(|peer| peer.config.public == secret.public())
    {
        let message = format!(
            "`{}` has the public key of this host itself",
            own.config.name
        );
        let help =
            "write the public key of the other host: `chappe link key public FILE` prints it there";
        return Err(InputError::new(source.from, message).help(help));
    }
    let mut warnings = warnings::of(link, &addresses, &peers, &tables, &source);
    warnings.extend(streams.iter().flat_map(streams::warnings));
    Ok(Configuration {
        tunnel: TunnelConfig {
            device,
            secret,
            addresses,
            routes: link.routes,
            carrier,
            device_queue: link.device_queue,
            mtu: None,
            memory: link.memory(&source)?,
            offloads: true,
            signals: true,
            streams,
        },
        peers,
        metrics: link.metrics.as_ref().map(|path| source.folder.join(path)),
        status: link.status.as_ref().map(|path| source.folder.join(path)),
        folder: link
            .peers
            .as_ref()
            .map(|folder| source.folder.join(folder.get_ref())),
        hooks: link.hooks(),
        introduces: link.introduce,
        warnings,
    })
}

/// The peers of a folder: one file each, whose name without `.toml` is the peer's.
fn folder_of_peers(
    source: &Source,
    folder: &Located<PathBuf>,
) -> Result<Vec<(Source, PeerTable)>, InputError> {
    let path = source.folder.join(folder.get_ref());
    let read = std::fs::read_dir(&path).and_then(|entries| {
        let paths = entries.map(|entry| Ok(entry?.path()));
        paths.collect::<std::io::Result<Vec<_>>>()
    });
    let mut files = read.map_err(|error| {
        let message = format!("cannot read the folder {}: {error}", path.display());
        source.wrong(folder.span(), message, "create it, or leave `peers` out")
    })?;
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut tables = Vec::new();
    for file in files {
        let source = Source::read(&file)?;
        let mut table: PeerTable = source.parse()?;
        table.refuse_old(&source)?;
        let stem = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        table.name_after(stem.unwrap_or_default());
        tables.push((source, table));
    }
    Ok(tables)
}

/// A file's text with its origin, for errors with a place.
#[derive(Clone)]
struct Source {
    from: String,
    text: Arc<str>,
    /// The folder that paths in the file are relative to.
    folder: PathBuf,
}

impl Source {
    fn read(path: &Path) -> Result<Source, InputError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))?;
        Ok(Source {
            from: path.display().to_string(),
            text: text.into(),
            folder: path.parent().unwrap_or(Path::new(".")).to_owned(),
        })
    }

    /// A mistake at a place, and the right form.
    fn wrong(&self, span: Range<usize>, message: String, help: &str) -> InputError {
        InputError::new(self.from.clone(), message)
            .at(&self.text, span, "here")
            .help(help)
    }

    fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, InputError> {
        format::read(&self.from, &self.text)
    }
}

/// The peers; names and keys must be unique.
fn peers(
    tables: &[(Source, PeerTable)],
    carrier: &Carrier,
    path_mtu: usize,
) -> Result<Vec<Entry>, InputError> {
    let mut peers: Vec<Entry> = Vec::new();
    for (source, table) in tables {
        let peer = table.read(carrier, path_mtu, source)?;
        for other in &peers {
            if other.config.name == peer.config.name {
                let message = format!("there are two peers `{}`", other.config.name);
                return Err(source.wrong(table.name_span(), message, "give each a different name"));
            }
            if other.config.public == peer.config.public {
                let (name, other) = (&peer.config.name, &other.config.name);
                let message = format!("`{name}` has the public key of `{other}`");
                let help = "a key identifies a host: `chappe link key public FILE` prints it there";
                return Err(source.wrong(table.key_span(), message, help));
            }
        }
        peers.push(peer);
    }
    for (source, table) in tables {
        table.check_introducer(&peers, carrier, source)?;
    }
    Ok(peers)
}

#[cfg(test)]
mod tests;
