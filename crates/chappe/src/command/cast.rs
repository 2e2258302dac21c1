//! `chappe cast`: files to many hosts over real networks.

mod capacity;
mod metrics;
mod options;
mod screen;

use std::path::Path;

use chappe_cast::event::Summary;
use chappe_cast::{Ending, Protocol, Receiving, Sending, key};

use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::terminal;

use options::{Action, Keygen, Receive, Relay, Send};
pub use options::{Cast, rate};
use screen::Screen;

pub fn run(cast: &Cast) -> Result<u8, Failure> {
    match &cast.action {
        Action::Keygen(options) => keygen(options),
        Action::Send(options) => send(options),
        Action::Receive(options) => receive(options),
        Action::Relay(options) => relay(options),
    }
}

fn keygen(options: &Keygen) -> Result<u8, Failure> {
    let files = key::generate(Path::new(&options.name))?;
    let (group, sign, verify) = (files.group, files.sign, files.verify);
    terminal::print(&format!(
        "{}   for every member: encrypts and decrypts frames; keep it secret\n\
         {}    for senders: signs the files; keep it secret, copy it nowhere else\n\
         {}  for every receiver: checks the signature; not secret\n",
        group.display(),
        sign.display(),
        verify.display()
    ))?;
    Ok(0)
}

fn send(options: &Send) -> Result<u8, Failure> {
    let sending = Sending {
        files: options.files.clone(),
        sign: key::SignKey::read(&options.sign)?,
        receivers: options.receivers.into(),
        wait: options.wait,
        keep: options.keep,
        protocol: match options.variant.as_str() {
            "pacifier" => Protocol::Pacifier,
            _ => Protocol::Improved,
        },
        nodes: options.nodes,
        k: options.k,
        expires: options.expires,
    };
    let member = options.link.open()?;
    let mut screen = Screen::new(&options.link, member.rate)?;
    let (end, summary) = chappe_cast::send(&member, &sending, &mut screen)?;
    screen.finish();
    Ok(sent(end, &summary))
}

fn sent(end: Ending, summary: &Summary) -> u8 {
    match end {
        Ending::Stopped if summary.complete.is_empty() || !summary.incomplete.is_empty() => {
            INTERRUPTED
        }
        _ if !summary.incomplete.is_empty() => FAILED,
        _ => 0,
    }
}

fn receive(options: &Receive) -> Result<u8, Failure> {
    let receiving = Receiving {
        folder: options.folder.clone(),
        verify: key::VerifyKey::read(&options.verify)?,
        overwrite: options.overwrite,
        keep: options.keep,
        whole: options.whole,
        rollback: options.allow_rollback,
        keep_parts: options.keep_parts,
    };
    let member = options.link.open()?;
    let mut screen = Screen::new(&options.link, member.rate)?;
    let end = chappe_cast::receive(&member, &receiving, &mut screen)?;
    screen.finish();
    Ok(match end {
        Ending::Stopped if !options.keep && !screen.has_installed() => INTERRUPTED,
        _ => 0,
    })
}

fn relay(options: &Relay) -> Result<u8, Failure> {
    let member = options.link.open()?;
    let mut screen = Screen::new(&options.link, member.rate)?;
    chappe_cast::relay(&member, &mut screen)?;
    screen.finish();
    Ok(0)
}
