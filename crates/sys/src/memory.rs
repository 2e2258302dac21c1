//! How much memory this process may have.

use std::path::Path;

/// Octets of memory that this process may use: the machine's, or less if a control group (cgroups(7), version 2) limits it. `None` if
/// neither can be read.
pub fn memory() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(of_machine);
    let group = std::fs::read_to_string("/proc/self/cgroup").ok();
    let limits = group.iter().flat_map(|text| files(text));
    let limits = limits.filter_map(|file| limit(&std::fs::read_to_string(file).ok()?));
    limits.chain(machine).min()
}

/// Octets by the line `MemTotal` of /proc/meminfo (proc(5)), whose unit is 1024 octets.
fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?;
    kib.checked_mul(1024)
}

/// The files of the limits of a group and of all above it, from /proc/self/cgroup.
fn files(text: &str) -> Vec<std::path::PathBuf> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"));
    let above = path
        .into_iter()
        .flat_map(|path| Path::new(path).ancestors());
    let root = Path::new("/sys/fs/cgroup");
    above
        .map(|group| root.join(group).join("memory.max"))
        .collect()
}

/// The limit in a file `memory.max`: `None` if it is "max".
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let text = "MemTotal:       24684336 kB\nMemFree:        22263872 kB\n";
        assert_eq!(of_machine(text), Some(24_684_336 * 1024));
        for wrong in [
            "",
            "MemTotal: kB",
            "MemTotal: 5 MB",
            "MemTotal: 99999999999999999999 kB",
        ] {
            assert_eq!(of_machine(wrong), None, "{wrong}");
        }
        assert_eq!(
            (limit("67108864\n"), limit("max\n")),
            (Some(67_108_864), None)
        );
        let named: Vec<_> = files("1:cpu:/x\n0::/system.slice/a.service\n");
        let named: Vec<&str> = named.iter().filter_map(|file| file.to_str()).collect();
        let root = "/sys/fs/cgroup";
        let expected = ["/system.slice/a.service", "/system.slice", ""];
        let expected = expected.map(|group| format!("{root}{group}/memory.max"));
        assert_eq!(named, expected);
        assert_eq!(files("1:cpu:/x\n"), Vec::<std::path::PathBuf>::new());
        assert!(memory().is_some_and(|octets| octets > 1 << 20));
    }
}
