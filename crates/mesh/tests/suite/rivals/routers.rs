//! The routers, started in the namespaces of the nodes.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chappe_core::Bitrate;
use chappe_live::{Carrier, Membership};
use chappe_mesh::air::Air;
use chappe_mesh::daemon::{ETHER_TYPE, Mesh, MeshConfig};
use chappe_mesh::packet::Net;
use chappe_mesh::settings::{Hop, NodeConfig};
use chappe_sys::namespace::NetworkNamespace;

/// What finds the ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// The daemon of `chappe mesh`, with its own routing.
    Mesh,
    /// babeld, over wireless interfaces.
    Babel,
    /// Static routes of least ETX by the true delivery ratios: nothing is measured or sent.
    Static,
}

impl Router {
    pub const ALL: [Router; 3] = [Router::Mesh, Router::Babel, Router::Static];

    pub fn name(self) -> &'static str {
        match self {
            Router::Mesh => "mesh",
            Router::Babel => "babeld",
            Router::Static => "static",
        }
    }

    pub fn named(name: &str) -> Option<Router> {
        Router::ALL.into_iter().find(|router| router.name() == name)
    }

    /// The address under which a node is reached.
    pub fn address(self, node: usize) -> String {
        match self {
            Router::Mesh => format!("10.77.0.{}", node + 1),
            Router::Babel | Router::Static => format!("10.17.0.{}", node + 1),
        }
    }

    /// The prefix length of the hosts' addresses, if it is not the emulator's. babeld's README gives each radio a /32. With a whole subnet
    /// on the interface the kernel takes every node for a neighbour until babeld has a route, and sends over links of a few percent.
    pub fn prefix(self) -> Option<u8> {
        (self == Router::Babel).then_some(32)
    }

    /// Starts the router of a node in its namespace. Its files are in `folder`. The mesh sends data as video, if `video`.
    pub fn start(
        self,
        host: &NetworkNamespace,
        (node, nodes): (usize, usize),
        folder: &Path,
        video: bool,
    ) -> Option<Child> {
        let mut command = match self {
            Router::Static => return None,
            Router::Mesh => {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["--router", &node.to_string(), &nodes.to_string()]);
                command.arg(socket(folder, node));
                command.arg(if video { "video" } else { "radio" });
                command
            }
            Router::Babel => {
                let file = |what: &str| folder.join(format!("{node}.{what}"));
                let mut command = Command::new("babeld");
                command
                    .arg("-I")
                    .arg(file("pid"))
                    .arg("-S")
                    .arg(file("state"));
                command.args(["-C", "interface radio0 type wireless", "radio0"]);
                command
            }
        };
        let log = fs::File::create(folder.join(format!("{node}.log"))).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        Some(host.run(|| command.spawn()).unwrap().unwrap())
    }
}

/// Where the daemon of a node answers.
pub fn socket(folder: &Path, node: usize) -> PathBuf {
    folder.join(format!("{node}.sock"))
}

/// The daemon of one node, until a signal comes. The words are its number, how many nodes there are, its socket, and its medium: `wired` is
/// Ethernet of 1 Gbit/s, `radio` and `video` are 802.11b with data as best effort and as video.
pub fn serve(words: &[String]) {
    let medium = words[3].as_str();
    let number = |at: usize| words[at].parse::<u16>().unwrap();
    let (node, nodes) = (number(0), number(1));
    let net = |text| Net::parse(text).unwrap();
    let config = MeshConfig {
        node: NodeConfig {
            number: node + 1,
            networks: vec![net("10.77.0.0/16"), net("fd77::/64")],
            behind: Vec::new(),
            air: match medium {
                "wired" => Air::wired(Bitrate(1_000_000_000)),
                _ => Air::dot11b(Bitrate(11_000_000)),
            },
            hop: Hop::Broadcast,
            // The default of `chappe mesh`.
            size: 32.max(nodes),
            mtu: 0,
            groups: false,
            video: medium == "video",
        },
        membership: Membership::example(node + 1, nodes + 1, 7),
        device: "mesh%d".into(),
        interfaces: vec!["radio0".into()],
        carrier: Carrier::Packet {
            ether_type: ETHER_TYPE,
        },
        export: false,
        socket: Some(words[2].clone().into()),
        signals: true,
    };
    let mut mesh = Mesh::open(config).expect("a mesh device");
    mesh.run(|_, _, _| ControlFlow::Continue(()))
        .expect("interfaces");
}
