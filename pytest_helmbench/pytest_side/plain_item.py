"""Items whose errors are shown by their words alone."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_helmbench.core.problem import CaseError


class PlainItem(pytest.Item):
    """An item whose `CaseError` has no traceback, like `pytest.fail` with `pytrace=False`."""

    __slots__ = ()

    def _repr_failure_py(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what pytest shows of an error: it calls this by name for one in setup."""
        return super()._repr_failure_py(excinfo, "value" if isinstance(excinfo.value, CaseError) else style)
