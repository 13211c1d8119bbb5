"""Modules are imported only when needed, each looked at in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_looking_for_benchmarks_imports_no_yaml() -> None:
    code = "import sys, pytest_helmbench.benchmarks.places; print({'yaml', 'jsonschema'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_looking_for_bench_packs_imports_little() -> None:
    code = (
        "import sys, pytest_helmbench.benchmarks.places;"
        "print(sorted(name for name in sys.modules if name.startswith(('pytest_helmbench.', 'hashlib', 'yaml'))))"
    )
    found = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert "bench_packs.places" in found.stdout
    assert not {"manifest", "yaml", "hashlib"} & set(found.stdout.replace("'", " ").replace(".", " ").split())


def test_looking_for_packs_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest_helmbench.benchmarks.packs.places\n"
        "print(sorted(name for name in ('yaml', 'jsonschema', 'aiohttp', 'pycurl', 'hashlib') if name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_session_that_does_not_ask_imports_only_the_plugin_writes_and_prints_nothing(
    tmp_path: Path,
) -> None:
    scenario = tmp_path / "benchmark" / "scenarios" / "P1-B1-S1"
    scenario.mkdir(parents=True)
    (scenario / "S1.md").write_text("Say something.\n")
    (tmp_path / "conftest.py").write_text(
        "import sys\n\n"
        "def pytest_unconfigure(config):\n"
        "    heavy = ('pytest_helmbench', 'aiohttp', 'pycurl', 'yaml', 'genai_prices', 'jsonschema')\n"
        "    print('LOADED', *sorted(name for name in sys.modules if name.startswith(heavy)))\n"
    )
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n")
    before = set(tmp_path.rglob("*"))

    result = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-s", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "1 passed" in result.stdout
    ours = (
        "pytest_helmbench",
        *(
            f"pytest_helmbench.{name}"
            for name in (
                "core",
                "core.granted",
                "core.light_dataclass",
                "options",
                "options.declarations",
                "options.option",
                "plugin",
                "speed",
                "speed.interpreter",
            )
        ),
    )
    assert f"LOADED {' '.join(ours)}\n" in result.stdout
    shown = [line for line in result.stdout.splitlines() if not line.startswith(("plugins:", "LOADED"))]
    assert not [line for line in shown if "helmbench" in line.replace(str(tmp_path), "")]
    assert set(tmp_path.rglob("*")) == before
