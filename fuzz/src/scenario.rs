//! The target that reads octets as a scenario file.

use chappe::systems;
use chappe_scenario::Plan;

/// Reads the octets as a scenario. A mistake must be told with a place inside the text.
pub fn feed(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = Plan::parse(&systems::scenarios(), "fuzz.toml", &text) {
        assert!(!error.message.is_empty());
        if let Some(place) = &error.place {
            assert!(place.span.start <= place.span.end && place.span.end <= place.text.len());
        }
    }
}
