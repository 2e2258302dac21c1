//! A small language for what one station must do, and its player.
//!
//! A script is about station `n1`. Each line is a time in microseconds and what happens then; `#` starts a
//! comment. The player is the radio: it keeps the carrier, ends transmissions after their airtime, and destroys
//! what arrives while the station sends. Everything the station does must stand in the script, and nothing else.
//!
//! ```text
//! set KEY=VALUE ...             before all else: rate (2) rts (off) eifs nav nav_reset overhear llc fresh_difs
//!                               early_timeout, difs_backoff, cca_ready (on or off), cca (15) cw (31..1023) short (7) long (4) propagation (0), seed (1),
//!                               show=sense
//! draws WINDOW:SLOTS ...        states (and the player checks) which back-offs the seed gives, in order
//!
//! 100 offer n2 200              the link node has a frame of 200 octets for n2; `*` is broadcast
//! 100 withdraw                  it has nothing any more
//! 100 hear FRAME                a frame begins, and is whole at its end
//! 100 garble 500                a frame of 500 us begins that cannot be decoded
//! 100 noise 500                 energy for 500 us that is not a frame
//!
//! 100 > FRAME                   the station begins to send
//! 100 ^ n2 > n1 sdu=200         it hands a payload up
//! 100 = acknowledged 1          it reports an outcome: acknowledged N, failed N (attempts), unconfirmed
//! 100 sense on                  it turns carrier sensing on or off (only with show=sense)
//! 100 end                       the script ends; what was in progress does not matter
//!
//! FRAME: Data n1 > n2 seq=0 [retry] nav=314 sdu=200 @2      own sequence numbers count from 0
//!        RTS n1 > n2 nav=2036 @1      CTS > n1 nav=1722 @1      ACK > n1 nav=0 @1
//! ```

mod play;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

/// Plays the script of this name, with both orders of the radio's reports at the end of a frame.
#[track_caller]
pub fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let text = fs::read_to_string(folder.join(format!("{name}.txt"))).expect("the script exists");
    let script = text::Script::parse(&text);
    for frame_first in [false, true] {
        let done = play::play(&script, frame_first);
        let expected = &script.expected;
        let agree = expected
            .iter()
            .zip(&done)
            .take_while(|(a, b)| a == b)
            .count();
        assert!(
            agree == expected.len() && agree == done.len(),
            "{name}, frame reported {}:\n  expected {:?}\n  came     {:?}\n  all that came:\n    {}",
            if frame_first { "first" } else { "last" },
            expected.get(agree),
            done.get(agree),
            done.join("\n    "),
        );
    }
}

/// Names of all scripts in the folder.
pub fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let name = |path: &PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    let files = chappe_testkit::script::files(folder, "txt");
    files.iter().filter_map(name).collect()
}
