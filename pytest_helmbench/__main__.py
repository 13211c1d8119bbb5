"""`python -m pytest_helmbench`."""

from __future__ import annotations

import sys

from pytest_helmbench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
