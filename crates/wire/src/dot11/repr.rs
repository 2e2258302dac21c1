//! The reprs: frames that can be sent.

use core::fmt;

use chappe_core::Address;

use super::{
    ACK_LEN, BLOCK_ACK_LEN, BLOCK_ACK_REQ_LEN, CTS_LEN, DATA_HEADER_LEN, Frame, Kind, NavTime,
    QOS_CONTROL_LEN, RTS_LEN, Sequence,
};
use crate::{Malformed, head_mut};

/// A legal frame of an ad hoc network; of a data frame the header only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Acknowledgement (IEEE 802.11-2020, 9.3.1.4).
    Ack {
        /// Whose frame is acknowledged.
        receiver: Address,
        /// Zero unless more fragments follow.
        duration: NavTime,
    },
    /// Clear to send (9.3.1.3).
    Cts {
        /// The station that sent the RTS.
        receiver: Address,
        /// The rest of the reservation in the RTS.
        duration: NavTime,
    },
    /// Request to send (9.3.1.2).
    Rts {
        /// The station that must answer with a CTS.
        receiver: Address,
        /// The station that wants to send.
        transmitter: Address,
        /// The time of CTS, data, ACK and the three SIFS between them.
        duration: NavTime,
    },
    /// Compressed block acknowledgement (9.3.1.8), traffic identifier 0.
    BlockAck(Block),
    /// Request for one (9.3.1.7).
    BlockAckReq(Block),
    /// A data frame (9.3.2.1), with QoS control or without.
    Data(Data),
}

/// A compressed block acknowledgement, or the request for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The station that it is for.
    pub receiver: Address,
    /// The station that sent it.
    pub transmitter: Address,
    /// The rest of the reservation.
    pub duration: NavTime,
    /// The number of the first MSDU that it is about.
    pub start: Sequence,
    /// Bit n: MSDU `start` + n was received. Zero in a request.
    pub bitmap: u64,
}

/// The header of a data frame between stations of one ad hoc network: to-DS and from-DS zero, one fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The receiving station, or [`Address::BROADCAST`].
    pub receiver: Address,
    /// The station that sent the frame.
    pub transmitter: Address,
    /// The BSSID of the ad hoc network.
    pub bssid: Address,
    /// The sequence control field: number of the MSDU.
    pub sequence: Sequence,
    /// Whether QoS control follows, as in A-MPDUs.
    pub qos: bool,
    /// The Retry bit: the frame was sent before.
    pub retry: bool,
    /// The time of SIFS and ACK; zero for a group.
    pub duration: NavTime,
}

impl Repr {
    /// Reads a frame. Fails if it is none of these, or not of an ad hoc network, or a fragment, or encrypted.
    pub fn parse(frame: &Frame<'_>) -> Result<Repr, Malformed> {
        let duration = frame.duration().ok_or(Malformed::Unsupported)?;
        let receiver = frame.receiver();
        match (frame.kind(), frame.transmitter()) {
            (Kind::Ack, _) => Ok(Repr::Ack { receiver, duration }),
            (Kind::Cts, _) => Ok(Repr::Cts { receiver, duration }),
            (Kind::Rts, Some(transmitter)) => Ok(Repr::Rts {
                receiver,
                transmitter,
                duration,
            }),
            (Kind::Data | Kind::QosData, _) => Data::parse(frame).map(Repr::Data),
            (kind @ (Kind::BlockAck | Kind::BlockAckReq), Some(transmitter)) => {
                let (start, bitmap) = frame.block().ok_or(Malformed::Unsupported)?;
                let block = Block {
                    receiver,
                    transmitter,
                    duration,
                    start,
                    bitmap,
                };
                Ok(match kind {
                    Kind::BlockAck => Repr::BlockAck(block),
                    _ => Repr::BlockAckReq(block),
                })
            }
            _ => Err(Malformed::Unsupported),
        }
    }

    /// Octets of the header.
    pub const fn header_len(&self) -> usize {
        match self {
            Repr::Ack { .. } => ACK_LEN,
            Repr::Cts { .. } => CTS_LEN,
            Repr::Rts { .. } => RTS_LEN,
            Repr::BlockAck(_) => BLOCK_ACK_LEN,
            Repr::BlockAckReq(_) => BLOCK_ACK_REQ_LEN,
            Repr::Data(Data { qos: false, .. }) => DATA_HEADER_LEN,
            Repr::Data(Data { qos: true, .. }) => DATA_HEADER_LEN + QOS_CONTROL_LEN,
        }
    }

