//! Reads files that hold one key each, and says how to make one that is missing.

use std::path::PathBuf;

use chappe_scenario::InputError;
use chappe_scenario::format::Located;

use super::Source;

/// Reads a file of one key; `make` says how to make it.
pub(super) fn read<T>(
    source: &Source,
    file: &Located<PathBuf>,
    make: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, InputError> {
    let path = source.folder.join(file.get_ref());
    let wrong = |message, help: &str| source.wrong(file.span(), message, help);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => make,
            _ => "run the link as root or as the owner of the key",
        };
        wrong(format!("cannot read {}: {error}", path.display()), help)
    })?;
    parse(&text).ok_or_else(|| {
        let message = format!("{} is not a key", path.display());
        wrong(message, &format!("a key is 64 hexadecimal digits: {make}"))
    })
}
