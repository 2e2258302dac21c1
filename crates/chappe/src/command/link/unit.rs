//! `chappe link unit`: a unit for systemd.

use std::path::Path;

use crate::failure::Failure;
use crate::terminal;

/// Prints a unit that runs a configuration.
pub fn print(file: &Path) -> Result<u8, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::Environment(
            format!("cannot find this program: {error}"),
            "call it by its whole path".into(),
        )
    })?;
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    terminal::print(&text(&program, &file))?;
    Ok(0)
}

fn text(program: &Path, file: &Path) -> String {
    let (program, file) = (quoted(program), quoted(file));
    format!(
        "# chappe link unit > /etc/systemd/system/chappe-link.service; systemctl enable --now chappe-link
[Unit]
Description=Chappe link: a tunnel that hides packet loss
Documentation=man:systemd.exec(5)
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={program} link run {file}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
# The device, its addresses and routes; frames without IP.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW
AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW
RuntimeDirectory=chappe
RuntimeDirectoryPreserve=yes
DeviceAllow=/dev/net/tun rw
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_PACKET AF_UNIX

[Install]
WantedBy=multi-user.target
"
    )
}

/// A path as systemd reads it: in quotation marks if it has spaces, with percent signs doubled.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string().replace('%', "%%");
    match text.contains([' ', '"', '\\']) {
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_names_program_and_file() {
        let text = text(
            Path::new("/usr/bin/chappe"),
            Path::new("/etc/my links/100%.toml"),
        );
        assert!(
            text.contains("\nExecStart=/usr/bin/chappe link run \"/etc/my links/100%%.toml\"\n")
        );
    }
}
