//! Under construction.
use crate::failure::Failure;
pub fn run<T>(_: &T) -> Result<u8, Failure> { Ok(0) }
