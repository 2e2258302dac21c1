//! `chappe try` as users run it: a command twice over one lossy path. Speed is not tested.
#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::Value;

use crate::scratch::Scratch;

/// Runs it; `None` if the environment forbids namespaces or TUN devices, which it reports with exit code 4.
fn chappe_try(name: &str, arguments: &[&str]) -> Option<(i32, String, String)> {
    let place = Scratch::new(name);
    let output = Command::new(env!("CARGO_BIN_EXE_chappe"))
        .arg("try")
        .args(arguments)
        .env("XDG_RUNTIME_DIR", &place.0)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    let code = output.status.code().unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    if code == 4 {
        assert!(
            err.starts_with("chappe: ") && err.lines().count() >= 2,
            "{err}"
        );
        chappe_testkit::skip(err);
        return None;
    }
    let left = std::fs::read_dir(place.0.join("chappe-try"));
    assert_eq!(left.map_or(0, Iterator::count), 0, "files were left behind");
    Some((code, out, err))
}

/// Goal: the download arrives whole both ways, the same frames are lost, and the link repairs them: no packet inside is lost.
#[test]
fn a_download_runs_plainly_and_through_the_link() {
    let options = [
        "--over",
        "4 Mbit/s, 5 ms, 8 % loss",
        "--size",
        "300 kB",
        "--json",
    ];
    let Some((code, out, err)) = chappe_try("try-download", &options) else {
        return;
    };
    assert_eq!(code, 0, "{out}{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["served_bytes"], 300_000);
    // 4 Mbit/s less the losses.
    assert_eq!(report["bound_bps"], 3_680_000.0);
    let runs = report["runs"].as_array().unwrap();
    assert_eq!([&runs[0]["way"], &runs[1]["way"]], ["plain", "link"]);
    for run in runs {
        assert_eq!(run["exit_code"], 0);
        assert!(run["received_bytes"].as_u64().unwrap() > 300_000, "{run}");
        let air = &run["air"][1];
        let share = air["frames_lost"].as_f64().unwrap() / air["frames"].as_f64().unwrap();
        assert!((0.03..0.15).contains(&share), "{run}");
    }
}

/// Goal: the command sees the host `far` by its name in both runs, at different addresses, and talks to its web server.
#[test]
fn a_command_finds_the_other_host_by_its_name() {
    let options = [
        "--over",
        "wifi 10 km, 5 % loss",
        "--",
        "sh",
        "-c",
        "grep far /etc/hosts; exec 2>&1; ip -4 route get \"$(sed -n 's/ far$//p' /etc/hosts)\" || true",
    ];
    let Some((code, out, err)) = chappe_try("try-name", &options) else {
        return;
    };
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("10.17.0.2 far") && out.contains("10.18.0.2 far"),
        "{out}"
    );
    assert!(
        err.contains("--- plain:") && err.contains("--- chappe link:"),
        "{err}"
    );
    assert!(!out.contains("unreachable"), "{out}");
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let options = ["--over", "path", "--quiet", "--", "sh", "-c", "exit 7"];
    let Some((code, out, err)) = chappe_try("try-code", &options) else {
        return;
    };
    assert_eq!(code, 7, "{err}");
    assert!(out.contains("plain (exit code 7)"), "{out}");
    assert!(
        !out.contains("times as"),
        "a failed run has no speed: {out}"
    );
}

/// A root that holds this program, what it is linked with, and nothing in /etc: `$1` is where, `$2` the program, `$3` how /etc is to be made.
const EMPTY_ROOT: &str = r#"
root=$1 program=$2 etc=$3
shift 3
mount -t tmpfs root "$root"
cd "$root"
mkdir proc dev tmp usr
for folder in proc dev usr; do mount --rbind "/$folder" "$folder"; done
for folder in bin lib lib64; do
	if [ -L "/$folder" ]; then cp -P "/$folder" .; elif [ -d "/$folder" ]; then mkdir "$folder"; mount --rbind "/$folder" "$folder"; fi
done
$etc
cp "$program" chappe
unset XDG_RUNTIME_DIR
exec chroot . /chappe try "$@"
"#;

/// Runs it in such a root; `None` where that cannot be made.
fn in_an_empty_root(name: &str, etc: &str, arguments: &[&str]) -> Option<(i32, String, String)> {
    let root = Scratch::new(name);
    let shell = |script: &str, arguments: &[&str]| {
        Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-ec",
                script,
                "sh",
            ])
            .args(arguments)
            .env("NO_COLOR", "1")
            .output()
    };
    let place = root.0.to_str().unwrap();
    let made = shell(r#"mount -t tmpfs root "$1""#, &[place]);
    if !made.is_ok_and(|made| made.status.success()) {
        chappe_testkit::skip("`unshare --user --map-root-user --mount` cannot mount here");
        return None;
    }
    let all = [&[place, env!("CARGO_BIN_EXE_chappe"), etc], arguments].concat();
    let output = shell(EMPTY_ROOT, &all).unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    let forbidden = ["create user and network namespaces", "/dev/net/tun"];
    if output.status.code() == Some(4) && forbidden.iter().any(|what| err.contains(what)) {
        chappe_testkit::skip(err);
        return None;
    }
    Some((output.status.code().unwrap(), out, err))
}

/// Goal: a system without `/etc/hosts`, such as a container's empty one, runs it as it is; commands find the other host by its name.
#[test]
fn a_system_without_names_gets_them() {
    let path = ["--over", "4 Mbit/s, 5 ms", "--size", "100 kB"];
    let command = [&path[..], &["--", "sh", "-c", "cat /etc/hosts; ls /etc"]].concat();
    let etc = "mkdir etc && touch etc/other";
    let Some((code, out, err)) = in_an_empty_root("try-names", etc, &command) else {
        return;
    };
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("10.17.0.2 far") && out.contains("10.18.0.2 far"),
        "{out}"
    );
    assert_eq!(out.matches("\nother\n").count(), 2, "{out}");
}

/// Goal: without `/etc` the download runs, which needs no names; a command is refused with what to do, before anything runs.
#[test]
fn a_system_without_etc_runs_the_download() {
    let path = ["--over", "4 Mbit/s, 5 ms", "--size", "100 kB"];
    let Some((code, out, err)) = in_an_empty_root("try-no-etc", ":", &path) else {
        return;
    };
    assert_eq!(code, 0, "{out}{err}");
    let command = [&path[..], &["--", "true"]].concat();
    let Some((code, out, err)) = in_an_empty_root("try-no-etc-2", ":", &command) else {
        return;
    };
    assert_eq!((code, &*out), (4, ""), "{err}");
    assert!(err.contains("mkdir -p /etc && touch /etc/hosts"), "{err}");
}
