//! The thermometer's program on the models of its chip: a room with two nodes.

#![no_std]

pub mod room;
