//! One file for each command.

pub mod border;
pub mod cast;
pub mod compare;
pub mod demo;
pub mod doctor;
pub mod emu;
pub mod generate;
pub mod lab;
pub mod link;
pub mod mesh;
pub mod new;
pub mod sim;
pub mod sweep;
pub mod systems;
pub mod trial;
pub mod view;
