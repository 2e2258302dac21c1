//! Directional antennas, and several radios on one mast.
//!
//! A radio with a dish hears its far end through the main lobe and everything else through side lobes. It hears the other
//! radios of its own mast hardly weaker than its far end, so the long links of one site disturb each other.

use chappe_core::Db;

use crate::position::distance;
use crate::{Error, Position, Profile};

/// One antenna: a main lobe in one direction, and one level everywhere else.
///
/// The gain falls with the angle off the axis as `12 (angle / beamwidth)^2` dB, down to the side lobes: the pattern of 3GPP
/// TR 36.942, 4.2.1, rotated around its axis. At half the beamwidth it is down by 3 dB. Real side lobes have nulls and
/// peaks; one level stands for all of them, so use the data sheet's worst figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Antenna {
    /// Gain on the axis, over an antenna that radiates alike everywhere (dBi).
    pub gain: Db,
    /// Width of the main lobe between its half-power points, in degrees.
    pub beamwidth: f64,
    /// How far side lobes and back lie under the axis.
    pub side: Db,
    /// Where the axis points: degrees from the x axis towards the y axis.
    pub azimuth: f64,
    /// Elevation of the axis: degrees above the horizon.
    pub elevation: f64,
}

impl Antenna {
    /// 0 dBi in every direction.
    pub const ISOTROPIC: Antenna = Antenna {
        gain: Db(0.0),
        beamwidth: 360.0,
        side: Db(0.0),
        azimuth: 0.0,
        elevation: 0.0,
    };

    /// A grid parabola of some 90 cm as long 2.4 GHz links use: 24 dBi and 8 degrees, as makers print it; side lobes 25 dB
    /// down are a judgement, to be replaced by the data sheet's.
    pub const GRID_24DBI: Antenna = Antenna {
        gain: Db(24.0),
        beamwidth: 8.0,
        side: Db(25.0),
        ..Antenna::ISOTROPIC
    };

    /// The same antenna at `own`, pointed at `other`.
    pub fn towards(self, own: Position, other: Position) -> Antenna {
        let (x, y, z) = (other.x - own.x, other.y - own.y, other.z - own.z);
        let degrees = 180.0 / std::f64::consts::PI;
        Antenna {
            azimuth: libm::atan2(y, x) * degrees,
            elevation: libm::atan2(z, libm::hypot(x, y)) * degrees,
            ..self
        }
    }

    /// The gain at `own` in the direction of `other`.
    pub fn gain_towards(&self, own: Position, other: Position) -> Db {
        let (x, y, z) = (other.x - own.x, other.y - own.y, other.z - own.z);
        let length = libm::sqrt(x * x + y * y + z * z);
        if length == 0.0 {
            return Db(self.gain.0 - self.side.0);
        }
        let radians = std::f64::consts::PI / 180.0;
        let (azimuth, elevation) = (self.azimuth * radians, self.elevation * radians);
        let level = libm::cos(elevation);
        let along = x * level * libm::cos(azimuth)
            + y * level * libm::sin(azimuth)
            + z * libm::sin(elevation);
        // Near the axis the arc cosine would lose digits; the sine's side keeps them.
        let across = libm::sqrt((length * length - along * along).max(0.0));
        let angle = libm::atan2(across, along) / radians;
        let widths = angle / self.beamwidth;
        Db(self.gain.0 - (12.0 * widths * widths).min(self.side.0))
    }

    fn check(&self) -> Result<(), Error> {
        let sum = self.gain.0 + self.side.0 + self.azimuth + self.elevation;
        if !sum.is_finite() || self.beamwidth.is_nan() || self.beamwidth <= 0.0 || self.side.0 < 0.0
        {
            return Err(Error::Antenna(
                "gain, side lobes and direction must be finite, the beamwidth positive, side lobes not above the axis",
            ));
        }
        Ok(())
    }
}

