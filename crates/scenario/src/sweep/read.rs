//! Reads a grid from `[sweep]` and from options, with the place of every value.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values::values;
use super::{Axis, AxisValue, CELLS_MAX, Grid};
use crate::format::{Assignment, Source};
use crate::input::InputError;
use crate::nearest::nearest;

/// A text that keys and values stand in.
struct Text<'a> {
    from: &'a str,
    text: Arc<str>,
}

impl Text<'_> {
    fn error(&self, span: Range<usize>, label: &str, message: impl Into<String>) -> InputError {
        InputError::new(self.from, message).at(&self.text, span, label)
    }

    fn value(
        &self,
        shown: String,
        toml: String,
        key: &Range<usize>,
        value: Range<usize>,
    ) -> AxisValue {
        let written = Assignment {
            from: self.from.to_string(),
            text: self.text.clone(),
            key: key.clone(),
            value,
        };
        AxisValue {
            shown,
            toml,
            written,
        }
    }
}

impl Grid {
    /// The grid of a file's `[sweep]` with options `KEY=VALUES` on top, which replace a key's values in the file, and with
    /// `references` of the form `KEY=VALUE`. A file without the table and no options make an empty grid of one cell.
    pub fn read(
        source: &Source,
        options: &[String],
        references: &[String],
    ) -> Result<Grid, InputError> {
        let (mut axes, mut chosen) = table(source)?;
        let mut given: Vec<String> = Vec::new();
        for option in options {
            let axis = option_axis(option)?;
            if given.contains(&axis.key) {
                let message = format!("`{}` is given twice", axis.key);
                return Err(axis.values[0]
                    .error("again", message)
                    .help("join the values with commas"));
            }
            given.push(axis.key.clone());
            match axes.iter_mut().find(|own| own.key == axis.key) {
                Some(own) => *own = axis,
                None => axes.push(axis),
            }
        }
        axes.iter().try_for_each(|axis| check(axis, source))?;
        let mut reference = vec![None; axes.len()];
        if !references.is_empty() {
            chosen = references
                .iter()
                .map(|text| option_axis_of("--reference", text))
                .collect::<Result<_, _>>()?;
        }
        for choice in &chosen {
            let (axis, place) = find(choice, &axes)?;
            reference[axis] = Some(place);
        }
        if let (true, Some(first)) = (chosen.is_empty(), reference.first_mut()) {
            *first = Some(0);
        }
        let grid = Grid { axes, reference };
        if grid.cells() > CELLS_MAX {
            let message = format!("{} cells, at most {CELLS_MAX}", grid.cells());
            let last = grid.axes.last().and_then(|axis| axis.values.last());
            return Err(last.map_or_else(
                || InputError::new("", &*message),
                |value| value.error("too many", &*message),
            ));
        }
        Ok(grid)
    }
}

fn option_axis(option: &str) -> Result<Axis, InputError> {
    option_axis_of("--grid", option)
}

/// The key and the values of an option.
fn option_axis_of(name: &str, option: &str) -> Result<Axis, InputError> {
    let from = format!("{name} {option}");
    let text = Text {
        from: &from,
        text: option.into(),
    };
    let Some((key, list)) = option
        .split_once('=')
        .filter(|(key, _)| !key.trim().is_empty())
    else {
        let error = text.error(
            0..option.len(),
            "not of the form key=values",
            "expected key=values",
        );
        return Err(error.help("for example --grid protocol.variant=paper,more or --grid 'radio.tx_power=10..20 dBm/5'"));
    };
    let lead = key.len() - key.trim_start().len();
    let place = lead..lead + key.trim().len();
    let start = option.len() - list.len();
    let values = values(list)
        .map_err(|(message, help)| text.error(start..option.len(), "here", message).help(help))?;
    let one = |(value, span): (String, Range<usize>)| {
        let toml = value.clone();
        text.value(value, toml, &place, start + span.start..start + span.end)
    };
    Ok(Axis {
        key: key.trim().to_string(),
        values: values.into_iter().map(one).collect(),
    })
}

/// The keys of `[sweep]` with their values, and the references.
fn table(source: &Source) -> Result<(Vec<Axis>, Vec<Axis>), InputError> {
    let padded = source.padded();
    let table = source.table(&padded, "sweep", &[])?.into_inner();
    let text = Text {
        from: source.name(),
        text: source.text().into(),
    };
    let (mut axes, mut reference) = (Vec::new(), Vec::new());
    for (key, value) in table {
        let into = match &**key.get_ref() {
            "grid" => &mut axes,
            "reference" => &mut reference,
            other => {
                let message = format!("unknown key `{other}`");
                let help = nearest(other, ["grid", "reference"]);
                let help = help.map_or_else(
                    || "known here: grid, reference".into(),
                    |near| format!("did you mean `{near}`?"),
                );
                return Err(source.error(key.span(), "unknown key", message).help(help));
            }
        };
        let span = value.span();
        let DeValue::Table(keys) = value.into_inner() else {
            let message = format!("[sweep.{}] is a table of keys", key.get_ref());
            return Err(source.error(span, "not a table", message));
        };
        walk(keys, "", (source, &text), into)?;
    }
    // The parser sorts keys by their names; people expect the order of the file.
    for list in [&mut axes, &mut reference] {
        list.sort_by_key(|axis: &Axis| axis.values[0].written.key.start);
    }
    Ok((axes, reference))
}

