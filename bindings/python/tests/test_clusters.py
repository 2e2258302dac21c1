"""Goal: a sweep over workers that SSH or Slurm starts has the rows of a local one octet for octet, also when a job is cancelled.

Servers of one's own are started for the tests, on this machine's own address and as this user. Where their programs are missing the tests
say what to install: `apt-get install openssh-server slurm-wlm`.
"""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import chappe
import pytest
from polars.testing import assert_frame_equal

distributed = pytest.importorskip("distributed")

#: Three variants, four powers.
GRID = {"protocol.variant": ["paper", "more", "improved"], "radio.tx_power": "11..20 dBm/3"}
#: Minutes that a server may take on a busy machine.
PATIENCE = 180


def needed(*names):
    """The paths of programs; skips the test if one is missing."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"])
    found = [shutil.which(name, path=path) for name in names]
    for name, program in zip(names, found, strict=True):
        if program is None:
            pytest.skip(f"no {name} here: apt-get install openssh-server slurm-wlm")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, ready, server):
    """Waits for a server; fails if it ends."""
    begun = time.monotonic()
    while not ready():
        assert server.poll() is None, f"{what} ended with {server.returncode}"
        assert time.monotonic() - begun < PATIENCE, f"{what} does not answer"
        time.sleep(0.05)


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def running(*command, **options):
    with subprocess.Popen([str(part) for part in command], **options) as server:
        try:
            yield server
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture
def ssh(tmp_path):
    """An SSH server, as the options with which `SSHCluster` connects to it."""
    pytest.importorskip("asyncssh")
    sshd, keygen = needed("sshd", "ssh-keygen")
    for name in ["host", "user"]:
        new = [keygen, "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name]
        subprocess.run(new, check=True)
    if os.getuid() == 0:
        # Where the server separates its privileges; the system makes it when it starts one.
        Path("/run/sshd").mkdir(exist_ok=True)
    port = free_port()
    settings = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": tmp_path / "user.pub",
        "PidFile": tmp_path / "sshd.pid",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
    }
    config = tmp_path / "sshd_config"
    config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    log = (tmp_path / "sshd.log").open("w")
    with log, running(sshd, "-D", "-e", "-f", config, stderr=log) as server:
        until("sshd", lambda: listens(port), server)
        yield {
            "port": port,
            "username": getpass.getuser(),
            "client_keys": [str(tmp_path / "user")],
            "known_hosts": None,
        }


def test_rows_over_ssh_equal_those_of_a_local_sweep(small, ssh):
    scenario, seeds = chappe.Scenario.read(small), range(1, 21)
    # The scheduler, then two workers.
    hosts = ["127.0.0.1"] * 3
    cluster = distributed.SSHCluster(
        hosts,
        connect_options=ssh,
        worker_options={"nthreads": 1},
        scheduler_options={"port": 0, "dashboard": False},
        remote_python=sys.executable,
    )
    with cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        swept = chappe.sweep(scenario, GRID, seeds=seeds, client=client)
    assert len(swept) == 3 * 4 * 20 * 3
    assert_frame_equal(swept, chappe.sweep(scenario, GRID, seeds=seeds), check_exact=True)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A Slurm of one node: `sbatch` and its kin find it."""
    pytest.importorskip("dask_jobqueue")
    munged, control, daemon, sinfo, *_ = needed(
        "munged", "slurmctld", "slurmd", "sinfo", "sbatch", "squeue", "scancel"
    )
    if os.getuid() != 0:
        pytest.skip("slurmd starts jobs as other users, so it must be root")
    # Munge refuses folders that others may write to, and /tmp is one.
    base = Path("/run/chappe-test-slurm")
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(mode=0o755)
    (base / "key").write_bytes(os.urandom(128))
    (base / "key").chmod(0o600)
    for folder in ["state", "spool"]:
        (tmp_path / folder).mkdir()
    host, ports = socket.gethostname(), [free_port(), free_port()]
    config = tmp_path / "slurm.conf"
    config.write_text(
        f"""
ClusterName=chappe
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={base}/socket
CredType=cred/munge
StateSaveLocation={tmp_path}/state
SlurmdSpoolDir={tmp_path}/spool
SlurmctldPidFile={tmp_path}/slurmctld.pid
SlurmdPidFile={tmp_path}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
    )
    monkeypatch.setenv("SLURM_CONF", str(config))
    monkeypatch.setenv("PATH", f"{Path(sinfo).parent}:{os.environ['PATH']}")
    files = [f"--{name}-file={base}/{name}" for name in ["key", "log", "pid", "seed"]]
    with contextlib.ExitStack() as servers:
        servers.callback(shutil.rmtree, base, ignore_errors=True)
        munge = servers.enter_context(
            running(munged, "--foreground", f"--socket={base}/socket", *files)
        )
        until("munged", (base / "socket").exists, munge)
        for program in [control, daemon]:
            log = servers.enter_context((tmp_path / f"{Path(program).name}.log").open("w"))
            server = servers.enter_context(running(program, "-D", stdout=log, stderr=log))
        idle = ["sinfo", "--noheader", "--format=%t"]
        until(
            "slurmd",
            lambda: "idle" in subprocess.run(idle, capture_output=True, text=True, check=False).stdout,
            server,
        )
        yield


def cancel(job, kept):
    """Cancels a job of Slurm in the middle: when some runs are made and many are not."""
    while not any(file.stat().st_size for file in kept.glob("journal*")):
        time.sleep(0.01)
    subprocess.run(["scancel", "--signal=KILL", job], check=True)


def test_rows_over_slurm_equal_those_of_a_local_sweep(small, slurm, tmp_path):
    import dask_jobqueue

    scenario, seeds, kept = chappe.Scenario.read(small), range(1, 21), tmp_path / "runs"
    cluster = dask_jobqueue.SLURMCluster(
        queue="main",
        cores=1,
        processes=1,
        memory="500 MB",
        walltime="00:30:00",
        interface="lo",
        python=sys.executable,
        log_directory=str(tmp_path),
        local_directory=str(tmp_path),
        scheduler_options={"dashboard": False},
    )
    with cluster, distributed.Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=PATIENCE)
        job = next(iter(cluster.workers.values())).job_id
        thread = threading.Thread(target=cancel, args=[job, kept])
        thread.start()
        swept = chappe.sweep(scenario, GRID, seeds=seeds, out=kept, client=client)
        thread.join()
    assert len(swept) == 3 * 4 * 20 * 3
    assert_frame_equal(swept, chappe.sweep(scenario, GRID, seeds=seeds), check_exact=True)
