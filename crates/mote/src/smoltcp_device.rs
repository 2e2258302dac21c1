//! smoltcp's sockets over our 6LoWPAN, and our sockets over smoltcp's devices.

use chappe_core::{HostNode, Instant, Wake};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant as Millis;

/// A host without a stack of its own: packets that arrive wait for smoltcp, and those that smoltcp sends wait for the
/// interface. `MTU` is the largest datagram, as in [`Interface`](chappe_tcplp::lowpan::Interface); IPv6 asks for 1280.
///
/// ```
/// use chappe_core::{HostNode, Instant};
/// use chappe_mote::smoltcp_device::Packets;
/// use smoltcp::iface::{Config, Interface, SocketSet};
/// use smoltcp::wire::HardwareAddress;
///
/// let mut packets: Packets<1280> = Packets::new();
/// let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut packets, smoltcp::time::Instant::ZERO);
/// let mut sockets = SocketSet::new(vec![]);
/// // With `link` a `lowpan::Interface<Packets<1280>, ...>`: link.with_host(now, |packets| interface.poll(...)).
/// packets.handle_packet(Instant::ZERO, &[0x60; 40]);
/// interface.poll(smoltcp::time::Instant::ZERO, &mut packets, &mut sockets);
/// assert_eq!(packets.dropped(), 0);
/// ```
#[derive(Debug)]
pub struct Packets<const MTU: usize> {
    received: Slot<MTU>,
    sending: Slot<MTU>,
    dropped: u32,
}

#[derive(Debug)]
struct Slot<const MTU: usize> {
    len: usize,
    octets: [u8; MTU],
}

impl<const MTU: usize> Slot<MTU> {
    const EMPTY: Slot<MTU> = Slot {
        len: 0,
        octets: [0; MTU],
    };
}

impl<const MTU: usize> Packets<MTU> {
    /// A host without a packet in either direction.
    pub const fn new() -> Packets<MTU> {
        Packets {
            received: Slot::EMPTY,
            sending: Slot::EMPTY,
            dropped: 0,
        }
    }

    /// Packets that arrived before smoltcp had taken the one before, and those larger than `MTU`.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Whether smoltcp should be polled: a packet waits for it.
    pub fn has_packet(&self) -> bool {
        self.received.len > 0
    }
}

impl<const MTU: usize> Default for Packets<MTU> {
    fn default() -> Self {
        Packets::new()
    }
}

impl<const MTU: usize> HostNode for Packets<MTU> {
    fn handle_packet(&mut self, _now: Instant, packet: &[u8]) {
        let place = self.received.octets.get_mut(..packet.len());
        match place.filter(|_| self.received.len == 0) {
            Some(place) => {
                place.copy_from_slice(packet);
                self.received.len = packet.len();
            }
            None => self.dropped = self.dropped.wrapping_add(1),
        }
    }

    fn poll_packet(&mut self, _now: Instant, packet: &mut [u8]) -> Option<usize> {
        let len = core::mem::take(&mut self.sending.len);
        let octets = self.sending.octets.get(..len).filter(|_| len > 0)?;
        let Some(place) = packet.get_mut(..len) else {
            self.dropped = self.dropped.wrapping_add(1);
            return None;
        };
        place.copy_from_slice(octets);
        Some(len)
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

impl<const MTU: usize> Device for Packets<MTU> {
    type RxToken<'p> = Received<'p>;
    type TxToken<'p> = Sending<'p>;

    fn receive(&mut self, _: Millis) -> Option<(Received<'_>, Sending<'_>)> {
        // An answer needs room: without it the packet waits.
        if self.sending.len > 0 {
            return None;
        }
        let len = core::mem::take(&mut self.received.len);
        let packet = self.received.octets.get(..len).filter(|_| len > 0)?;
        let sending = Sending {
            len: &mut self.sending.len,
            octets: &mut self.sending.octets,
        };
        Some((Received(packet), sending))
    }

    fn transmit(&mut self, _: Millis) -> Option<Sending<'_>> {
        (self.sending.len == 0).then_some(Sending {
            len: &mut self.sending.len,
            octets: &mut self.sending.octets,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities.max_burst_size = Some(1);
        capabilities
    }
}

/// A packet for smoltcp.
#[derive(Debug)]
pub struct Received<'p>(&'p [u8]);

impl RxToken for Received<'_> {
    fn consume<T, F: FnOnce(&[u8]) -> T>(self, f: F) -> T {
        f(self.0)
    }
}

/// Room for a packet of smoltcp's.
#[derive(Debug)]
pub struct Sending<'p> {
    len: &'p mut usize,
    octets: &'p mut [u8],
}

impl TxToken for Sending<'_> {
    fn consume<T, F: FnOnce(&mut [u8]) -> T>(self, len: usize, f: F) -> T {
        // smoltcp keeps to the MTU of the capabilities; beyond it, what it writes is dropped.
        let len = len.min(self.octets.len());
        *self.len = len;
        f(self.octets.get_mut(..len).unwrap_or_default())
    }
}

/// Carries packets between a host of ours and a device of smoltcp's whose medium is IP, until neither has one. Call it
/// after each event of the device and after the host's timeouts. Packets of at most `buffer` octets are sent.
pub fn exchange(
    now: Instant,
    host: &mut impl HostNode,
    device: &mut impl Device,
    buffer: &mut [u8],
) {
    let time = Millis::from_micros(i64::try_from(now.nanos() / 1000).unwrap_or(i64::MAX));
    while let Some((received, _)) = device.receive(time) {
        received.consume(|packet| host.handle_packet(now, packet));
    }
    while let Some(token) = device.transmit(time) {
        let Some(len) = host.poll_packet(now, buffer) else {
            break;
        };
        let packet = buffer.get(..len).unwrap_or_default();
        token.consume(len, |place| {
            place
                .iter_mut()
                .zip(packet)
                .for_each(|(to, &from)| *to = from);
        });
    }
}
