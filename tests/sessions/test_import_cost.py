"""What is not asked for is not imported, each looked at in a fresh interpreter."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from trees import category, write_tree


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
    assert not {"manifest", "pack_folder", "yaml", "hashlib"} & set(
        found.stdout.replace("'", " ").replace(".", " ").split()
    )


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
        "    heavy = ('pytest_helmbench', 'aiohttp', 'pycurl', 'yaml', 'genai_prices', 'sqlite_utils', 'jsonschema')\n"
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
                "core.light_dataclass",
                "core.users_word",
                "options",
                "options.declarations",
                "options.kind_options",
                "options.option",
                "options.option_types",
                "plugin",
            )
        ),
    )
    assert f"LOADED {' '.join(ours)}\n" in result.stdout
    shown = [line for line in result.stdout.splitlines() if not line.startswith(("plugins:", "LOADED"))]
    assert not [line for line in shown if "helmbench" in line.replace(str(tmp_path), "")]
    assert set(tmp_path.rglob("*")) == before


def test_sessions_on_a_new_file_and_on_one_of_today_do_without_sqlite_utils(tmp_path: Path) -> None:
    write_tree(tmp_path / "benchmark", {"P1-B1-S1": category("RISK")})
    (tmp_path / "conftest.py").write_text(
        "import sys\n\ndef pytest_unconfigure(config):\n    print('LOADED', 'sqlite_utils' in sys.modules)\n"
    )
    for runs in (1, 2):
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-s", "benchmark", "--helmbench-model=baseline/lexical"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "\nLOADED False\n" in result.stdout, result.stdout + result.stderr
        with closing(sqlite3.connect(tmp_path / "helmbench.db")) as conn:
            assert conn.execute("SELECT count(*) FROM evaluation_runs").fetchone() == (runs,)
