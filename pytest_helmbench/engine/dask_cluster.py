"""A Dask cluster of this machine in a process of its own, without keys; `dask_judges` starts it and ends it."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys

from distributed import LocalCluster, Security

from pytest_helmbench.engine.closed_process import close_to_others
from pytest_helmbench.engine.pipe_frames import read_frame, write_frame

__all__ = ["main"]

_TLS = (
    "tls_ca_file",
    "tls_client_cert",
    "tls_client_key",
)


def main() -> None:
    """Start as many workers as the second argument says, say where, and stay until nobody is at the other end."""
    close_to_others()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    paths: list[str] = pickle.loads(read_frame(source))
    sys.path.extend(path for path in paths if path not in sys.path)
    security = Security.temporary()
    cluster = LocalCluster(
        n_workers=int(sys.argv[2]),
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        security=security,
        memory_limit=0,
    )
    told = {"require_encryption": True, **{name: getattr(security, name) for name in _TLS}}
    write_frame(answers, json.dumps({"address": cluster.scheduler_address, "security": told}).encode())
    source.read()
    os._exit(0)  # its workers end with it