    /// Writes the header to the front of `psdu` and returns its length. Fails if it does not fit.
    pub fn emit(&self, psdu: &mut [u8]) -> Result<usize, Malformed> {
        match *self {
            Repr::Ack { receiver, duration } => {
                *head_mut(psdu)? = start(Kind::Ack, 0, duration, receiver);
            }
            Repr::Cts { receiver, duration } => {
                *head_mut(psdu)? = start(Kind::Cts, 0, duration, receiver);
            }
            Repr::Rts {
                receiver,
                transmitter,
                duration,
            } => {
                let header: &mut [u8; RTS_LEN] = head_mut(psdu)?;
                *head_mut(header)? = start(Kind::Rts, 0, duration, receiver);
                *last_mut(header)? = transmitter.to_eui48();
            }
            Repr::BlockAck(block) => {
                let header: &mut [u8; BLOCK_ACK_LEN] = head_mut(psdu)?;
                block.emit(Kind::BlockAck, header)?;
                *last_mut(header)? = block.bitmap.to_le_bytes();
            }
            Repr::BlockAckReq(block) => {
                let header: &mut [u8; BLOCK_ACK_REQ_LEN] = head_mut(psdu)?;
                block.emit(Kind::BlockAckReq, header)?;
            }
            Repr::Data(data) => data.emit(psdu)?,
        }
        Ok(self.header_len())
    }
}

impl Block {
    /// What both kinds have in common, in the first 20 octets.
    fn emit(&self, kind: Kind, header: &mut [u8]) -> Result<(), Malformed> {
        let [a, b, c, d, e, f] = self.transmitter.to_eui48();
        let [low, high] = self.start.to_field().to_le_bytes();
        let first: &mut [u8; BLOCK_ACK_REQ_LEN] = head_mut(header)?;
        *head_mut(first)? = start(kind, 0, self.duration, self.receiver);
        // Compressed, for traffic identifier 0.
        *last_mut(first)? = [a, b, c, d, e, f, 0b100, 0, low, high];
        Ok(())
    }
}

impl Data {
    /// Reads the header of a data frame. Fails as [`Repr::parse`] does.
    #[inline]
    pub fn parse(frame: &Frame<'_>) -> Result<Data, Malformed> {
        let (Some(transmitter), Some(bssid), Some(sequence), Some(duration)) = (
            frame.transmitter(),
            frame.bssid(),
            frame.sequence(),
            frame.duration(),
        ) else {
            return Err(Malformed::Unsupported);
        };
        let fragment = frame.more_fragments() || sequence.fragment() != 0;
        let qos = frame.kind() == Kind::QosData;
        if frame.kind() != Kind::Data && !qos
            || frame.to_ds()
            || frame.from_ds()
            || frame.protected()
            || fragment
        {
            return Err(Malformed::Unsupported);
        }
        Ok(Data {
            receiver: frame.receiver(),
            transmitter,
            bssid,
            sequence,
            qos,
            retry: frame.retry(),
            duration,
        })
    }

    fn emit(&self, psdu: &mut [u8]) -> Result<(), Malformed> {
        let flags = u8::from(self.retry) << 3;
        let header: &mut [u8; DATA_HEADER_LEN] = head_mut(psdu)?;
        let [a, b, c, d, e, f] = self.transmitter.to_eui48();
        let [g, h, i, j, k, l] = self.bssid.to_eui48();
        let [low, high] = self.sequence.to_field().to_le_bytes();
        let kind = if self.qos { Kind::QosData } else { Kind::Data };
        *head_mut(header)? = start(kind, flags, self.duration, self.receiver);
        *last_mut(header)? = [a, b, c, d, e, f, g, h, i, j, k, l, low, high];
        if self.qos {
            // Traffic identifier 0, acknowledged by what the PSDU asks for.
            let control: &mut [u8; QOS_CONTROL_LEN] =
                head_mut(psdu.get_mut(DATA_HEADER_LEN..).unwrap_or_default())?;
            *control = [0; QOS_CONTROL_LEN];
        }
        Ok(())
    }
}

/// Frame control, duration and address 1.
fn start(kind: Kind, flags: u8, duration: NavTime, receiver: Address) -> [u8; 10] {
    let (kind, subtype) = kind.to_bits();
    let [low, high] = duration.micros().to_le_bytes();
    let [a, b, c, d, e, f] = receiver.to_eui48();
    let control = kind << 2 | subtype << 4;
    [control, flags, low, high, a, b, c, d, e, f]
}