/// Collects the keys of a table and of those within it.
fn walk(
    table: DeTable<'_>,
    before: &str,
    (source, text): (&Source, &Text<'_>),
    axes: &mut Vec<Axis>,
) -> Result<(), InputError> {
    for (key, value) in table {
        let name = format!("{before}{}", key.get_ref());
        let (place, span) = (key.span(), value.span());
        let listed = match value.into_inner() {
            DeValue::Table(inner) => {
                walk(inner, &format!("{name}."), (source, text), axes)?;
                continue;
            }
            DeValue::Array(list) => list.into_iter().collect(),
            other => vec![Spanned::new(span.clone(), other)],
        };
        let mut found = Vec::new();
        for value in listed {
            let span = value.span();
            let many = match value.get_ref() {
                DeValue::String(words) => values(words).map_err(|(message, help)| {
                    source.error(span.clone(), "here", message).help(help)
                })?,
                _ => vec![(plain(&value, source)?, 0..0)],
            };
            let quoted = matches!(value.get_ref(), DeValue::String(_));
            for (shown, _) in many {
                let toml = if quoted {
                    toml::Value::String(shown.clone()).to_string()
                } else {
                    shown.clone()
                };
                found.push(text.value(shown, toml, &place, span.clone()));
            }
        }
        if found.is_empty() {
            return Err(source.error(span, "no value", format!("`{name}` has no value")));
        }
        axes.push(Axis {
            key: name,
            values: found,
        });
    }
    Ok(())
}

/// A number or a truth value as text.
fn plain(value: &Spanned<DeValue<'_>>, source: &Source) -> Result<String, InputError> {
    match value.get_ref() {
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(truth) => Ok(truth.to_string()),
        _ => {
            let message = "a value of a sweep is a text, a number or a truth value";
            Err(source.error(value.span(), "something else", message))
        }
    }
}

/// Refuses keys that cannot be swept, and values that stand twice.
fn check(axis: &Axis, source: &Source) -> Result<(), InputError> {
    let first = &axis.values[0];
    let root = axis.key.split('.').next().unwrap_or_default();
    let refuse = |message: String, help: &str| {
        let written = &first.written;
        let error = InputError::new(&written.from, message).at(
            &written.text,
            written.key.clone(),
            "no use here",
        );
        Err(error.help(help))
    };
    match (root, &*axis.key) {
        ("title", _) => {
            return refuse(
                "`title` changes no run".into(),
                "sweep a key that a run depends on",
            );
        }
        ("sweep", _) => {
            return refuse(
                "a sweep cannot be swept".into(),
                "name keys of the scenario",
            );
        }
        (_, "run.seed" | "run.seeds" | "run.repeat") => {
            return refuse(
                "every cell runs the same seeds, so that cells can be compared".into(),
                "give them with --seeds 1..20 or in [run]",
            );
        }
        _ => {}
    }
    if source.options().any(|key| key == axis.key) {
        return refuse(
            format!("`{}` is both set and swept", axis.key),
            "leave out the --set",
        );
    }
    for (place, value) in axis.values.iter().enumerate() {
        if axis.values[..place]
            .iter()
            .any(|other| other.shown == value.shown)
        {
            let message = format!("{} stands twice", value.shown);
            return Err(value.error("again", message));
        }
    }
    Ok(())
}

/// The axis and the place of a reference's value.
fn find(choice: &Axis, axes: &[Axis]) -> Result<(usize, usize), InputError> {
    let value = &choice.values[0];
    if let Some(second) = choice.values.get(1) {
        return Err(second.error("and this", "a reference is one value of a key"));
    }
    let near = |name: &str, known: Vec<&str>| match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    let Some(axis) = axes.iter().position(|axis| axis.key == choice.key) else {
        let written = &value.written;
        let message = format!("`{}` is not swept", choice.key);
        let error = InputError::new(&written.from, message).at(
            &written.text,
            written.key.clone(),
            "no such key",
        );
        return Err(error.help(near(
            &choice.key,
            axes.iter().map(|axis| &*axis.key).collect(),
        )));
    };
    let known = &axes[axis].values;
    let Some(place) = known.iter().position(|known| known.shown == value.shown) else {
        let message = format!("`{}` does not have the value {}", choice.key, value.shown);
        let help = near(
            &value.shown,
            known.iter().map(|value| &*value.shown).collect(),
        );
        return Err(value.error("no such value", message).help(help));
    };
    Ok((axis, place))
}
