"""Attacks through sockets: families that lead to other machines and drivers, servers of this machine, names."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from engines import Running
from waiting import PATIENCE_S

_FAMILIES = (
    "import socket\n"
    "for family in range(0, 64):\n"
    "    for kind in (1, 2, 3, 4, 5, 10):\n"
    "        for protocol in (0, 1, 6, 17, 58, 132, 136, 255, 262):\n"
    "            try: socket.socket(family, kind, protocol); print(family, kind, protocol)\n"
    "            except (OSError, OverflowError): pass\n"
)


def test_only_plain_sockets_can_be_made(bwrap: Running) -> None:
    """Closed with all others: vsock (40), alg (38), netlink (16), packet (17), can (29), xdp (44); SCTP and MPTCP."""
    box = bwrap.open()
    made = bwrap.run(box, box.python, "-c", _FAMILIES).stdout.decode().split("\n")[:-1]
    assert {line.split()[0] for line in made} <= {"1", "2", "10"}
    assert {tuple(line.split()[1:]) for line in made} <= {
        (kind, protocol) for kind in ("1", "2", "5") for protocol in ("0", "1", "6", "17")
    }
    assert {"1 1 0", "2 1 0", "2 2 17", "10 1 6"} <= set(made)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[int, str, Path]]:
    """A server of this machine by TCP, by an abstract name, and by a path."""
    name, path = f"helmbench-{os.getpid()}", tmp_path / "socket"
    tcp, abstract, bound = socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    tcp.bind(("0.0.0.0", 0))
    abstract.bind(f"\0{name}")
    bound.bind(str(path))
    with closing(tcp), closing(abstract), closing(bound):
        for server in (tcp, abstract, bound):
            server.listen()
        yield tcp.getsockname()[1], name, path


def test_servers_of_this_machine_are_out_of_reach(bwrap: Running, servers: tuple[int, str, Path]) -> None:
    port, name, path = servers
    own = "127.0.1.1"
    with suppress(OSError):  # some machines do not know their own name
        own = socket.gethostbyname(socket.gethostname())
    code = (
        "import socket\n"
        "def reach(family, address):\n"
        "    try:\n"
        "        with socket.socket(family) as one:\n"
        "            one.settimeout(2); one.connect(address); print('reached', address)\n"
        "    except OSError: pass\n"
        f"for host in ('127.0.0.1', 'localhost', {own!r}, '169.254.169.254', '10.0.2.2', '172.17.0.1', '192.0.2.1'):\n"
        f"    reach(socket.AF_INET, (host, {port}))\n"
        f"reach(socket.AF_INET6, ('::1', {port}))\n"
        f"reach(socket.AF_INET6, ('::ffff:127.0.0.1', {port}))\n"
        f"reach(socket.AF_UNIX, '\\0{name}')\n"
        f"reach(socket.AF_UNIX, {str(path)!r})\n"
        "for known in ('/run/docker.sock', '/run/dbus/system_bus_socket', '/run/systemd/private'):\n"
        "    reach(socket.AF_UNIX, known)\n"
        "try: print(socket.getaddrinfo('example.com', 80))\n"
        "except OSError: print('no names')\n"
        "with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:\n"
        "    try: one.sendto(b'x', ('192.0.2.1', 53)); print('sent')\n"
        "    except OSError: print('no datagrams')\n"
    )
    box = bwrap.open()
    assert bwrap.run(box, box.python, "-c", code).stdout == b"no names\nno datagrams\n"


def test_a_program_and_its_own_server_talk(bwrap: Running) -> None:
    code = (
        "import http.server, socket, threading, urllib.request\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.end_headers(); self.wfile.write(b'hello')\n"
        "    def log_message(self, *_): pass\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), Handler)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "print(urllib.request.urlopen(f'http://localhost:{server.server_port}/').read())\n"
        "one, other = socket.socketpair(); one.send(b'x'); print(other.recv(1))\n"
        "named = socket.socket(socket.AF_UNIX); named.bind('sock'); named.listen()\n"
        "with socket.socket(socket.AF_UNIX) as asks: asks.connect('sock')\n"
        "print('fine')\n"
    )
    box = bwrap.open()
    ended = bwrap.run(box, box.python, "-c", code)
    assert (ended.exit_code, ended.stdout) == (0, b"b'hello'\nb'x'\nfine\n"), ended.stderr


def test_a_socket_that_a_box_leaves_in_its_workspace_leads_nowhere(bwrap: Running) -> None:
    """We read what a box has left; a server behind a name in it is gone with the box."""
    box = bwrap.open()
    code = "import socket; one = socket.socket(socket.AF_UNIX); one.bind('answer.txt'); one.listen()"
    assert bwrap.run(box, box.python, "-c", code).exit_code == 0
    reading: list[object] = []
    thread = threading.Thread(target=lambda: reading.append(box.workspace.get("answer.txt", limit_bytes=9)))
    thread.start()
    thread.join(PATIENCE_S)
    assert reading == [None]
    with suppress(OSError):
        box.workspace.remove("answer.txt")