fn last_mut<const N: usize>(bytes: &mut [u8]) -> Result<&mut [u8; N], Malformed> {
    let found = bytes.len();
    bytes
        .last_chunk_mut()
        .ok_or(Malformed::Truncated { needed: N, found })
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repr::Ack { receiver, duration } => write!(f, "ACK > {receiver} nav={duration}"),
            Repr::Cts { receiver, duration } => write!(f, "CTS > {receiver} nav={duration}"),
            Repr::Rts {
                receiver,
                transmitter,
                duration,
            } => write!(f, "RTS {transmitter} > {receiver} nav={duration}"),
            Repr::BlockAck(Block {
                receiver,
                transmitter,
                start,
                bitmap,
                ..
            }) => write!(
                f,
                "BlockAck {transmitter} > {receiver} from={start} {bitmap:#x}"
            ),
            Repr::BlockAckReq(Block {
                receiver,
                transmitter,
                start,
                ..
            }) => write!(f, "BlockAckReq {transmitter} > {receiver} from={start}"),
            Repr::Data(data) => {
                let retry = if data.retry { " retry" } else { "" };
                let Data {
                    receiver,
                    transmitter,
                    sequence,
                    duration,
                    ..
                } = data;
                write!(
                    f,
                    "Data {transmitter} > {receiver} seq={sequence}{retry} nav={duration}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use chappe_core::{Duration, Purpose, Seed};
    use std::string::ToString;

    fn nav(micros: u64) -> NavTime {
        NavTime::covering(Duration::from_micros(micros))
    }

    /// A data frame octet by octet, as a capture of an ad hoc network shows it.
    #[test]
    fn a_data_header_stands_as_in_the_standard() {
        let data = Data {
            receiver: Address::node(2),
            transmitter: Address::node(1),
            bssid: Address::from_eui48([6, 5, 4, 3, 2, 1]),
            sequence: Sequence::new(0x123),
            qos: false,
            retry: true,
            duration: nav(314),
        };
        let mut bytes = [0; 24];
        assert_eq!(Repr::Data(data).emit(&mut bytes), Ok(24));
        let expected = [
            0x08, 0x08, 0x3a, 0x01, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 6, 5, 4, 3, 2, 1, 0x30,
            0x12,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(
            Repr::Data(data).to_string(),
            "Data n1 > n2 seq=291 retry nav=314us"
        );
    }

    #[test]
    fn frame_control_of_control_frames() {
        let (receiver, transmitter) = (Address::node(1), Address::node(2));
        let duration = nav(7);
        let firsts = [
            (Repr::Ack { receiver, duration }, 0xd4, "ACK > n1 nav=7us"),
            (Repr::Cts { receiver, duration }, 0xc4, "CTS > n1 nav=7us"),
            (
                Repr::Rts {
                    receiver,
                    transmitter,
                    duration,
                },
                0xb4,
                "RTS n2 > n1 nav=7us",
            ),
        ];
        for (repr, first, text) in firsts {
            let mut bytes = [0; 16];
            assert_eq!(repr.emit(&mut bytes), Ok(repr.header_len()));
            assert_eq!(bytes[0], first);
            assert_eq!(repr.to_string(), text);
        }
    }

    /// What can be built can be sent, and is read back as it was.
    #[test]
    fn round_trips() {
        let mut random = Seed(5).stream(Purpose::Trial(0));
        for _ in 0..5_000 {
            let mut address = || {
                let octets = random.next_u64().to_be_bytes();
                Address::from_eui48([
                    octets[0], octets[1], octets[2], octets[3], octets[4], octets[5],
                ])
            };
            let (receiver, transmitter, bssid) = (address(), address(), address());
            let duration = nav(random.below(40_000));
            let data = Data {
                receiver,
                transmitter,
                bssid,
                sequence: Sequence::new(random.below(4096) as u16),
                qos: random.chance(0.5),
                retry: random.chance(0.5),
                duration,
            };
            let block = Block {
                receiver,
                transmitter,
                duration,
                start: data.sequence,
                bitmap: random.next_u64(),
            };
            let request = Block { bitmap: 0, ..block };
            let reprs = [
                Repr::BlockAck(block),
                Repr::BlockAckReq(request),
                Repr::Ack { receiver, duration },
                Repr::Cts { receiver, duration },
                Repr::Rts {
                    receiver,
                    transmitter,
                    duration,
                },
                Repr::Data(data),
            ];
            for repr in reprs {
                let mut bytes = [0xee; 40];
                let len = repr.emit(&mut bytes).unwrap();
                let frame = Frame::new(&bytes[..len + 3]).unwrap();
                assert_eq!(Repr::parse(&frame), Ok(repr));
                assert_eq!(frame.body(), [0xee; 3]);
                assert!(repr.emit(&mut bytes[..len - 1]).is_err());
            }
        }
    }

    /// Fragments, encrypted bodies and frames of infrastructure networks are well-formed but not supported.
    #[test]
    fn what_is_not_supported_is_refused() {
        for (place, bits) in [(1, 1), (1, 2), (1, 4), (1, 0x40), (22, 3), (3, 0x80)] {
            let mut bytes = [0; 40];
            bytes[0] = 0x08;
            bytes[place] = bits;
            let frame = Frame::new(&bytes).unwrap();
            assert_eq!(Repr::parse(&frame), Err(Malformed::Unsupported));
        }
    }
}
