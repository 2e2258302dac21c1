//! The package is installed, started, upgraded, removed and purged in a copy of this machine's root: an overlay in a mount namespace of its
//! own, which vanishes with the last process in it.

use std::process::Command;
use std::time::Duration;

use super::{Dist, TARGETS, deb};
use crate::process;
use crate::report::Outcome;

const LIMIT: Duration = Duration::from_secs(1800);

/// Run in the copy. `$1` and `$2` are the package and a later version of it. Each line that fails ends it.
const TRIAL: &str = r#"
set -eu
say() { echo "$*"; }
dpkg --install "$1" >/dev/null
chappe --version
getent passwd chappe >/dev/null
test "$(stat -c '%U %a' /etc/chappe)" = "chappe 750"
zcat /usr/share/man/man1/chappe-link-run.1.gz | grep -q 'TUN\|link'
grep -q complete /usr/share/bash-completion/completions/chappe
for unit in chappe-link@ chappe-cast@ chappe-mesh; do
	test -f /usr/lib/systemd/system/$unit.service
	if command -v systemd-analyze >/dev/null; then
		systemd-analyze verify --man=no /usr/lib/systemd/system/$unit.service
	fi
done
say installed

# Started as the unit starts it: as its user, with its command line.
cd /etc/chappe
runuser -u chappe -- chappe cast keygen lab hill town >/dev/null
echo 'OPTIONS="--group /etc/chappe/lab.group --key /etc/chappe/hill.key --interface lo --metrics 127.0.0.1:9794"' > images.cast
command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/chappe-cast@.service | sed 's/%i/images/g')
install -d -o chappe /var/lib/chappe/images
. ./images.cast
ip link set lo up multicast on || true
runuser -u chappe -- sh -c "exec $(echo "$command" | sed "s|\$OPTIONS|$OPTIONS|")" & service=$!
until curl -s http://127.0.0.1:9794/metrics | grep -q '^chappe_cast'; do
	kill -0 $service
	sleep 0.3
done
kill $service
wait $service || true
say started

dpkg --install "$2" >/dev/null
test "$(dpkg-query -W -f '${Version}' chappe)" = "$(dpkg-deb -f "$2" Version)"
test -f /etc/chappe/hill.key
say upgraded
dpkg --remove chappe >/dev/null
! test -e /usr/bin/chappe
test -f /etc/chappe/hill.key
say removed
dpkg --purge chappe >/dev/null
! test -e /etc/chappe
! getent passwd chappe
say purged
"#;

/// Makes the copy: `$1` is the trial, then its arguments.
const COPY: &str = r#"
set -e
mount -t tmpfs copy /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount -t proc proc /mnt/root/proc
mount -t tmpfs run /mnt/root/run
mount --rbind /dev /mnt/root/dev
# The checkout may be on a file system of its own, which the overlay does not show.
cp "$2" /mnt/root/first.deb
cp "$3" /mnt/root/later.deb
exec chroot /mnt/root sh -c "$1" trial /first.deb /later.deb
"#;

pub fn try_package(dist: &Dist<'_>) -> Outcome {
    let package = deb::path(dist, &dist.version);
    if !package.is_file() {
        return Outcome::Skipped("there is no package".into());
    }
    for program in ["dpkg", "unshare", "runuser", "useradd", "curl", "ip"] {
        if !process::exists(program) {
            return Outcome::Skipped(format!("needs {program}"));
        }
    }
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "--net", "--pid", "--fork", "sh", "-c"]);
    probe.arg("mount -t tmpfs copy /mnt && mkdir /mnt/u /mnt/w /mnt/r && mount -t overlay o -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r");
    if process::take(&mut probe, LIMIT).is_err() {
        return Outcome::Skipped("needs root and overlay file systems".into());
    }
    let done = || -> Result<String, String> {
        let later = format!("{}+later", dist.version);
        deb::build(dist, &later, &dist.path_of("chappe", TARGETS[0]))?;
        let later = deb::path(dist, &later);
        let mut unshare = Command::new("unshare");
        unshare
            .args([
                "--mount", "--net", "--pid", "--fork", "sh", "-c", COPY, "copy", TRIAL,
            ])
            .args([&package, &later]);
        let said = process::take(&mut unshare, LIMIT);
        let _ = std::fs::remove_file(later);
        let lines: Vec<&str> = said.as_deref().unwrap_or_default().lines().collect();
        match &said {
            Ok(_) => Ok(lines.join(", ")),
            Err(why) => Err(why.clone()),
        }
    };
    Outcome::from(done())
}
