//! A recorder of the time that each frame takes.

use chappe_core::Duration;
use chappe_mac::dot15d4;
use chappe_sim::{Recorder, Sent};
use chappe_wire::dot15d4::{FCS_LEN, Header, Kind};

/// A frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The time of its first bit, in ns.
    pub at: u64,
    /// The node that sent it.
    pub node: usize,
    /// Its octets, check sequence included.
    pub octets: usize,
    /// Whether it is an acknowledgement frame.
    pub ack: bool,
}

/// All frames of a run, by their start; none by default.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Empty unless the recorder was [`Times::wanted`].
    pub frames: Vec<Frame>,
    wanted: bool,
}

impl Recorder for Times {
    fn wants_frames(&self) -> bool {
        self.wanted
    }

    fn sent(&mut self, frame: &Sent<'_>) {
        let ack = Header::parse(frame.psdu).is_ok_and(|(header, _)| header.kind == Kind::Ack);
        self.frames.push(Frame {
            at: frame.at.nanos(),
            node: frame.node,
            octets: frame.psdu.len() + FCS_LEN,
            ack,
        });
    }
}

impl Frame {
    /// Its airtime, preamble included.
    pub fn air(&self) -> Duration {
        dot15d4::Config::MODE.airtime(self.octets)
    }
}

impl Times {
    /// A recorder that keeps every frame.
    pub fn wanted() -> Times {
        Times {
            wanted: true,
            ..Times::default()
        }
    }

    /// The airtime in seconds of the `wanted` frames after `from`.
    pub fn air_s(&self, from: Duration, wanted: impl Fn(&Frame) -> bool) -> f64 {
        let frames = self.frames.iter().filter(|frame| frame.at >= from.nanos());
        let wanted = frames.filter(|frame| wanted(frame));
        wanted.map(|frame| frame.air().as_secs_f64()).sum()
    }

    /// Seconds from the start of a frame to the start of its sender's next one, for pairs with only the acknowledgement in
    /// between. Each is corrected to the airtime of a frame of `octets`.
    pub fn cycles(&self, octets: usize) -> Vec<f64> {
        let three = self.frames.windows(3).filter(|three| {
            let data = !three[0].ack && three[1].ack && !three[2].ack;
            data && three[0].node == three[2].node && three[0].node != three[1].node
        });
        let full = dot15d4::Config::MODE.airtime(octets).as_secs_f64();
        three
            .map(|three| {
                let span = (three[2].at - three[0].at) as f64 / 1e9;
                span + full - three[0].air().as_secs_f64()
            })
            .collect()
    }
}
