//! `chappe mesh unit`: a unit for systemd.

use std::path::Path;

use crate::failure::Failure;
use crate::unit::{Packaged, Unit};

/// Prints a unit that runs a configuration.
pub fn print(file: &Path) -> Result<u8, Failure> {
    service().print("mesh", file)
}

/// `chappe-mesh` of a package: the router of /etc/chappe/mesh.toml.
pub fn packaged() -> Unit {
    Unit {
        start: "/usr/bin/chappe mesh run /etc/chappe/mesh.toml".into(),
        packaged: Some(Packaged::default()),
        ..service()
    }
}

fn service() -> Unit {
    Unit {
        description: "Chappe mesh: a router of a wireless mesh",
        manual: "chappe-mesh",
        routes: true,
        ..Unit::default()
    }
}