/// Every radio's antenna, and the coupling of radios on one mast.
#[derive(Clone, Debug, PartialEq)]
pub struct Antennas {
    /// One for each node.
    pub of: Vec<Antenna>,
    /// Nodes at most this far apart, in metres, stand on one mast, where patterns and path loss say nothing: antennas are
    /// in each other's near field. Zero is the same position.
    pub mast: f64,
    /// Loss between the ports of any two radios of one mast. Measure it or take it from the mast's plan: parallel
    /// dishes have 40 to 80 dB.
    pub isolation: Db,
    /// The number of each node's mast, or nothing if each stands alone. Shadowing is of a pair of masts: whatever stands between
    /// two of them is the same for all their radios, and nothing stands between radios of one.
    pub sites: Vec<u32>,
}

impl Antennas {
    /// The number of a node's mast; its own number if no masts are given, or for an external transmitter.
    pub(crate) fn site(&self, node: u32) -> u32 {
        self.sites.get(node as usize).copied().unwrap_or(node)
    }

    pub(crate) fn check(&self, nodes: usize) -> Result<(), Error> {
        if self.of.len() != nodes {
            return Err(Error::Antenna("give one antenna for each node"));
        }
        if !self.sites.is_empty() && self.sites.len() != nodes {
            return Err(Error::Antenna("give one mast for each node, or none"));
        }
        self.of.iter().try_for_each(Antenna::check)?;
        if !(self.isolation.0.is_finite() && self.mast >= 0.0) {
            return Err(Error::Antenna("isolation and mast must be numbers"));
        }
        Ok(())
    }

    /// Gain of both antennas less the path loss. `to` is a node; `from` may be an external transmitter, which has no
    /// antenna here.
    pub(crate) fn gain(
        &self,
        profile: &Profile,
        (from, here): (usize, Position),
        (to, there): (usize, Position),
    ) -> f64 {
        let metres = distance(here, there);
        let loss = profile.path_loss.loss(metres).0;
        let heard = self
            .of
            .get(to)
            .map_or(0.0, |antenna| antenna.gain_towards(there, here).0);
        match self.of.get(from) {
            // Near field: neither pattern nor path loss holds, so the mast's measured isolation replaces both.
            Some(_) if metres <= self.mast => -self.isolation.0,
            Some(antenna) => antenna.gain_towards(here, there).0 + heard - loss,
            None => heard - loss,
        }
    }

    /// The most that two antennas add to a link.
    pub(crate) fn gain_max(&self) -> f64 {
        let most = |sum: f64, antenna: &Antenna| sum.max(antenna.gain.0);
        2.0 * self.of.iter().fold(0.0, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half-power points, side lobes and back, in the plane and above it.
    #[test]
    fn the_pattern_matches_its_formula() {
        let own = Position::new(100.0, 50.0);
        let at = |azimuth: f64, elevation: f64| {
            let radians = std::f64::consts::PI / 180.0;
            let (azimuth, elevation) = (azimuth * radians, elevation * radians);
            Position {
                x: own.x + 5e4 * elevation.cos() * azimuth.cos(),
                y: own.y + 5e4 * elevation.cos() * azimuth.sin(),
                z: 5e4 * elevation.sin(),
            }
        };
        let dish = Antenna::GRID_24DBI.towards(own, at(30.0, 0.0));
        assert!((dish.azimuth - 30.0).abs() < 1e-9 && dish.elevation.abs() < 1e-9);
        for (azimuth, elevation, expected) in [
            (30.0, 0.0, 24.0),
            (34.0, 0.0, 21.0),
            (26.0, 0.0, 21.0),
            (30.0, 4.0, 21.0),
            (38.0, 0.0, 12.0),
            (60.0, 0.0, -1.0),
            (-150.0, 0.0, -1.0),
            (30.0, 90.0, -1.0),
        ] {
            let found = dish.gain_towards(own, at(azimuth, elevation)).0;
            assert!(
                (found - expected).abs() < 1e-6,
                "{azimuth} {elevation} {found}"
            );
        }
        let up = Antenna::GRID_24DBI.towards(own, at(30.0, 10.0));
        assert!((up.gain_towards(own, at(30.0, 14.0)).0 - 21.0).abs() < 1e-6);
        assert_eq!(
            Antenna::ISOTROPIC.gain_towards(own, at(77.0, 12.0)),
            Db(0.0)
        );
    }
}
