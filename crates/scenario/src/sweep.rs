//! Several scenarios from one file: keys, each with its values, and a cell for each combination of them.
//!
//! A grid comes from `[sweep]` in the file and from options on top of it. Each cell is the file with one value of each key set,
//! checked like every scenario, so a key that a cell cannot use is refused before anything runs.
//!
//! ```
//! use chappe_scenario::format::Source;
//! use chappe_scenario::sweep::Grid;
//!
//! let source = Source::new("line.toml", "[network]\nlinks = [[0, 1], [1, 0]]\n", &[]);
//! let options = ["radio.tx_power=10..20 dBm/5".to_string()];
//! let grid = Grid::read(&source, &options, &[])?;
//! let values: Vec<&str> = grid.axes[0].values.iter().map(|value| &*value.shown).collect();
//! assert_eq!(values, ["10 dBm", "15 dBm", "20 dBm"]);
//! # Ok::<(), chappe_scenario::InputError>(())
//! ```

mod read;
mod values;

use std::collections::BTreeMap;

use crate::format::{Assignment, Source};
use crate::input::{InputError, Place};
use crate::plan::{Changes, Plan};
use crate::quantity::{BARE, in_first_unit};
use crate::system::System;

/// The most cells of a sweep: more is a mistake in typing.
pub const CELLS_MAX: usize = 100_000;

/// Keys, each with its values.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The keys, in the order in which they were given.
    pub axes: Vec<Axis>,
    /// For each key, the place of the value that the others are compared with, if they are compared along this key.
    pub reference: Vec<Option<usize>>,
}

/// A key with its values.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The key as on the command line: `radio.tx_power`.
    pub key: String,
    /// Its values, in the order in which they were given.
    pub values: Vec<AxisValue>,
}

/// One value of a key.
#[derive(Clone, Debug)]
pub struct AxisValue {
    /// The value as people write it: `15 dBm`.
    pub shown: String,
    /// The same as TOML.
    toml: String,
    written: Assignment,
}

/// The scenario of one cell.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The place of its value on each axis.
    pub at: Vec<usize>,
    /// The plan of its scenario.
    pub plan: Plan,
}

impl Grid {
    /// The number of cells.
    pub fn cells(&self) -> usize {
        let lengths = self.axes.iter().map(|axis| axis.values.len());
        lengths.fold(1, usize::saturating_mul)
    }

    /// The place of cell `number` on each axis; the last axis varies fastest.
    pub fn at(&self, mut number: usize) -> Vec<usize> {
        let mut at = vec![0; self.axes.len()];
        for (place, axis) in at.iter_mut().zip(&self.axes).rev() {
            *place = number % axis.values.len();
            number /= axis.values.len();
        }
        at
    }

    /// The number of the cell at these places.
    pub fn number(&self, at: &[usize]) -> usize {
        let places = at.iter().zip(&self.axes);
        places.fold(0, |number, (place, axis)| {
            number * axis.values.len() + place
        })
    }

    /// The values of a cell, as people write them.
    pub fn shown(&self, at: &[usize]) -> Vec<&str> {
        let values = at.iter().zip(&self.axes);
        values
            .map(|(&place, axis)| &*axis.values[place].shown)
            .collect()
    }

    /// The values of a cell as options `key=value`, as `--set` takes them.
    pub fn options(&self, at: &[usize]) -> Vec<String> {
        let values = at.iter().zip(&self.axes);
        let option =
            |(&place, axis): (&usize, &Axis)| format!("{}={}", axis.key, axis.values[place].toml);
        values.map(option).collect()
    }

    /// The cell that another is compared with: the same but for the value of the keys that have a reference. `None` for a cell
    /// that is a reference itself.
    pub fn reference_of(&self, at: &[usize]) -> Option<Vec<usize>> {
        let places = at.iter().zip(&self.reference);
        let reference: Vec<usize> = places.map(|(&own, given)| given.unwrap_or(own)).collect();
        (reference != at).then_some(reference)
    }

    /// The scenarios of all cells, each checked. Refuses two cells that are the same scenario.
    pub fn plan(
        &self,
        systems: &[&'static System],
        source: &Source,
        changes: &Changes<'_>,
    ) -> Result<Vec<Cell>, InputError> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut cells = Vec::new();
        for number in 0..self.cells() {
            let at = self.at(number);
            let plan = Plan::new(systems, self.source(source, &at), changes)
                .map_err(|error| self.located(error, &at))?;
            if let Some(twin) = known.insert(plan.canonical.clone(), number) {
                return Err(self.same(&self.at(twin), &at));
            }
            cells.push(Cell { at, plan });
        }
        Ok(cells)
    }

