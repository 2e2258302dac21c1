//! Positions of nodes and the distances between them.

/// A place, in metres from the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Metres to the east.
    pub x: f64,
    /// Metres to the north.
    pub y: f64,
    /// Metres above the ground.
    pub z: f64,
}

impl Position {
    /// A place on the ground.
    pub const fn new(x: f64, y: f64) -> Position {
        Position { x, y, z: 0.0 }
    }
}

/// The distance between two positions in metres.
pub(crate) fn distance(a: Position, b: Position) -> f64 {
    let (x, y, z) = (a.x - b.x, a.y - b.y, a.z - b.z);
    libm::sqrt(x * x + y * y + z * z)
}
