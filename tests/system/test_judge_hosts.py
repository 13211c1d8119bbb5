"""Judges on two hosts behind TLS: network namespaces with a cable each, and a session in a third."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest
from certificates import write_certificate
from packs import write_pack
from perf.workload import write_heavy_schema
from perf.workload import write_tree as write_large_tree
from scripted import task_row
from sessions import until

_NEEDED = ("ip", "unshare", "hostname")
_CASES = 100
_HOSTS = {"judge-a": "10.77.31.2", "judge-b": "10.77.31.3"}
_SESSION = "10.77.31.1"
_SCHEDULER = f"tls://{_HOSTS['judge-a']}:8786"
_PYTHON = (sys.executable, "-m")

_AGENTS_PROGRAM = """
import subprocess, sys
from provider import Provider
from scripted import answer_turns
with Provider() as provider:
    answer_turns(provider, {name: ["ls", "echo 42 > answer.txt", "cat answer.txt"] for name in "abcd"})
    code = subprocess.call([*sys.argv[1:], f"--helmbench-base-url={provider.url}"])
print("requests", provider.count, flush=True)
sys.exit(code)
"""

_PROGRAM = """
import subprocess, sys
from pathlib import Path
from provider import Provider
with Provider() as provider:
    provider.reply = lambda _request: Path("answer.json").read_text()
    code = subprocess.call([*sys.argv[1:], f"--helmbench-base-url={provider.url}"])
