//! The emulated network of a running emulation.

use chappe_emu::Emulator;
use chappe_lab_emu::Station;

use crate::command::film::Film;

/// The emulator with the programs' stations, which films what is on the air.
pub type Running = Emulator<Station, Film>;
