//! What this machine can run, found out without changing anything on it.

use std::path::Path;

use chappe_coding::Kernel;
use serde::Serialize;

use crate::provenance::processor;

/// One thing that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// Whether it is there.
    pub ok: bool,
    /// What was found, in a few words.
    pub found: String,
    /// What to do if it is missing; empty if nothing is to be done.
    pub todo: &'static str,
}

/// Looks at the machine.
pub fn examine() -> Vec<Finding> {
    vec![
        cores(),
        kernel(),
        user_namespaces(),
        tun(),
        program("tshark", "shows captures", TSHARK),
    ]
}

const TSHARK: &str =
    "install tshark or Wireshark to read what --pcap writes: apt-get install tshark";

fn cores() -> Finding {
    let cores = crate::run::seeds::cores();
    let found = format!("{cores} ({})", processor());
    Finding {
        what: "cores",
        ok: true,
        found,
        todo: "",
    }
}

/// The instructions that multiply in GF(2^8), fastest first, as the coding crate chooses them.
fn kernel() -> Finding {
    let kernel = Kernel::best();
    let (name, portable) = (kernel.name(), kernel == Kernel::PORTABLE);
    let found = if portable {
        "none: tables are used".to_string()
    } else {
        name.to_string()
    };
    let todo = "coding works without vector instructions, about twenty times slower; radio speeds do not need them";
    Finding {
        what: "vector instructions for coding",
        ok: !portable,
        found,
        todo,
    }
}

fn user_namespaces() -> Finding {
    let number = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let exists = Path::new("/proc/self/ns/user").exists();
    let most = number("/proc/sys/user/max_user_namespaces").unwrap_or(0);
    let debian = number("/proc/sys/kernel/unprivileged_userns_clone").unwrap_or(1);
    let apparmor = number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").unwrap_or(0);
    let ok = exists && most > 0 && debian == 1 && apparmor == 0;
    let found = match ok {
        true => format!("allowed, up to {most}"),
        false if !exists => "this kernel has none".into(),
        false => "switched off".into(),
    };
    Finding {
        what: "user namespaces",
        ok,
        found,
        todo: "emulated networks need them: sysctl user.max_user_namespaces=10000, and where they exist \
               kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0",
    }
}

fn tun() -> Finding {
    let path = Path::new("/dev/net/tun");
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path);
    let found = match &opened {
        Ok(_) => "can be opened".to_string(),
        Err(error) => error.to_string(),
    };
    let todo =
        "TUN interfaces need it: modprobe tun, and in a container pass the device /dev/net/tun";
    Finding {
        what: "/dev/net/tun",
        ok: opened.is_ok(),
        found,
        todo,
    }
}

fn program(name: &'static str, does: &str, todo: &'static str) -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    Finding {
        what: name,
        ok: found.is_some(),
        found: found.map_or_else(
            || format!("not installed ({does})"),
            |path| path.display().to_string(),
        ),
        todo,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_what_to_do() {
        for finding in examine() {
            assert!(finding.ok || !finding.todo.is_empty(), "{finding:?}");
            assert!(!finding.found.is_empty(), "{finding:?}");
        }
    }
}
