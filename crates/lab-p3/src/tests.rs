//! A scenario against golden values.

use std::path::Path;

use chappe_lab::run::Meter;
use chappe_lab::session::{self, Options};
use chappe_results::provenance::Program;
use chappe_scenario::plan::{Changes, Plan};

use super::carry::{ACTIVE, ENERGY, ROUNDS, SOURCE_DATA};
use super::*;

/// Goal: any change of a transfer is detected. Method: the tunnel of `examples/` with seed 1, by each variant: frames of the
/// source, rounds, active nodes, bits per second and microjoules. After an intended change, review the difference and update
/// the values.
#[test]
fn tunnel_transfers_match_the_golden_values() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p3-line.toml");
    let golden = [
        ("paper", [511, 2, 16, 194_434, 2_009_232]),
        ("pip", [500, 1, 4, 103_462, 860_032]),
        ("pip-aware", [500, 1, 4, 103_462, 860_032]),
        ("improved", [500, 1, 8, 215_808, 736_955]),
    ];
    for (variant, expected) in golden {
        let set = [format!("protocol.variant={variant}")];
        let plan = Plan::read(&[&SYSTEM], &file, &set, &Changes::default()).unwrap();
        let session = session::run(
            &[&crate::P3_SYSTEM],
            &plan,
            Program::unknown("test"),
            Options::default(),
            &Meter::default(),
        )
        .unwrap();
        let run = &session.document.runs[0];
        assert!(run.all_complete(), "{variant}");
        let count = |name| run.counter(name);
        let bits = run.mean_goodput() as u64;
        let found = [
            count(SOURCE_DATA),
            count(ROUNDS),
            count(ACTIVE),
            bits,
            count(ENERGY),
        ];
        assert_eq!(found, expected, "{variant}");
    }
}
