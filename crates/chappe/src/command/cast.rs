//! `chappe cast`: files to many hosts over real networks.

mod capacity;
mod exposition;
mod fleet;
mod fleet_metrics;
mod metrics;
mod options;
mod quantity;
mod rehearsal;
mod screen;
mod status;
mod unit;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use chappe_cast::event::Summary;
use chappe_cast::group::{self, Candidate, Group};
use chappe_cast::{Ending, Protocol, Receiving, Sending, Then, key};

use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::terminal;

pub use options::Cast;
use options::{Action, Admit, Key, Keygen, Members, Receive, Relay, Revoke, Send};
use screen::Screen;
pub use unit::packaged;

pub fn run(cast: &Cast) -> Result<u8, Failure> {
    match &cast.action {
        Action::Keygen(options) => keygen(options),
        Action::Key(options) => new_key(options),
        Action::Admit(options) => admit(options),
        Action::Revoke(options) => revoke(options),
        Action::Members(options) => members(options),
        Action::Fleet(options) => fleet::run(options),
        Action::Send(options) => send(options),
        Action::Receive(options) => receive(options),
        Action::Relay(options) => relay(options),
        Action::Unit(options) => unit::print(&options.arguments),
    }
}

fn keygen(options: &Keygen) -> Result<u8, Failure> {
    let first = options.members.first().map(|(_, name)| name.clone());
    let senders = match options.sender.is_empty() {
        true => first.into_iter().collect(),
        false => options.sender.clone(),
    };
    let unknown = |name: &&String| !options.members.iter().any(|(_, member)| member == *name);
    if let Some(name) = senders.iter().find(unknown) {
        let what = format!("--sender {name} is not among the members");
        return Err(chappe_cast::Error::input(what, "name one of the members").into());
    }
    let members: Vec<(u16, String, bool)> = (1..)
        .zip(&options.members)
        .map(|(place, (node, name))| (node.unwrap_or(place), name.clone(), senders.contains(name)))
        .collect();
    let files = group::create(&options.name, &members)?;
    let mut text = String::new();
    for (place, path) in files.iter().enumerate() {
        let what = match place {
            0 => "changes the list of members; keep it secret, copy it nowhere",
            1 => "the list of members, for every member; not secret",
            _ => "for this member only; keep it secret",
        };
        let _ = writeln!(text, "{:24} {what}", path.display().to_string());
    }
    terminal::print(&text)?;
    Ok(0)
}

fn new_key(options: &Key) -> Result<u8, Failure> {
    let [secret, public] = key::MemberKey::generate(&options.name)?;
    terminal::print(&format!(
        "{}   stays on this host; keep it secret\n{}   for the owner of the group: `chappe cast admit GROUP {}`\n",
        secret.display(),
        public.display(),
        public.display()
    ))?;
    Ok(0)
}

fn owner(group: &Path, given: Option<&PathBuf>) -> PathBuf {
    given.map_or_else(|| group.with_extension("owner"), Clone::clone)
}

fn admit(options: &Admit) -> Result<u8, Failure> {
    let (name, public) = key::read_public(&options.public)?;
    let list = Group::read(&options.group)?;
    let free = (1..=group::MEMBER_MAX).find(|node| !list.members.contains_key(node));
    let before = list
        .members
        .iter()
        .find(|(_, entry)| entry.public == public);
    let node = options.node.or(before.map(|(node, _)| *node)).or(free);
    let candidate = Candidate {
        node: node.unwrap_or(group::MEMBER_MAX),
        name: options.name.clone().unwrap_or(name),
        sends: options.sends,
        public,
    };
    let own = owner(&options.group, options.owner.as_ref());
    changed(&group::admit(&options.group, &own, candidate)?)
}

fn revoke(options: &Revoke) -> Result<u8, Failure> {
    let own = owner(&options.group, options.owner.as_ref());
    changed(&group::revoke(&options.group, &own, &options.member)?)
}

fn changed(group: &Group) -> Result<u8, Failure> {
    terminal::print(&format!(
        "list {} of group {} has {} members; copy it to one running member, and the others get it from there\n",
        group.serial,
        group.name,
        group.members.len()
    ))?;
    Ok(0)
}

fn members(options: &Members) -> Result<u8, Failure> {
    let list = Group::read(&options.group)?;
    let mut text = format!("group {}, list {}\n", list.name, list.serial);
    for (node, entry) in &list.members {
        let sends = if entry.sends { "may send" } else { "" };
        let _ = writeln!(text, "{node:>5}  {:32} {sends}", entry.name);
    }
    terminal::print(&text)?;
    Ok(0)
}

fn send(options: &Send) -> Result<u8, Failure> {
    if let Some(folder) = options.fleet.as_ref().filter(|_| !options.dry_run) {
        // Who names a folder wants to know before the files are sent that it cannot be used.
        chappe_cast::fleet::prepare(folder)?;
    }
    let sending = Sending {
        files: options.files.clone(),
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
        fleet: options.folder(),
    };
    let member = options.link.open()?;
    let mut screen = Screen::new(&options.link, member.rate, options.folder())?;
    if options.dry_run {
        return rehearsal::run(&member, &sending, options.link.json, &mut screen);
    }
    let (end, summary) = chappe_cast::send(&member, &sending, &mut screen)?;
    screen.finish();
    Ok(sent(end, &summary))
}

fn sent(end: Ending, summary: &Summary) -> u8 {
    match end {
        Ending::Stopped if summary.complete.is_empty() || !summary.incomplete.is_empty() => {
            INTERRUPTED
        }
        _ if !summary.incomplete.is_empty() || !summary.commands_failed.is_empty() => FAILED,
        _ => 0,
    }
}

fn receive(options: &Receive) -> Result<u8, Failure> {
    let receiving = Receiving {
        folder: options.folder.clone(),
        then: (!options.then.is_empty()).then(|| Then {
            command: options.then.clone(),
            limit: std::time::Duration::from_nanos(options.then_limit.nanos()),
        }),
        overwrite: options.overwrite,
        keep: options.keep,
        whole: options.whole,
        rollback: options.allow_rollback,
        keep_parts: options.keep_parts,
    };
    let member = options.link.open()?;
    let mut screen = Screen::new(&options.link, member.rate, None)?;
    let end = chappe_cast::receive(&member, &receiving, &mut screen)?;
    screen.finish();
    Ok(match end {
        Ending::Stopped if !options.keep && !screen.has_installed() => INTERRUPTED,
        _ => 0,
    })
}

fn relay(options: &Relay) -> Result<u8, Failure> {
    let member = options.link.open()?;
    let mut screen = Screen::new(&options.link, member.rate, None)?;
    chappe_cast::relay(&member, &mut screen)?;
    screen.finish();
    Ok(0)
}