    /// The file with the values of one cell.
    fn source(&self, source: &Source, at: &[usize]) -> Source {
        let mut source = source.clone();
        for (&place, axis) in at.iter().zip(&self.axes) {
            let value = &axis.values[place];
            source = source.with(
                &format!("{}={}", axis.key, value.toml),
                value.written.clone(),
            );
        }
        source
    }

    /// An error of one cell, which says of which one.
    fn located(&self, error: InputError, at: &[usize]) -> InputError {
        let error = match error.message.contains(BARE) {
            true => self.with_units(error, at),
            false => error,
        };
        if self.axes.len() < 2 {
            return error;
        }
        let cell = format!("in the cell with {}", self.words(at));
        let help = match &error.help {
            Some(help) => format!("{help}; {cell}"),
            None => cell,
        };
        error.help(help)
    }

    /// An error about a value without its unit, with the form of all values of its key.
    fn with_units(&self, error: InputError, at: &[usize]) -> InputError {
        let is_meant = |value: &AxisValue| {
            let place = error.place.as_ref();
            let same = |place: &Place| {
                place.span == value.written.value && place.text == value.written.text
            };
            value.written.from == error.from && place.is_some_and(same)
        };
        let mut chosen = at.iter().zip(&self.axes);
        let meant = chosen.find(|&(&place, axis)| is_meant(&axis.values[place]));
        let Some((_, axis)) = meant else {
            return error;
        };
        // Another value has the unit, or the help proposes one.
        let units = axis
            .values
            .iter()
            .filter_map(|value| Some(value.number()?.1));
        let proposed = error.help.as_deref().and_then(|help| {
            let (_, unit) = values::number_and_unit(help.split('"').nth(1)?)?;
            Some(unit)
        });
        let Some(unit) = units.filter(|unit| !unit.is_empty()).chain(proposed).next() else {
            return error;
        };
        let mut texts: Vec<&str> = Vec::new();
        for value in &axis.values {
            let text = value.written.text.get(value.written.value.clone());
            let text = text.unwrap_or(&value.shown).trim_matches(['"', '\'']);
            if texts.last() != Some(&text) {
                texts.push(text);
            }
        }
        let form = values::with_unit(&texts.join(","), unit);
        let help = format!("every value has its unit: write {form}");
        error.help(help)
    }

    /// The keys and values of a cell in words.
    pub fn words(&self, at: &[usize]) -> String {
        let keys = self.axes.iter().map(|axis| &*axis.key);
        let pairs = keys.zip(self.shown(at));
        let words: Vec<String> = pairs
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        words.join(", ")
    }

    /// The error about two cells that are one scenario: the last key in which they differ has no effect.
    fn same(&self, one: &[usize], other: &[usize]) -> InputError {
        let differ = (0..self.axes.len())
            .rev()
            .find(|&axis| one[axis] != other[axis]);
        let Some(axis) = differ.map(|axis| &self.axes[axis]) else {
            return InputError::new("", "two cells are the same");
        };
        let place = self
            .axes
            .iter()
            .position(|own| own.key == axis.key)
            .unwrap_or(0);
        let (first, second) = (&axis.values[one[place]], &axis.values[other[place]]);
        let message = format!(
            "`{}` makes no difference: {} and {} give the same scenario",
            axis.key, first.shown, second.shown
        );
        second.error("the same", message)
    }
}

impl AxisValue {
    /// An error about this value.
    fn error(&self, label: &str, message: impl Into<String>) -> InputError {
        let written = &self.written;
        InputError::new(&written.from, message).at(&written.text, written.value.clone(), label)
    }

    /// The number before the unit, and the unit; `None` if it is no number.
    pub fn number(&self) -> Option<(f64, &str)> {
        values::number_and_unit(&self.shown)
    }
}

impl Axis {
    /// The values as numbers in the first unit of their kind, and the name of a column that holds them: `radio.tx_power_dbm`.
    /// `None` if one of them is no number, or has a unit of another kind.
    pub fn numbers(&self) -> Option<(String, Vec<f64>)> {
        let one = |value: &AxisValue| match value.number()? {
            (number, "") => Some((number, "")),
            (number, unit) => in_first_unit(number, unit),
        };
        let all: Vec<(f64, &str)> = self.values.iter().map(one).collect::<Option<_>>()?;
        let ending = all.first()?.1;
        let alike = all.iter().all(|(_, other)| *other == ending);
        alike.then(|| {
            (
                format!("{}{ending}", self.key),
                all.iter().map(|(number, _)| *number).collect(),
            )
        })
    }
}

#[cfg(test)]
mod tests;
