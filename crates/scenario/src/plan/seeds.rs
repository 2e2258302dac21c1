//! Reads the seeds of the table `[run]`, each once.

use crate::check::Check;
use crate::format::{Located, RunTable};
use crate::input::InputError;

/// The most seeds of one scenario: more is a mistake in typing.
pub const SEEDS_MAX: u64 = 100_000;

/// The seeds to run, each once: a seed that stood twice would count as two independent values.
pub fn plan(run: &RunTable, check: &Check<'_>) -> Result<Vec<u64>, InputError> {
    let Some(seeds) = &run.seeds else {
        return repeated(run, check);
    };
    let seed = run.seed.as_ref().map(Located::span);
    if let Some(other) = seed.or(run.repeat.as_ref().map(Located::span)) {
        let message = "`seeds` stands for `seed` and `repeat` together";
        let error = check.error(other, "and this", message);
        return Err(error.help("leave out one or the other"));
    }
    if seeds.is_empty() {
        return Err(check.at(seeds, "no seed", "there must be at least one seed"));
    }
    if seeds.len() as u64 > SEEDS_MAX {
        return Err(too_many(seeds, seeds.len() as u64, check));
    }
    let mut sorted = (**seeds).clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(check.at(seeds, "twice", format!("seed {} is listed twice", pair[0])));
    }
    Ok((**seeds).clone())
}

/// `repeat` seeds from `seed` on; one from 1 on, where they are not given.
fn repeated(run: &RunTable, check: &Check<'_>) -> Result<Vec<u64>, InputError> {
    let first = run.seed.as_ref().map_or(1, |seed| **seed);
    let Some(repeat) = &run.repeat else {
        return Ok(vec![first]);
    };
    match **repeat {
        0 => Err(check.at(repeat, "no run", "a scenario must run at least once")),
        count if count > SEEDS_MAX => Err(too_many(repeat, count, check)),
        count => match first.checked_add(count - 1) {
            Some(last) => Ok((first..=last).collect()),
            None => {
                let message = format!("{count} seeds from {first} on exceed the largest number");
                Err(check.at(repeat, "too many", message))
            }
        },
    }
}

fn too_many<T>(place: &Located<T>, count: u64, check: &Check<'_>) -> InputError {
    let message = format!("{count} runs of one scenario");
    let error = check.at(place, "too many", message);
    error.help(format!("{SEEDS_MAX} at most"))
}

#[cfg(test)]
mod tests {
    use crate::idle;
    use crate::input::InputError;
    use crate::plan::Plan;

    fn seeds(run: &str) -> Result<Vec<u64>, InputError> {
        let text = format!(
            "[network]\nlinks = [[0, 1], [1, 0]]\n[[transfer]]\nreceivers = 1\nbytes = \"1 kB\"\n[run]\n{run}\n"
        );
        Ok(Plan::parse(&[&idle::IDLE], "test", &text)?.seeds)
    }

    #[test]
    fn seeds_are_counted_or_listed() {
        assert_eq!(seeds("").unwrap(), [1]);
        assert_eq!(seeds("seed = 7").unwrap(), [7]);
        assert_eq!(seeds("seed = 7\nrepeat = 3").unwrap(), [7, 8, 9]);
        assert_eq!(seeds("seeds = [9, 4]").unwrap(), [9, 4]);
    }

    #[test]
    fn seeds_that_make_no_sense_are_refused() {
        for (run, message) in [
            ("repeat = 0", "at least once"),
            ("repeat = 100001", "100001 runs"),
            // The largest integer of TOML.
            ("repeat = 9223372036854775807", "9223372036854775807 runs"),
            ("seeds = []", "at least one seed"),
            ("seeds = [3, 1, 3]", "seed 3 is listed twice"),
            ("seeds = [3]\nrepeat = 2", "together"),
        ] {
            let error = seeds(run).unwrap_err();
            assert!(error.message.contains(message), "{run}: {error}");
            assert!(error.place.is_some(), "{run}");
        }
    }
}
