//! `chappe cast fleet`: which member has which version, from stored receipts.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use chappe_cast::fleet::{Fleet, Set, Standing};
use chappe_cast::group::Group;
use chappe_figures::table::Table;

use super::fleet_metrics;
use super::options::Fleet as Options;
use super::quantity::{ago, octets};
use crate::failure::{FAILED, Failure};
use crate::terminal::{self, Stream};

pub fn run(options: &Options) -> Result<u8, Failure> {
    let group = Group::read(&options.group)?;
    let fleet = Fleet::read_all(&options.folders(), &group)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = since.map_or(0, |since| since.as_millis() as u64);
    if options.json {
        let json = serde_json::to_string_pretty(&fleet).unwrap_or_default();
        terminal::print(&(json + "\n"))?;
    } else if options.prometheus {
        terminal::print(&fleet_metrics::text(&fleet))?;
    } else {
        terminal::print(&shown(&fleet, now_ms))?;
    }
    Ok(match options.check && !is_right(&fleet) {
        true => FAILED,
        false => 0,
    })
}

/// Whether every member that has asked for files has their last version, its command succeeded, and no account is damaged.
fn is_right(fleet: &Fleet) -> bool {
    let members = fleet.sets.iter().flat_map(|set| &set.members);
    let mut members = members.filter(|member| member.standing != Standing::Unseen);
    let current = |standing| standing == Standing::Current;
    fleet.problems.is_empty()
        && members.all(|member| current(member.standing) && member.command_ok != Some(false))
}

fn shown(fleet: &Fleet, now_ms: u64) -> String {
    let mut text = format!("group {}, list {}\n", fleet.group, fleet.serial);
    if fleet.sets.is_empty() {
        text += "no receipts are stored\n";
    }
    for set in &fleet.sets {
        show_set(&mut text, set, now_ms);
    }
    for problem in &fleet.problems {
        let _ = writeln!(text, "\nnote: {problem}");
    }
    text
}

fn show_set(text: &mut String, set: &Set, now_ms: u64) {
    let files = match set.files {
        1 => String::new(),
        files => format!("{files} files, "),
    };
    let (title, size, age) = (set.title(), octets(set.bytes), ago(now_ms, set.signed_ms));
    let _ = writeln!(
        text,
        "\n{title} ({files}{size}) from {} ({}): version {} of {age}",
        set.sender, set.sender_name, set.version
    );
    let counts = Standing::ALL.map(|standing| (set.count(standing), standing.word()));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let _ = writeln!(text, "{}", counts.join(", "));
    let mut table = Table::new()
        .words("member")
        .words("standing")
        .words("version")
        .words("receipt")
        .words("why");
    let asked = set
        .members
        .iter()
        .filter(|member| member.standing != Standing::Unseen);
    for member in asked {
        table.row([
            format!("{} ({})", member.node, member.name),
            member.standing.word().to_owned(),
            member.version.clone().unwrap_or_default(),
            member
                .receipt_ms
                .map_or(String::new(), |at| ago(now_ms, at)),
            member.why.clone(),
        ]);
    }
    *text += &table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    let unseen = set
        .members
        .iter()
        .filter(|member| member.standing == Standing::Unseen);
    let unseen: Vec<String> = unseen
        .map(|member| format!("{} ({})", member.node, member.name))
        .collect();
    if !unseen.is_empty() {
        let _ = writeln!(text, "never asked for them: {}", unseen.join(", "));
    }
}
