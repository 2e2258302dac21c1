//! The bill of materials: every crate in the command, as CycloneDX 1.5.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::Dist;
use crate::process;
use crate::report::Outcome;

const LIMIT: Duration = Duration::from_secs(1800);

pub fn write(dist: &Dist<'_>) -> Outcome {
    Outcome::from(make(dist))
}

fn make(dist: &Dist<'_>) -> Result<String, String> {
    let root = &dist.workspace.root;
    // What the command is built of on Linux, without crates that only tests need.
    let args = [
        "tree",
        "-p",
        "chappe",
        "-e",
        "normal,build",
        "--prefix",
        "none",
        "--format",
    ];
    let tree = process::take(process::cargo(root, args).args(["{p}|{l}"]), LIMIT)?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| error.to_string())?;
    let checksums = checksums(&lock);
    let mut components: BTreeMap<(String, String), Value> = BTreeMap::new();
    for line in tree.lines() {
        let Some((package, licence)) = line.split_once('|') else {
            continue;
        };
        let mut words = package.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            continue;
        };
        let version = version.trim_start_matches('v');
        let key = (name.to_owned(), version.to_owned());
        let mut component = json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": [{"expression": licence.replace(" (*)", "").replace('/', " OR ")}],
        });
        if let Some(sum) = checksums.get(&key) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
        }
        components.insert(key, component);
    }
    let count = components.len();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "chappe", "version": dist.version}},
        "components": components.into_values().collect::<Vec<_>>(),
    });
    let path = dist.out.join(format!("chappe-{}.cdx.json", dist.version));
    fs::write(&path, format!("{bill:#}\n"))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("{count} crates"))
}

/// The registry's checksum of each package of a lock file.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key))?;
        Some(
            line.trim_start_matches([' ', '='])
                .trim_matches('"')
                .to_owned(),
        )
    };
    lock.split("[[package]]")
        .filter_map(|block| {
            let key = (value(block, "name")?, value(block, "version")?);
            Some((key, value(block, "checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_read_from_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"libm\"\nversion = \"0.2.1\"\nsource = \"x\"\nchecksum = \"abc\"\n";
        let sums = checksums(lock);
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[&("libm".to_owned(), "0.2.1".to_owned())], "abc");
    }
}
