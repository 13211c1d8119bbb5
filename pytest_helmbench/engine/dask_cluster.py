"""A Dask cluster of this machine in a process of its own, without keys; `dask_judges` starts it and ends it."""

from __future__ import annotations

import json
import os
import sys

from distributed import LocalCluster, Security

from pytest_helmbench.engine.isolated_process import begun
from pytest_helmbench.engine.pipe_frames import write_frame

__all__ = ["main"]

_TLS = (
    "tls_ca_file",
    "tls_client_cert",
    "tls_client_key",
)


def main() -> None:
    """Start as many workers as the second argument says, say where, and stay until nobody is at the other end."""
    source, answers = begun()
    try:
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
    except Exception as error:
        write_frame(answers, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        raise
    told = {"require_encryption": True, **{name: getattr(security, name) for name in _TLS}}
    write_frame(answers, json.dumps({"address": cluster.scheduler_address, "security": told}).encode())
    source.read()
    os._exit(0)  # its workers end with it
