"""Opening a line on a judge's host: by what has brought the parcel there, which so far is Dask."""

from __future__ import annotations

from pytest_helmbench.engine.host_lines import Line, LineAddress

__all__ = ["opened_line"]


def opened_line(address: LineAddress) -> Line:
    """Open a line to a session, in the thread in which a judge judges.

    Raises:
        LineClosedError: It leads nowhere.
    """
    from pytest_helmbench.engine.dask_lines import DaskLine

    return DaskLine(address)
