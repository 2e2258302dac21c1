use super::*;
use crate::idle::IDLE;

const FILE: &str = "[network]\npositions = [[\"0 m\", \"0 m\"], [\"50 m\", \"0 m\"]]\n\
    [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n";

fn source(tail: &str) -> Source {
    Source::new("pair.toml", &format!("{FILE}{tail}"), &[])
}

fn plans(
    source: &Source,
    options: &[&str],
    references: &[&str],
) -> Result<(Grid, Vec<Cell>), InputError> {
    let owned =
        |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| text.to_string()).collect() };
    let grid = Grid::read(source, &owned(options), &owned(references))?;
    let cells = grid.plan(&[&IDLE], source, &Changes::default())?;
    Ok((grid, cells))
}

fn said(tail: &str, options: &[&str], references: &[&str]) -> String {
    plans(&source(tail), options, references)
        .map(|_| ())
        .unwrap_err()
        .to_string()
}

#[test]
fn every_combination_is_a_cell() {
    let options = ["radio.tx_power=10..20 dBm/5", "transfer.0.bytes=1 kB,2 kB"];
    let (grid, cells) = plans(&source(""), &options, &[]).unwrap();
    assert_eq!((grid.cells(), cells.len()), (6, 6));
    assert_eq!(
        grid.words(&cells[3].at),
        "radio.tx_power = 15 dBm, transfer.0.bytes = 2 kB"
    );
    assert_eq!(cells[3].plan.octets(), 2000);
    assert_eq!(grid.number(&cells[3].at), 3);
    // Compared along the first key, at the same value of the second.
    assert_eq!(grid.reference_of(&cells[3].at), Some(vec![0, 1]));
    assert_eq!(grid.reference_of(&cells[1].at), None);
}

/// The table means the same as the options, and options replace its values; without a sweep the file is what it was.
#[test]
fn the_file_may_hold_the_grid() {
    let tail = "[sweep.grid]\nradio.tx_power = \"10..20 dBm/5\"\n\"network.spacing\" = [1]\n";
    assert!(
        said(tail, &[], &[]).contains("pair.toml:"),
        "spacing is not for positions"
    );
    let tail = "[sweep]\nreference.radio.tx_power = \"15 dBm\"\n[sweep.grid]\ntransfer.0.bytes = [\"1 kB\", \"2 kB\"]\nradio.tx_power = \"10..20 dBm/5\"\n";
    let (grid, cells) = plans(&source(tail), &[], &[]).unwrap();
    assert_eq!(
        grid.axes[0].key, "transfer.0.bytes",
        "the order of the file"
    );
    assert_eq!(grid.reference, [None, Some(1)]);
    let (_, options) = plans(
        &source(""),
        &[
            "transfer.0.bytes=1 kB,2 kB",
            "radio.tx_power=10 dBm,15 dBm,20 dBm",
        ],
        &[],
    )
    .unwrap();
    for (one, other) in cells.iter().zip(&options) {
        assert_eq!(one.plan.canonical, other.plan.canonical);
    }
    let (replaced, _) = plans(&source(tail), &["radio.tx_power=15 dBm,16 dBm"], &[]).unwrap();
    assert_eq!(replaced.cells(), 4);
    let plain = |tail: &str| Plan::new(&[&IDLE], source(tail), &Changes::default()).unwrap();
    assert_eq!(plain(tail).canonical, plain("").canonical);
    assert!(plain(tail).has_sweep && !plain("").has_sweep);
}

/// Goal: each mistake names its place: the option or the line of the file, and the nearest right name.
#[test]
fn mistakes_point_at_what_was_written() {
    for (options, references, expected) in [
        (
            &["radio.tx_pwoer=1..3 dBm"][..],
            &[][..],
            "--grid radio.tx_pwoer=1..3 dBm:1:7: unknown key `tx_pwoer` (did you mean `tx_power`?)",
        ),
        (
            &["radio.tx_power=10 dBm,15 dB"],
            &[],
            "--grid radio.tx_power=10 dBm,15 dB:1:23: `dB` is not a unit",
        ),
        (&["radio.tx_power"], &[], "expected key=values"),
        (
            &["radio.tx_power=10..20 dBm/3"],
            &[],
            "do not meet 20 (the last one would be 19 dBm)",
        ),
        (&["radio.tx_power=10 dBm,10 dBm"], &[], "stands twice"),
        (
            &["radio.tx_power=10 dBm,10.0 dBm"],
            &[],
            "makes no difference",
        ),
        (&["radio.rician_k=1..3 dB"], &[], "changes nothing here"),
        (&["title=a,b"], &[], "changes no run"),
        (&["run.seed=1..3"], &[], "same seeds"),
        (&["sweep.grid.a=1"], &[], "cannot be swept"),
        (
            &["radio.tx_power=1,2", "radio.tx_power=3"],
            &[],
            "given twice",
        ),
        (
            &["radio.tx_power=10..12 dBm"],
            &["radio.tx_pwer=10 dBm"],
            "did you mean `radio.tx_power`?",
        ),
        (
            &["radio.tx_power=10..12 dBm"],
            &["radio.tx_power=9 dBm"],
            "does not have the value 9 dBm",
        ),
        (
            &["run.limit=1..1000 s", "transfer.0.bytes=1..1000 kB"],
            &[],
            "1000000 cells",
        ),
    ] {
        let said = said("", options, references);
        assert!(said.contains(expected), "{options:?}: {said}");
    }
    for (tail, expected) in [
        (
            "[sweep]\ngird.a = 1\n",
            "pair.toml:8:1: unknown key `gird` (did you mean `grid`?)",
        ),
        (
            "[sweep.grid]\nradio.tx_powr = [\"1 dBm\"]\n",
            "pair.toml:8:7: unknown key `tx_powr` (did you mean `tx_power`?)",
        ),
        (
            "[sweep.grid]\nradio.tx_power = [\"10 dBm\", \"1 m\"]\n",
            "pair.toml:8:29: `m` is not a unit",
        ),
        ("[sweep.grid]\nradio.tx_power = []\n", "has no value"),
        ("[sweep]\ngrid = 3\n", "is a table"),
    ] {
        let said = said(tail, &[], &[]);
        assert!(said.contains(expected), "{tail}: {said}");
    }
    let set = Source::new("pair.toml", FILE, &["radio.tx_power=1 dBm".to_string()]);
    let error = plans(&set, &["radio.tx_power=10..12 dBm"], &[])
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("both set and swept"), "{error}");
}

#[test]
fn axes_of_numbers_are_columns() {
    let options = [
        "radio.tx_power=10..20 dBm/10".into(),
        "run.limit=1 min,90 s".into(),
        "protocol.variant=paper,more".into(),
    ];
    let grid = Grid::read(&source(""), &options, &[]).unwrap();
    let columns: Vec<_> = grid.axes.iter().map(Axis::numbers).collect();
    let column = |name: &str, values: &[f64]| Some((name.to_string(), values.to_vec()));
    assert_eq!(
        columns,
        [
            column("radio.tx_power_dbm", &[10.0, 20.0]),
            column("run.limit_s", &[60.0, 90.0]),
            None
        ]
    );
}
