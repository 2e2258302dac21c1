//! Values of options that several commands take.

use chappe_core::Bitrate;
use chappe_scenario::quantity::Rate;

/// Parses a rate, 10 kbit/s to 100 Gbit/s.
pub fn rate(text: &str) -> Result<Bitrate, String> {
    let rate = Rate::parse(text).map_err(one_line)?.value();
    match (1e4..=1e11).contains(&rate) {
        true => Ok(Bitrate(rate as u64)),
        false => Err("10 kbit/s to 100 Gbit/s".into()),
    }
}

/// Joins the mistake and the right form, which `chappe-scenario` separates by a control character.
pub fn one_line(message: String) -> String {
    message.replace('\u{1f}', "; ")
}
