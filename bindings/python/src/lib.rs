//! Chappe in Python: what the package `chappe` (the folder of that name) is made of.
//!
//! The functions here are private to that package, which documents them for users, gives them types, and makes frames of what they
//! return. What the command does, the library `chappe` does here too, so one seed gives the same run in both.

mod error;
mod lab;
mod node;
mod run;
mod scenario;
mod stream;
mod sweep;
mod system;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _chappe {
    #[pymodule_export]
    use crate::lab::{figures, papers};
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::stream::Stream;
    #[pymodule_export]
    use crate::sweep::{Sweep, identity};
    #[pymodule_export]
    use crate::system::register;
}
