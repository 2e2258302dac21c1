//! The Debian packages that some steps need.

use std::path::Path;
use std::process::Command;

use crate::process;
use crate::report::Outcome;

/// A program that a step runs, and the package that brings it.
struct Tool {
    program: &'static str,
    package: &'static str,
    used_for: &'static str,
}

/// Everything beyond a Rust toolchain with its linker, and git.
const TOOLS: &[Tool] = &[
    Tool {
        program: "tshark",
        package: "tshark",
        used_for: "decoding our captures with Wireshark",
    },
    Tool {
        program: "qemu-system-arm",
        package: "qemu-system-arm",
        used_for: "running firmware",
    },
    Tool {
        program: "iperf3",
        package: "iperf3",
        used_for: "kernel TCP over emulated links",
    },
    Tool {
        program: "babeld",
        package: "babeld",
        used_for: "another router beside the mesh",
    },
    Tool {
        program: "ping",
        package: "iputils-ping",
        used_for: "packets over emulated links",
    },
    Tool {
        program: "chromium",
        package: "chromium",
        used_for: "driving that page",
    },
    Tool {
        program: "curl",
        package: "curl",
        used_for: "kernel TCP against simulated motes",
    },
];

/// Installs the packages whose programs are missing, where that is allowed (`may_install`) and possible (root,
/// apt-get). Otherwise reports what is missing; the steps that need a program skip themselves.
pub fn install(root: &Path, may_install: bool) -> Outcome {
    let missing: Vec<&Tool> = TOOLS
        .iter()
        .filter(|t| !process::exists(t.program))
        .collect();
    if missing.is_empty() {
        return Outcome::Passed("all installed".to_owned());
    }
    let packages: Vec<&str> = missing.iter().map(|t| t.package).collect();
    let wanted: Vec<String> = missing
        .iter()
        .map(|t| format!("{} ({})", t.package, t.used_for))
        .collect();
    let wanted = wanted.join(", ");
    if !may_install {
        return Outcome::Skipped(format!(
            "missing: {wanted}. `cargo xtask test --install` as root installs them"
        ));
    }
    if !can_install(root) {
        return Outcome::Skipped(format!("missing: {wanted}. Needs root and apt-get"));
    }
    match apt_get(&["update"]).and_then(|()| {
        let mut args = vec!["install", "--yes", "--no-install-recommends"];
        args.extend(&packages);
        apt_get(&args)
    }) {
        Ok(()) => Outcome::Passed(format!("installed {}", packages.join(" "))),
        // A mirror that is away is not a defect of the code under test.
        Err(why) => Outcome::Skipped(format!("missing: {wanted}. apt-get: {why}")),
    }
}

/// Whether packages can be installed: by root, with apt-get.
pub fn can_install(root: &Path) -> bool {
    let is_root = process::first_line("id", &["-u"], root).as_deref() == Some("0");
    is_root && process::exists("apt-get")
}

/// Installs one package with what it needs.
pub fn install_package(package: &str) -> Result<(), String> {
    apt_get(&["update"])?;
    apt_get(&["install", "--yes", "--no-install-recommends", package])
}

fn apt_get(args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command
        .args(["-qq", "-o", "Acquire::Retries=2"])
        .args(["-o", "Acquire::http::Timeout=30"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive");
    process::show(&mut command)
}
