//! One file for each command.

#[cfg(feature = "full")]
pub mod border;
#[cfg(any(feature = "full", feature = "cast"))]
pub mod cast;
#[cfg(feature = "full")]
pub mod compare;
#[cfg(feature = "full")]
pub mod demo;
#[cfg(feature = "full")]
pub mod desk;
pub mod doctor;
#[cfg(feature = "full")]
pub mod emu;
#[cfg(feature = "full")]
mod film;
#[cfg(feature = "full")]
pub mod generate;
#[cfg(feature = "full")]
pub mod lab;
#[cfg(any(feature = "full", feature = "link"))]
pub mod link;
#[cfg(feature = "full")]
pub mod mesh;
#[cfg(feature = "full")]
pub mod new;
#[cfg(feature = "full")]
pub mod sim;
#[cfg(feature = "full")]
pub mod sweep;
#[cfg(feature = "full")]
pub mod systems;
#[cfg(feature = "full")]
pub mod trial;
#[cfg(feature = "full")]
pub mod view;
