//! Segments of TCP as Linux makes them: IPv4, a stamp, and blocks of selective acknowledgements.

/// A segment of one of two hosts.
pub struct Segment<'a> {
    pub from: usize,
    /// The flow's port at both hosts.
    pub flow: u16,
    /// IP's number of the packet.
    pub identification: u16,
    pub seq: u32,
    pub ack: u32,
    /// The sender's clock in milliseconds.
    pub stamp: u32,
    /// The other host's clock as this one heard it last (RFC 7323).
    pub echo: u32,
    /// What has arrived beyond `ack`: first octets, and those behind the last ones (RFC 2018); three at most.
    pub blocks: &'a [(u32, u32)],
    pub payload: usize,
}

/// Octets of the headers of a segment without blocks: IP, TCP and a stamp.
pub const HEADERS: usize = 52;
/// Where the blocks begin, and octets of one.
const BLOCKS: usize = HEADERS + 4;
const BLOCK: usize = 8;

impl Segment<'_> {
    pub fn octets(&self) -> Vec<u8> {
        let blocks = match self.blocks.len() {
            0 => 0,
            count => 4 + BLOCK * count,
        };
        let headers = HEADERS + blocks;
        let from = self.from as u8;
        let mut packet = vec![0; headers + self.payload];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&((headers + self.payload) as u16).to_be_bytes());
        packet[4..6].copy_from_slice(&self.identification.to_be_bytes());
        (packet[6], packet[8], packet[9]) = (0x40, 64, 6);
        packet[12..20].copy_from_slice(&[10, 9, 0, 1 + from, 10, 9, 0, 2 - from]);
        let sum: u32 = packet[..20]
            .chunks(2)
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        let check = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&check.to_be_bytes());
        packet[20..22].copy_from_slice(&self.flow.to_be_bytes());
        packet[22..24].copy_from_slice(&self.flow.to_be_bytes());
        packet[24..28].copy_from_slice(&self.seq.to_be_bytes());
        packet[28..32].copy_from_slice(&self.ack.to_be_bytes());
        (packet[32], packet[33]) = ((((headers - 20) / 4) << 4) as u8, 0x10);
        packet[36..38].copy_from_slice(&[self.seq as u8 ^ 0x5a, self.ack as u8]);
        packet[40..44].copy_from_slice(&[1, 1, 8, 10]);
        packet[44..48].copy_from_slice(&self.stamp.to_be_bytes());
        packet[48..52].copy_from_slice(&self.echo.to_be_bytes());
        if blocks > 0 {
            packet[52..56].copy_from_slice(&[1, 1, 5, (2 + BLOCK * self.blocks.len()) as u8]);
        }
        for (place, (first, behind)) in self.blocks.iter().enumerate() {
            let at = BLOCKS + BLOCK * place;
            packet[at..at + 4].copy_from_slice(&first.to_be_bytes());
            packet[at + 4..at + BLOCK].copy_from_slice(&behind.to_be_bytes());
        }
        packet[headers..].fill(self.seq as u8);
        packet
    }
}

/// The flow, the number of the first octet, the acknowledgement and the blocks of a segment.
pub fn read(packet: &[u8]) -> (u16, u32, u32, Vec<(u32, u32)>) {
    let headers = 20 + usize::from(packet[32] >> 4) * 4;
    let blocks = packet[BLOCKS.min(headers)..headers].chunks(BLOCK);
    let blocks = blocks.map(|block| (number(block, 0), number(block, 4)));
    let flow = u16::from_be_bytes([packet[20], packet[21]]);
    (
        flow,
        number(packet, 24),
        number(packet, 28),
        blocks.collect(),
    )
}

/// The sender's clock in a segment, and what it echoes.
pub fn stamps(packet: &[u8]) -> (u32, u32) {
    (number(packet, 44), number(packet, 48))
}

/// Four octets as a number.
pub fn number(octets: &[u8], at: usize) -> u32 {
    octets[at..at + 4]
        .first_chunk()
        .map_or(0, |four| u32::from_be_bytes(*four))
}
