//! One mechanism of the DCF per script. The language is described in `script/mod.rs`.

use crate::script;

macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test] fn $name() { script::check(stringify!($name)); })*

        /// Every script file must be run by a test.
        #[test]
        fn every_script_is_played() {
            let mut played = [$(stringify!($name)),*];
            played.sort();
            assert_eq!(script::names(), played);
        }
    };
}

scripts! {
    ack_timeout_and_retry
    broadcast
    cca_commitment
    cca_noticed
    cca_when_ready
    difs_access
    duplicates
    difs_backoff
    early_timeout
    eifs
    freeze_and_resume
    late_binding
    long_link
    nav
    nav_off
    nav_reset
    overhearing
    receiving
    retry_limit_long
    retry_limit_short
    rts_cts
    sensing_only_while_contending
    slots_after_timeout
    stray_answers
    window_doubles
}
