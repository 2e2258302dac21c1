//! A fleet's state for Prometheus.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chappe_cast::fleet::{Fleet, Member, Set, Standing};
use chappe_cast::group::Group;

use super::exposition::{escaped, family};

/// The times of files may be as coarse as a second, so a folder that changed within one is read again.
const COARSE: Duration = Duration::from_secs(1);

/// The state of a fleet on the disk, read again when it has changed.
pub struct Source {
    folder: PathBuf,
    group: PathBuf,
    /// When the folder and the list had last changed at the last reading.
    read: Option<[SystemTime; 2]>,
    text: String,
}

impl Source {
    /// The state in `folder`, checked by the list of members in the file `group`.
    pub fn new(folder: PathBuf, group: &Path) -> Source {
        Source {
            folder,
            group: group.to_owned(),
            read: None,
            text: String::new(),
        }
    }

    /// The present state. Empty if there is none yet, or if it cannot be read.
    pub fn text(&mut self) -> &str {
        let time = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
        let times = [&self.folder, &self.group].map(|path| time(path));
        let changed = match times {
            [Some(folder), Some(group)] => Some([folder, group]),
            _ => None,
        };
        if changed.is_none() || changed != self.read {
            let fleet =
                Group::read(&self.group).and_then(|group| Fleet::read(&self.folder, &group));
            self.text = fleet.map_or(String::new(), |fleet| text(&fleet));
            let settled = |time: &SystemTime| time.elapsed().is_ok_and(|age| age > COARSE);
            self.read = changed.filter(|times| times.iter().all(settled));
        }
        &self.text
    }
}

/// A row of each member for a family of metrics; none if the member has no such value.
type Row = fn(&Member) -> Option<f64>;

/// The state as text.
pub fn text(fleet: &Fleet) -> String {
    let mut text = String::new();
    let signed = fleet.sets.iter().map(|set| {
        let labels = format!("{{{},version=\"{}\"}}", labels(set), set.version);
        (labels, set.signed_ms as f64 / 1e3)
    });
    family(
        &mut text,
        "fleet_signed_seconds",
        "gauge",
        "When the last version of the files was signed, in seconds since 1970.",
        &signed.collect::<Vec<_>>(),
    );
    let counts = fleet.sets.iter().flat_map(|set| {
        let row = |standing: Standing| {
            let labels = format!("{{{},standing=\"{}\"}}", labels(set), standing.word());
            (labels, set.count(standing) as f64)
        };
        Standing::ALL.map(row)
    });
    family(
        &mut text,
        "fleet_members",
        "gauge",
        "Members by their standing with regard to the last version of the files.",
        &counts.collect::<Vec<_>>(),
    );
    let families: [(&str, &str, Row); 4] = [
        (
            "fleet_member_current",
            "Whether a member has given a receipt for the last version; not for members that never asked.",
            |member| {
                let asked = member.standing != Standing::Unseen;
                asked.then_some(f64::from(member.standing == Standing::Current))
            },
        ),
        (
            "fleet_member_signed_seconds",
            "When the version was signed that a member has, in seconds since 1970.",
            |member| member.version_signed_ms.map(|ms| ms as f64 / 1e3),
        ),
        (
            "fleet_member_receipt_seconds",
            "When the last receipt of a member arrived, in seconds since 1970.",
            |member| member.receipt_ms.map(|ms| ms as f64 / 1e3),
        ),
        (
            "fleet_member_command_failed",
            "Whether the command of a member failed after the arrival of its version.",
            |member| member.command_ok.map(|ok| f64::from(!ok)),
        ),
    ];
    for (name, help, row) in families {
        let rows = fleet.sets.iter().flat_map(|set| {
            let row = move |member: &Member| {
                let who = format!(
                    "node=\"{}\",name=\"{}\"",
                    member.node,
                    escaped(&member.name)
                );
                Some((format!("{{{},{who}}}", labels(set)), row(member)?))
            };
            set.members.iter().filter_map(row)
        });
        family(&mut text, name, "gauge", help, &rows.collect::<Vec<_>>());
    }
    family(
        &mut text,
        "fleet_problems",
        "gauge",
        "Stored accounts that cannot be read, or are not signed by a sender of the group.",
        &[(String::new(), fleet.problems.len() as f64)],
    );
    text
}

fn labels(set: &Set) -> String {
    format!(
        "files=\"{}\",sender=\"{}\"",
        escaped(&set.title()),
        escaped(&set.sender_name)
    )
}
