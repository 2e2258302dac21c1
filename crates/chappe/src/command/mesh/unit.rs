//! `chappe mesh unit`: a unit for systemd.

use std::path::Path;

use crate::failure::Failure;
use crate::terminal;
use crate::unit::{Packaged, Unit, running};

/// Prints a unit that runs a configuration.
pub fn print(file: &Path) -> Result<u8, Failure> {
    let unit = Unit {
        start: running("mesh", file)?,
        ..service()
    };
    terminal::print(&unit.text())?;
    Ok(0)
}

/// `chappe-mesh` of a package: the router of /etc/chappe/mesh.toml.
pub fn packaged() -> Unit {
    Unit {
        start: "/usr/bin/chappe mesh run /etc/chappe/mesh.toml".into(),
        packaged: Some(Packaged {
            environment: None,
            state: None,
        }),
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
