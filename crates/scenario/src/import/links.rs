//! CSV link lists: a header line, then one directed link a line. With `undirected`, a link that is listed in one direction
//! only is alike in the other.
//!
//! Columns, by the first name found: sender `src`, `tx`, `from`; receiver `dst`, `rx`, `to`; quality `pdr`, `prr`,
//! `delivery` (0 to 1), `pdr_pct` (per cent), `n_received_of_N` (of N frames), or `tq_fwd` and `tq_rev`
//! (batman-adv's transmit quality in both directions; an empty `tq_rev` counts as equal). A column for each
//! channel (`pdr11` to `pdr26`) is chosen by `channel`. A first line in JSON, as K7 files have, is skipped.
//! With a column `channel` and no choice of one, all channels are kept apart, with the power in `rssi`, `mean_rssi` or
//! `mean_rssi_dbm` if there is one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use chappe_sim::dot15d4::{CHANNEL_MAX, CHANNEL_MIN};

use super::text::FileText;
use super::{Channels, Collector, Directions, Name, Reading, Select};
use crate::input::InputError;
use crate::nearest::nearest;

const SENDER: [&str; 4] = ["src", "tx", "from", "source"];
const RECEIVER: [&str; 4] = ["dst", "rx", "to", "target"];
const SHARE: [&str; 3] = ["pdr", "prr", "delivery"];
const POWER: [&str; 3] = ["rssi", "mean_rssi", "mean_rssi_dbm"];
const RECEIVED_OF: &str = "n_received_of_";

/// How a line says how good its link is.
enum Quality {
    /// A column and what its value is multiplied by.
    Share(usize, f64),
    /// Both directions in one line.
    BothWays(usize, usize),
}

struct Columns<'a> {
    names: Vec<&'a str>,
    from: usize,
    to: usize,
    quality: Quality,
    wanted: Vec<(usize, &'a str)>,
}

pub fn collect(file: &FileText, select: &Select) -> Result<Collector, InputError> {
    let mut lines = Lines {
        text: &file.text,
        at: 0,
    };
    let (header, span) = lines.header().ok_or_else(|| file.error("it is empty"))?;
    let columns = Columns::new(file, header, span, select)?;
    let mut collector = Collector::default();
    for (line, span) in lines.filter(|(line, _)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != columns.names.len() {
            let message = format!(
                "{} fields, but the header has {}",
                fields.len(),
                columns.names.len()
            );
            return Err(file.error_at(span, "this line", message));
        }
        if columns.wants(&fields) {
            columns.take(file, (line, span), &fields, &mut collector)?;
        }
    }
    collector.check(file).map_err(|error| {
        if select.is_empty() {
            error
        } else {
            error.help(format!("with only the rows where {}", said(select)))
        }
    })?;
    Ok(collector)
}

/// A link list with a column `channel`: one table for each channel in it. `None` for anything else.
pub fn parse_channels(file: &FileText, reading: &Reading) -> Result<Option<Channels>, InputError> {
    let select = &reading.select;
    let mut lines = Lines {
        text: &file.text,
        at: 0,
    };
    let Some((header, span)) = lines.header() else {
        return Ok(None);
    };
    let find = |wanted: &[&str]| {
        let mut names = header.split(',').map(str::trim);
        names.position(|name| wanted.contains(&name))
    };
    let Some(channel) = find(&["channel"]).filter(|_| !select.contains_key("channel")) else {
        return Ok(None);
    };
    let power = find(&POWER);
    let columns = Columns::new(file, header, span, select)?;
    let mut shares: BTreeMap<u8, Collector> = BTreeMap::new();
    let mut powers: BTreeMap<u8, Collector> = BTreeMap::new();
    for (line, span) in lines.filter(|(line, _)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != columns.names.len() {
            let found = fields.len();
            let message = format!("{found} fields, but the header has {}", columns.names.len());
            return Err(file.error_at(span, "this line", message));
        }
        if !columns.wants(&fields) {
            continue;
        }
        let number = fields[channel].parse::<u8>().ok();
        let known = number.filter(|number| (CHANNEL_MIN..=CHANNEL_MAX).contains(number));
        let number = known.ok_or_else(|| {
            let message = format!("`{}` is not a channel of 802.15.4", fields[channel]);
            file.error_at(place(line, channel, &span), "this column", message)
                .help(format!("{CHANNEL_MIN} to {CHANNEL_MAX}"))
        })?;
        let (from, to) = (fields[columns.from], fields[columns.to]);
        let shares = shares.entry(number).or_default();
        columns.take(file, (line, span), &fields, shares)?;
        // A power that is no number was not measured.
        let dbm = power.and_then(|column| fields[column].parse::<f64>().ok());
        if let Some(dbm) = dbm.filter(|dbm| dbm.is_finite()) {
            powers.entry(number).or_default().value(from, to, dbm);
        }
    }
    channels(file, shares, powers, reading.undirected).map(Some)
}

