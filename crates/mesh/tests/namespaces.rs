//! The daemon with real kernels: TCP and ping over three lossy hops, beside static routes on a line and beside babeld on five nodes,
//! there with iperf3.
//!
//! Goal: what docs/mesh.md says of these, in a short form. Method: emulated radios in namespaces
//! (`examples/beside_babeld.rs` is the long form). Skipped if the kernel forbids namespaces. The machine may be busy, so goodput
//! has a margin and three attempts.

#[path = "suite/rivals/mod.rs"]
mod rivals;

use rivals::{Access, Called, Cell, Place, Router, Seen, apart, called};

fn main() {
    let Called::User = called() else { return };
    if let Err(why) = chappe_sys::namespace::isolate_by_any_means() {
        return chappe_testkit::skip(why.to_string());
    }
    let exists = |program: &str| {
        std::process::Command::new(program)
            .arg("-V")
            .output()
            .is_ok()
    };
    if !exists("ping") {
        return chappe_testkit::skip("ping is not installed (iputils-ping)");
    }
    it_beats(Router::Static, Place::Line, 1);
    match ["babeld", "iperf3"].into_iter().find(|name| !exists(name)) {
        None => it_beats(Router::Babel, Place::Five, 4),
        Some(name) => chappe_testkit::skip(format!("{name} is not installed ({name})")),
    }
}

/// Goodput of TCP at least that of the rival, which the mesh exceeds by half on an idle machine.
fn it_beats(rival: Router, place: Place, seed: u64) {
    println!("it_beats {} on {}", rival.name(), place.name());
    let mut late = 0;
    for attempt in 0..3 {
        let [mesh, other] =
            [Router::Mesh, rival].map(|router| measure(router, place, seed + attempt));
        println!("  {mesh}\n  {other}");
        if !other.first_s.is_finite() {
            return chappe_testkit::skip(format!("{} did not come up in a minute", rival.name()));
        }
        // Cards recover none: one that hardly hears the neighbour would hold all frames behind.
        assert_eq!(mesh.unicasts, 0);
        assert!(mesh.first_s < 10.0, "first answer after {} s", mesh.first_s);
        if mesh.geometric() > other.geometric() {
            return;
        }
        // An emulator that is late by 1 ms makes a result invalid (docs/emu.md).
        late += u32::from(mesh.late_p99_s.max(other.late_p99_s) > 1e-3);
    }
    assert!(late > 0, "less than {}", rival.name());
    chappe_testkit::skip("this machine is too busy to keep time");
}

fn measure(router: Router, place: Place, seed: u64) -> Seen {
    let cell = Cell {
        place,
        router,
        congestion: "cubic".into(),
        seed,
        seconds: 4,
        // babeld took 20 to 50 s.
        patience_s: 60,
        access: Access::default(),
        crash: false,
    };
    apart(&cell).expect("a measurement")
}
