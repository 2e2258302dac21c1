//! `chappe cast unit`: a unit for systemd.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

use super::options::{Action, Cast, Link};
use crate::failure::Failure;
use crate::terminal;
use crate::unit::{Packaged, Unit, program, quoted};

/// The command line that the service runs.
#[derive(Debug, Parser)]
#[command(name = "chappe cast")]
struct Line {
    #[command(flatten)]
    cast: Cast,
}

/// Prints a unit that runs `chappe cast` with these arguments, which must be right and independent of the folder they are given in.
pub fn print(arguments: &[OsString]) -> Result<u8, Failure> {
    let name = OsString::from("chappe cast");
    let line = Line::parse_from([&name].into_iter().chain(arguments));
    let folder = match &line.cast.action {
        Action::Receive(receive) => {
            check(&receive.link)?;
            Some(absolute(&receive.folder)?)
        }
        Action::Relay(relay) => check(&relay.link).map(|()| None)?,
        _ => return Err(refused("only `receive` and `relay` are services")),
    };
    let words: Vec<String> = arguments
        .iter()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    let unit = Unit {
        start: format!("{} cast {}", program()?, words.join(" ")),
        folder,
        ..service()
    };
    terminal::print(&unit.text())?;
    Ok(0)
}

fn check(link: &Link) -> Result<(), Failure> {
    absolute(&link.group)?;
    absolute(&link.key).map(drop)
}

/// A path from the root on, quoted.
fn absolute(path: &Path) -> Result<String, Failure> {
    match path.is_absolute() {
        true => Ok(quoted(&path.display().to_string())),
        false => Err(refused(&format!(
            "`{}` depends on the folder in which a command is called; a service needs whole paths",
            path.display()
        ))),
    }
}

fn refused(what: &str) -> Failure {
    let todo = "for example: chappe cast unit receive /srv/files --keep --group /etc/chappe/lab.group --key /etc/chappe/hill.key";
    Failure::Cast(chappe_cast::Error::input(what, todo))
}

/// `chappe-cast@NAME` of a package: a receiver into /var/lib/chappe/NAME.
pub fn packaged() -> Unit {
    Unit {
        description: "Chappe cast: receive files into /var/lib/chappe/%i",
        start: "/usr/bin/chappe cast receive /var/lib/chappe/%i --quiet $OPTIONS".into(),
        packaged: Some(Packaged {
            environment: Some([
                "/etc/chappe/%i.cast",
                "OPTIONS=\"--group /etc/chappe/lab.group --key /etc/chappe/hill.key --interface wlan0 --keep\"",
            ]),
            state: Some("chappe/%i"),
        }),
        ..service()
    }
}

fn service() -> Unit {
    Unit {
        description: "Chappe cast: files for many hosts",
        manual: "chappe-cast-receive",
        always: true,
        ..Unit::default()
    }
}
