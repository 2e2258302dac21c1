//! `chappe link unit`: a unit for systemd.

use std::path::Path;

use crate::failure::Failure;
use crate::unit::{Packaged, Unit};

/// Prints a unit that runs a configuration.
pub fn print(file: &Path) -> Result<u8, Failure> {
    service().print("link", file)
}

/// `chappe-link@NAME` of a package: the link of /etc/chappe/NAME.toml.
pub fn packaged() -> Unit {
    Unit {
        description: "Chappe link %i: a tunnel that hides packet loss",
        start: "/usr/bin/chappe link run /etc/chappe/%i.toml".into(),
        packaged: Some(Packaged::default()),
        ..service()
    }
}

fn service() -> Unit {
    Unit {
        description: "Chappe link: a tunnel that hides packet loss",
        manual: "chappe-link",
        routes: true,
        ..Unit::default()
    }
}