/// The tables of all channels, from the links that were read: shares of frames that arrive, and powers.
fn channels(
    file: &FileText,
    mut shares: BTreeMap<u8, Collector>,
    mut powers: BTreeMap<u8, Collector>,
    undirected: bool,
) -> Result<Channels, InputError> {
    // As without channels, a node is one of a link with a quality: a name has one number whatever reads the list.
    let named: BTreeSet<Name> = shares.values().flat_map(|of| of.names.clone()).collect();
    let names: Vec<Name> = named.into_iter().collect();
    let directions = shares.values().map(Collector::directions);
    let directions = directions.fold(Directions::default(), |sum, of| Directions {
        both: sum.both + of.both,
        one: sum.one + of.one,
    });
    if undirected {
        let all = shares.values_mut().chain(powers.values_mut());
        all.for_each(Collector::mirror);
    }
    if names.is_empty() || names.len() > super::NODES_MAX {
        let message = format!(
            "it has {} nodes; 1 to {} can be imported",
            names.len(),
            super::NODES_MAX
        );
        return Err(file.error(message));
    }
    let places: BTreeMap<&Name, usize> = names.iter().zip(0..).collect();
    // Most pairs of nodes are no link: the tables are filled from the links, not looked up pair by pair.
    let table = |(&channel, of): (&u8, &Collector)| {
        let mut table = vec![(f32::NAN, f32::NAN); names.len() * names.len()];
        for (at, share) in of.means(&places) {
            table[at].0 = share;
        }
        for (at, power) in powers
            .get(&channel)
            .into_iter()
            .flat_map(|of| of.means(&places))
        {
            table[at].1 = power;
        }
        (channel, table)
    };
    Ok(Channels {
        tables: shares.iter().map(table).collect(),
        names: names.iter().map(Name::text).collect(),
        directions,
    })
}

fn said(select: &Select) -> String {
    let parts: Vec<String> = select
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    parts.join(" and ")
}

