//! Units of systemd: the same text whether a command prints it or a package carries it.

use std::fmt::Write as _;
use std::path::Path;

use crate::failure::Failure;
use crate::terminal;

/// A daemon of this program as a service.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    pub description: &'static str,
    /// The manual page, without its section: `chappe-link`.
    pub manual: &'static str,
    /// The program and its arguments, [`quoted`] where a path may hold spaces.
    pub start: String,
    /// Opens a TUN device and may send frames without IP. SIGHUP lets it read its files again.
    pub routes: bool,
    /// Starts again after a transfer that failed and one that is done.
    pub always: bool,
    /// A folder that it writes to.
    pub folder: Option<String>,
    /// In a package: it runs as the user `chappe`.
    pub packaged: Option<Packaged>,
}

/// What only a unit in a package has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packaged {
    /// The file that sets the variables in the command line, and an example of them.
    pub environment: Option<[&'static str; 2]>,
    /// A folder below /var/lib.
    pub state: Option<&'static str>,
}

impl Unit {
    /// Prints this unit for the daemon that this program runs with a file: `chappe link run /etc/chappe/link.toml`.
    pub fn print(mut self, command: &str, file: &Path) -> Result<u8, Failure> {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let file = quoted(&file.display().to_string());
        self.start = format!("{} {command} run {file}", program()?);
        terminal::print(&self.text())?;
        Ok(0)
    }

    /// The text of the unit's file.
    pub fn text(&self) -> String {
        let Unit {
            description,
            manual,
            ..
        } = self;
        let mut text = format!(
            "[Unit]\nDescription={description}\nDocumentation=man:{manual}(1)\nWants=network-online.target\n\
             After=network-online.target\n\n[Service]\n"
        );
        for (key, value) in self.settings() {
            let _ = match key {
                "" => writeln!(text, "# {value}"),
                key => writeln!(text, "{key}={value}"),
            };
        }
        text.push_str("\n[Install]\nWantedBy=multi-user.target\n");
        text
    }

    /// The lines of `[Service]`; a comment has no key.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = Vec::new();
        let mut set = |key, value: &str| settings.push((key, value.to_owned()));
        if let Some(packaged) = &self.packaged {
            set("User", "chappe");
            if let Some([file, example]) = packaged.environment {
                set("", example);
                set("EnvironmentFile", file);
            }
        }
        set("ExecStart", &self.start);
        if self.routes {
            set("ExecReload", "/bin/kill -HUP $MAINPID");
        }
        set("Restart", if self.always { "always" } else { "on-failure" });
        set("RestartSec", "2");
        if self.routes {
            set(
                "",
                "The device, its addresses and routes; frames without IP.",
            );
            for key in ["CapabilityBoundingSet", "AmbientCapabilities"] {
                set(key, "CAP_NET_ADMIN CAP_NET_RAW");
            }
            set("DeviceAllow", "/dev/net/tun rw");
            // Services share this folder, which holds their sockets.
            set("RuntimeDirectory", "chappe");
            set("RuntimeDirectoryPreserve", "yes");
        }
        if let Some(folder) = &self.folder {
            set("ReadWritePaths", folder);
        }
        if let Some(state) = self.packaged.and_then(|packaged| packaged.state) {
            set("StateDirectory", state);
        }
        set("NoNewPrivileges", "yes");
        set("ProtectSystem", "strict");
        // The files of a unit that was printed may lie in a home.
        let home = if self.packaged.is_some() {
            "yes"
        } else {
            "read-only"
        };
        set("ProtectHome", home);
        set("PrivateTmp", "yes");
        let families = "AF_INET AF_INET6 AF_NETLINK AF_PACKET AF_UNIX";
        set("RestrictAddressFamilies", families);
        settings
    }
}

/// The whole path of this program, [`quoted`].
pub fn program() -> Result<String, Failure> {
    let path = std::env::current_exe().map_err(|error| {
        Failure::Environment(
            format!("cannot find this program: {error}"),
            "call it by its whole path".into(),
        )
    })?;
    Ok(quoted(&path.display().to_string()))
}

/// A word as systemd reads it: percent and dollar signs doubled, in quotation marks if it has spaces.
pub fn quoted(word: &str) -> String {
    let text = word.replace('%', "%%").replace('$', "$$");
    match text.is_empty() || text.contains([' ', '\t', '"', '\'', '\\', ';']) {
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        assert_eq!(quoted("/usr/bin/chappe"), "/usr/bin/chappe");
        assert_eq!(
            quoted("/etc/my links/100%.toml"),
            "\"/etc/my links/100%%.toml\""
        );
        assert_eq!(quoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
        assert_eq!(quoted("$HOME"), "$$HOME");
        assert_eq!(quoted(""), "\"\"");
    }

    /// Goal: only a daemon that opens a device keeps capabilities, and only it takes SIGHUP.
    #[test]
    fn capabilities_go_with_a_device() {
        let unit = Unit {
            start: "/usr/bin/chappe link run x".into(),
            ..Unit::default()
        };
        assert!(!unit.text().contains("CAP_NET") && !unit.text().contains("ExecReload"));
        let routes = Unit {
            routes: true,
            ..unit
        };
        assert!(
            routes
                .text()
                .contains("AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW\n")
        );
        assert!(
            routes
                .text()
                .contains("ExecReload=/bin/kill -HUP $MAINPID\n")
        );
    }
}
