//! Units of systemd, judged by systemd itself.

use std::process::Command;

use crate::program::{chappe, text};
use crate::scratch::Scratch;

/// `systemd-analyze verify` finds nothing to say about the units that the commands print.
#[test]
fn units_are_right() {
    let verify = Command::new("systemd-analyze").arg("--version").output();
    if verify.is_err() {
        eprintln!("skipped: needs systemd-analyze");
        return;
    }
    let scratch = Scratch::new("units");
    let receive = "cast unit receive /srv/my files --keep -i wlan0 --group /etc/lab.group --key /etc/hill.key";
    let receive: Vec<&str> = receive.split(' ').collect();
    // A folder with a space in its name.
    let joined = [receive[3], receive[4]].join(" ");
    let receive = [&receive[..3], &[&*joined], &receive[5..]].concat();
    let commands: [(&str, &[&str]); 3] = [
        ("link", &["link", "unit", "/etc/my links/100%.toml"]),
        ("mesh", &["mesh", "unit"]),
        ("cast", &receive),
    ];
    for (name, arguments) in commands {
        let output = chappe(arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let unit = text(&output.stdout);
        let path = scratch.path(&format!("{name}.service"));
        std::fs::write(&path, &unit).unwrap();
        let judged = Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(&path)
            .output()
            .unwrap();
        let remarks = text(&judged.stderr);
        assert!(
            judged.status.success() && !remarks.contains(name),
            "{remarks}\n{unit}"
        );
    }
}

/// A packaged router takes its newer list of members on `systemctl reload`, and every unit of the package runs as the user `chappe`.
#[test]
fn a_package_has_the_units_of_every_daemon() {
    let scratch = Scratch::new("packaged-units");
    let output = chappe(&["generate", "units", &scratch.0.display().to_string()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for name in ["chappe-cast@", "chappe-link@", "chappe-mesh"] {
        let path = scratch.path(&format!("{name}.service"));
        let unit = std::fs::read_to_string(path).unwrap();
        assert!(
            unit.contains("\nUser=chappe\n") && unit.contains("\nProtectSystem=strict\n"),
            "{unit}"
        );
        let reloads = unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n");
        assert_eq!(reloads, name != "chappe-cast@", "{unit}");
    }
}