impl<'a> Columns<'a> {
    fn new(
        file: &FileText,
        header: &'a str,
        span: Range<usize>,
        select: &'a Select,
    ) -> Result<Columns<'a>, InputError> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let find = |wanted: &[&str]| names.iter().position(|name| wanted.contains(name));
        let missing = |what: &str, known: &str| {
            file.error_at(
                span.clone(),
                "the columns",
                format!("no column says {what}"),
            )
            .help(format!("name one of the columns {known}"))
        };
        let from = find(&SENDER).ok_or_else(|| missing("who sends", "src, tx, from"))?;
        let to = find(&RECEIVER).ok_or_else(|| missing("who receives", "dst, rx, to"))?;
        let mut wanted = Vec::new();
        let mut wide = None;
        for (key, value) in select {
            let of_channel = format!("pdr{value}");
            match find(&[key]) {
                Some(column) => wanted.push((column, value.as_str())),
                None if key == "channel" && find(&[&of_channel]).is_some() => {
                    wide = find(&[&of_channel])
                }
                None => {
                    let error = missing(&format!("`{key}`"), &names.join(", "));
                    let near = nearest(key, names.iter().copied());
                    return Err(match near {
                        Some(name) => error.help(format!("did you mean `{name}`?")),
                        None => error,
                    });
                }
            }
        }
        let quality = quality(&names, wide).ok_or_else(|| {
            missing(
                "how good a link is",
                "pdr, prr, pdr_pct, n_received_of_N, tq_fwd",
            )
        })?;
        Ok(Columns {
            names,
            from,
            to,
            quality,
            wanted,
        })
    }

    /// Whether a line is among those to use.
    fn wants(&self, fields: &[&str]) -> bool {
        let mut wanted = self.wanted.iter();
        wanted.all(|&(column, value)| fields[column] == value)
    }

    fn take(
        &self,
        file: &FileText,
        (line, span): (&str, Range<usize>),
        fields: &[&str],
        collector: &mut Collector,
    ) -> Result<(), InputError> {
        let number = |column: usize| -> Result<Option<f64>, InputError> {
            let text = fields[column];
            match text.parse::<f64>() {
                _ if text.is_empty() => Ok(None),
                Ok(value) if value >= 0.0 && value.is_finite() => Ok(Some(value)),
                _ => {
                    let message = format!("`{text}` is not a link quality");
                    Err(file.error_at(place(line, column, &span), self.names[column], message))
                }
            }
        };
        let (from, to) = (fields[self.from], fields[self.to]);
        match self.quality {
            Quality::Share(column, factor) => {
                if let Some(value) = number(column)? {
                    collector.link(from, to, value * factor, 1.0);
                }
            }
            Quality::BothWays(forward, reverse) => {
                if let Some(value) = number(forward)? {
                    collector.link(from, to, value, 1.0);
                    collector.link(to, from, number(reverse)?.unwrap_or(value), 1.0);
                }
            }
        }
        Ok(())
    }
}

fn quality(names: &[&str], wide: Option<usize>) -> Option<Quality> {
    let find = |wanted: &str| names.iter().position(|name| *name == wanted);
    if let Some(column) = wide {
        return Some(Quality::Share(column, 0.01));
    }
    if let Some(column) = SHARE.iter().find_map(|name| find(name)) {
        return Some(Quality::Share(column, 1.0));
    }
    if let Some(column) = find("pdr_pct") {
        return Some(Quality::Share(column, 0.01));
    }
    if let (Some(forward), Some(reverse)) = (find("tq_fwd"), find("tq_rev")) {
        return Some(Quality::BothWays(forward, reverse));
    }
    let counted = |name: &&str| name.strip_prefix(RECEIVED_OF)?.parse::<f64>().ok();
    let column = names.iter().position(|name| counted(name).is_some())?;
    let frames = counted(&names[column]).filter(|&frames| frames > 0.0)?;
    Some(Quality::Share(column, 1.0 / frames))
}

/// Where the field of a column stands, in a line that stands at `span`.
fn place(line: &str, column: usize, span: &Range<usize>) -> Range<usize> {
    let mut fields = line.split(',');
    let before: usize = fields
        .by_ref()
        .take(column)
        .map(|field| field.len() + 1)
        .sum();
    let field = fields.next().unwrap_or("");
    let start = span.start + before + (field.len() - field.trim_start().len());
    start..start + field.trim().len()
}

/// Lines with their places.
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    /// The names of the columns, behind a line of JSON if there is one.
    fn header(&mut self) -> Option<(&'a str, Range<usize>)> {
        let first = self.next()?;
        match first.0.starts_with('{') {
            true => self.next(),
            false => Some(first),
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (&'a str, Range<usize>);
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split('\n').next().unwrap_or("");
        let start = self.at;
        self.at += line.len() + 1;
        let line = line.strip_suffix('\r').unwrap_or(line);
        Some((line, start..start + line.len()))
    }
}
