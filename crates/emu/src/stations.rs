//! Stations of one MAC, each with a bridge, as a simulator that an [`Emulator`](crate::Emulator) can run.

use chappe_core::{Address, Mac, OverMac, Purpose, Seed, Stream};
use chappe_sim::{Medium, Simulator, World};

use crate::bridge::Bridge;

/// Frames that may wait for the air at each station: a driver's queue for a card of some Mbit/s.
const QUEUE: usize = 64;

/// One station for each node of `medium`, with the address of its number and with frames of up to `mtu` octets of payload.
///
/// `mac` makes a station's MAC from its address and its own random stream of `seed`. Fails where a simulator of this medium
/// would.
///
/// ```
/// use chappe_core::{Rate, Seed};
/// use chappe_emu::{Bridge, stations};
/// use chappe_mac::dot11::{Config, Dot11};
/// use chappe_sim::{Matrix, Medium};
///
/// let medium = Medium::matrix(&Matrix::silent(2).with_link(0, 1, 0.9))?;
/// let config = Config::dot11b(Rate::Cck11);
/// let mtu = Bridge::mtu_of(config.caps().frame_max);
/// let air = stations(medium, mtu, Seed(1), |address, random| Dot11::new(config, address, random))?;
/// assert_eq!(air.nodes().count(), 2);
/// # Ok::<(), chappe_sim::Error>(())
/// ```
pub fn stations<M: Mac>(
    medium: Medium,
    mtu: usize,
    seed: Seed,
    mac: impl Fn(Address, Stream) -> M,
) -> Result<Simulator<OverMac<M, Bridge>>, chappe_sim::Error> {
    let station = |node: usize| {
        let address = Address::node(node as u16);
        let random = seed.stream(Purpose::Node(node as u32));
        let bridge = Bridge::new(address, mtu, QUEUE);
        Box::new(OverMac::new(mac(address, random), bridge))
    };
    let nodes = (0..medium.nodes()).map(station).collect();
    Simulator::new(World::new(medium), nodes, seed, ())
}
