//! Draws.
/// Draws.
pub fn draw(_: &crate::figure::Figure) -> String { String::new() }