print("requests", provider.count, flush=True)
sys.exit(code)
"""


def _may_make_networks() -> bool:
    if any(shutil.which(name) is None for name in _NEEDED) or os.geteuid() != 0:
        return False
    name = f"hb{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    return made and subprocess.run(["ip", "netns", "del", name], check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None or find_spec("cryptography") is None,
    reason="the extra `dask`, or cryptography, is not installed",
)


@dataclass
class Network:
    """Network namespaces on one bridge; each is a host with a name of its own.

    Args:
        prefix: Of their names.
        environ: Of what runs in them.
        processes: That run in them, by host.
    """

    prefix: str
    environ: Mapping[str, str]
    processes: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict)

    def command(self, host: str, *command: str) -> list[str]:
        """Return a command as it is run on a host."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', host]
        return ["ip", "netns", "exec", f"{self.prefix}{host}", *named, *command]

    def run(self, host: str, *command: str, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
        """Run a command on a host, and return its exit code and what it said."""
        done = subprocess.run(
            self.command(host, *command),
            cwd=cwd,
            env={**self.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return f"{done.returncode}\n{done.stdout}"

    def start(self, host: str, *command: str, cwd: Path) -> None:
        """Start a command on a host; it ends with the network."""
        with (cwd / f"{host}.log").open("ab") as log:
            process = subprocess.Popen(
                self.command(host, *command), cwd=cwd, env=dict(self.environ), stdout=log, stderr=log
            )
        self.processes.setdefault(host, []).append(process)

    def cpu_s(self, host: str) -> float:
        """Return the CPU seconds of the processes of a host so far."""
        ticks = os.sysconf("SC_CLK_TCK")
        stats = (Path(f"/proc/{process.pid}/stat").read_text() for process in self.processes[host])
        return sum(sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in stats) / ticks


@contextmanager
def _network(environ: Mapping[str, str]) -> Iterator[Network]:
    prefix = f"hb{os.getpid()}"
    network = Network(prefix, environ)
    session = f"{prefix}session"
    with ExitStack() as stack:

        def ip(*arguments: str) -> None:
            subprocess.run(["ip", *arguments], check=True)

        for host in ("session", *_HOSTS):
            ip("netns", "add", f"{prefix}{host}")
            stack.callback(ip, "netns", "del", f"{prefix}{host}")
            ip("-n", f"{prefix}{host}", "link", "set", "lo", "up")
        ip("-n", session, "link", "add", "bridge", "type", "bridge")
        ip("-n", session, "addr", "add", f"{_SESSION}/24", "dev", "bridge")
        ip("-n", session, "link", "set", "bridge", "up")
        for number, (host, address) in enumerate(_HOSTS.items()):
            there = f"{prefix}{host}"
            ip("-n", session, "link", "add", f"to{number}", "type", "veth", "peer", "eth0", "netns", there)
            ip("-n", session, "link", "set", f"to{number}", "master", "bridge", "up")
            ip("-n", there, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", there, "link", "set", "eth0", "up")
        try:
            yield network
        finally:
            for processes in network.processes.values():
                for process in processes:
                    process.kill()
                    process.wait()


def _tls(folder: Path) -> dict[str, str]:
    """Write a certificate that signs itself, and return Dask's configuration with it."""
    cert_file, key_file = write_certificate(folder)
    found = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(cert_file)}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        found[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = str(cert_file)
        found[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = str(key_file)
    return {**found, "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}


@contextmanager
def _cluster(folder: Path) -> Iterator[Network]:
    """Start a scheduler on the first host and a worker on both, behind TLS."""
    environ = {**os.environ, **_tls(folder / "tls"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with _network(environ) as network:
        listen = ("--host", _HOSTS["judge-a"], "--protocol", "tls", "--no-dashboard")
        network.start("judge-a", *_PYTHON, "distributed.cli.dask_scheduler", *listen, cwd=folder)
        (of_scheduler,) = network.processes.pop("judge-a")
        for host in _HOSTS:
            options = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(folder))
            network.start(host, *_PYTHON, "distributed.cli.dask_worker", _SCHEDULER, *options, cwd=folder)
        network.processes["session"] = [of_scheduler]
        logs = [folder / f"{host}.log" for host in _HOSTS]
        until(lambda: all("Registered to" in log.read_text() for log in logs), "both workers are there")
        yield network


def test_replies_are_judged_on_two_hosts_behind_tls(tmp_path: Path) -> None:
    if not _may_make_networks():
        pytest.skip("network namespaces need root, iproute2 and util-linux")
    write_large_tree(tmp_path, _CASES)
    write_heavy_schema(tmp_path)
    with _cluster(tmp_path) as network, ThreadPoolExecutor() as beside:
        check = ("pytest_helmbench", "judges", "check", f"dask:{_SCHEDULER}")
        told = network.run("session", *_PYTHON, *check, "--json", cwd=tmp_path)
        code, _, said = told.partition("\n")
        assert code == "0", told
        assert {judge["host"] for judge in json.loads(said)["judges"]} == set(_HOSTS)
        stranger = {**_tls(tmp_path / "other"), "PYTHONWARNINGS": "ignore"}
        refusing = beside.submit(network.run, "session", *_PYTHON, *check, cwd=tmp_path, environ=stranger)

        session = (*_PYTHON, "pytest", "benchmark", "-q", "-n0", "--helmbench-model=test/model")
        chosen = (f"--helmbench-judges=dask:{_SCHEDULER}", "--helmbench-concurrency=32")
        # The session judges itself until its judges are there, which on a quick machine may be all of it.
        for _ in range(10):
            before = {host: network.cpu_s(host) for host in _HOSTS}
            ran = network.run("session", sys.executable, "-c", _PROGRAM, *session, *chosen, cwd=tmp_path)
            assert f"requests {_CASES}" in ran, ran
            assert "gone" not in ran, ran
            worked = {host: network.cpu_s(host) - before[host] for host in _HOSTS}
            if min(worked.values()) > 0.2:
                break
        refused = refusing.result()
        assert refused.startswith("2\n"), refused
        assert "no Dask scheduler answers" in refused
    assert min(worked.values()) > 0.2, (worked, ran)


def test_agents_work_on_two_hosts_that_reach_neither_the_session_nor_its_model(tmp_path: Path) -> None:
    if not _may_make_networks() or shutil.which("bwrap") is None:
        pytest.skip("network namespaces need root, iproute2 and util-linux; the sandbox needs bubblewrap")
    write_pack(tmp_path / "benchmark", [task_row(name) for name in "abcd"])
    with _cluster(tmp_path) as network:
        before = {host: network.cpu_s(host) for host in _HOSTS}
        session = (*_PYTHON, "pytest", "benchmark", "-q", "-n0", "--helmbench-model=test/model")
        chosen = (f"--helmbench-judges=dask:{_SCHEDULER}", "--helmbench-sandbox=bwrap")
        ran = network.run("session", sys.executable, "-c", _AGENTS_PROGRAM, *session, *chosen, cwd=tmp_path)
        worked = {host: network.cpu_s(host) - before[host] for host in _HOSTS}
    assert min(worked.values()) > 0.2, (worked, ran)
    assert ran.startswith("0\n"), ran
    assert "requests 16" in ran, ran
    assert "on this machine" not in ran
