"""The path policy of repo_patch: the paths that a candidate's patch may touch, in every common ecosystem."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt


@dataclass(frozen=True, slots=True)
class SensitivePaths:
    """One rule's table. Everything but `written` is compared case-folded.

    Args:
        roots: First part of the path.
        parts: Any part of the path, the file name included.
        names: File name.
        starts: Start of the file name.
        ends: End of the file name.
        patterns: Found anywhere in the path.
        written: Found anywhere in the path as written, where capitals tell words apart.
        modules: Python modules that must not be hidden by one at the top of the repository.
    """

    roots: frozenset[str]
    parts: frozenset[str]
    names: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    patterns: re.Pattern[str] | None = None
    written: re.Pattern[str] | None = None
    modules: frozenset[str] = frozenset()

    def why(self, path: str) -> str | None:
        """Return what makes a path sensitive, for people; None when nothing does."""
        folded = path.casefold()
        parts = folded.split("/")
        name = parts[-1]
        if parts[0] in self.roots:
            return f"everything under {parts[0]}/ is sensitive"
        for part in parts:
            if part in self.parts:
                return f"everything under {part}/ is sensitive"
        if name in self.names or name.startswith(self.starts) or name.endswith(self.ends):
            return "files of this name are sensitive"
        for pattern, text in ((self.patterns, folded), (self.written, path)):
            if pattern is not None and pattern.search(text):
                return "paths of this form are sensitive"
        module = parts[0].removesuffix(".py") if len(parts) == 1 else parts[0]
        if module in self.modules and (folded == f"{module}.py" or parts[1:] == ["__init__.py"]):
            return "it hides a module that tests import"
        return None


def _set(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


PARITY = SensitivePaths(
    roots=_set(".github .gitlab ci securebench pytest"),
    parts=_set("__pycache__ test tests"),
    names=_set(
        "cargo.lock cargo.toml conftest.py go.mod go.sum package.json package-lock.json pipfile pipfile.lock",
        "pnpm-lock.yaml poetry.lock pyproject.toml requirements-dev.txt requirements-test.txt requirements.txt",
        "setup.cfg setup.py sitecustomize.py tox.ini usercustomize.py yarn.lock",
    ),
    starts=("pytest.", "noxfile."),
    ends=(".bash", ".sh", ".zsh", ".lock", ".pth"),
)
"""Paths that the published rule calls sensitive.

Source:
    Benchmark packs, parity rules, repo_patch paths.
"""

_CI_PARTS = _set(
    ".github .gitlab .circleci .buildkite .forgejo .gitea .woodpecker .teamcity .azure-pipelines .husky",
    ".devcontainer .cargo .mvn .bundle .tox .nox .venv venv .virtualenv virtualenv .direnv",
)
_TEST_PARTS = _set(
    "testing __tests__ __test__ __mocks__ __snapshots__ e2e cypress playwright testdata testsuite testsuites",
    "unittest unittests androidtest testfixtures integrationtest integrationtests functionaltests xctest testthat",
    "pytest _pytest .pytest_cache securebench node_modules site-packages dist-packages .yarn",
)
_CI_NAMES = _set(
    ".gitlab-ci.yml .travis.yml .appveyor.yml appveyor.yml .cirrus.yml .cirrus.star .drone.yml .woodpecker.yml",
    ".woodpecker.yaml bitbucket-pipelines.yml cloudbuild.yaml cloudbuild.yml buildspec.yml jenkinsfile codecov.yml",
    ".codecov.yml .pre-commit-config.yaml lefthook.yml wercker.yml .gitattributes .gitmodules .envrc .tool-versions",
    "mise.toml .mise.toml .python-version .nvmrc .node-version .ruby-version .java-version .sdkmanrc",
)
_TASK_NAMES = _set(
    "makefile gnumakefile bsdmakefile justfile .justfile taskfile.yml taskfile.yaml earthfile procfile rakefile",
    "vagrantfile dodo.py fabfile.py sconstruct sconscript wscript tiltfile docker-bake.hcl .dockerignore",
)
_PYTHON_NAMES = _set(
    "environment.yml environment.yaml conda.yml conda.yaml meta.yaml tox.toml .coveragerc manifest.in hatch.toml",
    "pdm.toml uv.toml pixi.toml buildout.cfg runtests.py run_tests.py runtest.py pip.conf pip.ini .testr.conf",
    ".stestr.conf nose.cfg .noserc nose2.cfg unittest.cfg behave.ini .behaverc robot.toml",
)
_WEB_NAMES = _set(
    "npm-shrinkwrap.json pnpm-workspace.yaml deno.json deno.jsonc .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs",
    "lerna.json nx.json turbo.json rush.json gulpfile.js gulpfile.ts gruntfile.js .babelrc .swcrc .nycrc wallaby.js",
    "bunfig.toml jasmine.json bower.json setuptests.js setuptests.ts setuptests.jsx setuptests.tsx angular.json",
)
_NATIVE_NAMES = _set(
    "go.work go.work.sum build.rs rust-toolchain rust-toolchain.toml cmakelists.txt cmakepresets.json",
    "cmakeuserpresets.json configure configure.ac configure.in makefile.am makefile.in meson.build",
    "meson_options.txt meson.options build build.bazel workspace workspace.bazel module.bazel .bazelrc .bazelversion",
    "conanfile.py conanfile.txt vcpkg.json xmake.lua premake5.lua build.zig build.zig.zon package.swift",
    "package.resolved podfile cartfile flake.nix default.nix shell.nix",
)
_JVM_NAMES = _set(
    "pom.xml settings.gradle settings.gradle.kts gradle.properties gradlew mvnw libs.versions.toml build.sc",
    "build.xml ivy.xml project.clj deps.edn shadow-cljs.edn testng.xml junit-platform.properties",
)
_OTHER_NAMES = _set(
    "global.json nuget.config packages.config packages.lock.json paket.dependencies xunit.runner.json build.cake",
    "gemfile gems.rb .rspec .simplecov spec_helper.rb rails_helper.rb test_helper.rb composer.json phpunit.xml",
    "phpunit.xml.dist phpunit.dist.xml pest.php phpspec.yml codeception.yml mix.exs rebar.config pubspec.yaml",
    "dart_test.yaml package.yaml cpanfile makefile.pl build.pl dist.ini description project.toml manifest.toml",
    ".busted dune dune-project dune-workspace shard.yml spago.dhall elm.json gleam.toml foundry.toml",
)
_PROGRAMS = _set(
    "sh bash dash zsh env git make python python3 pytest py.test node npm npx yarn pnpm bun deno go cargo rustc java",
    "javac mvn gradle ruby rake bundle rspec php composer perl prove dotnet mix rebar3 lua julia stack cabal",
)
_CODE = r"\.(?:[cm]?[jt]sx?|py|pyx|vue|svelte|c|cc|cpp|cxx|hpp|mm?|rs|go|rb|php|lua|jl|r|pl|nim|zig|dart|exs|clj[sc]?)$"
_BRACKETED = r"\.(?:java|kts?|scala|groovy|cs|fs|vb|swift|php|mm?|cpp|dart)$"

DEFAULT = SensitivePaths(
    roots=PARITY.roots | {".ci"},
    parts=PARITY.parts | _CI_PARTS | _TEST_PARTS,
    names=PARITY.names
    | _CI_NAMES
    | _TASK_NAMES
    | _PYTHON_NAMES
    | _WEB_NAMES
    | _NATIVE_NAMES
    | _JVM_NAMES
    | _OTHER_NAMES
    | _PROGRAMS,
    starts=(
        *PARITY.starts,
        *_set(
            ".pytest. jest.config. jest.setup. jest.preset. vitest. vite.config. karma.conf. playwright.config.",
            "cypress.config. .mocharc ava.config. webpack.config. rollup.config. esbuild.config. babel.config.",
            "metro.config. nyc.config. wdio.conf nightwatch.conf protractor.conf hardhat.config. truffle-config.",
            "stack.yaml cabal.project azure-pipelines directory.build. directory.packages.",
        ),
    ),
    ends=(
        *PARITY.ends,
        *_set(
            ".fish .ksh .csh .bat .cmd .ps1 .psm1 .lockb .lockfile .pyc .pyo .pyd .so .dll .dylib .egg .egg-link .whl",
            ".jar .class .gemspec .rake .cabal .csproj .fsproj .vbproj .vcxproj .sln .slnx .props .targets .cmake .mk",
            ".mak .ninja .bzl .opam .nimble .rockspec .sbt .gradle .gradle.kts .pbxproj .snap .feature .dockerfile",
            ".runsettings _suite.erl _tests.erl .t",
        ),
    ),
    patterns=re.compile(
        # Folders of tests, and files beside the code that they test.
        r"(?:^|[-_. /])(?:tests?|e2e|unittests?)(?:[-_. ][^/]*)?/"
        # Hooks of behave and cucumber.
        r"|^features/(?:environment\.py$|(?:support|steps|step_definitions)/)"
        rf"|(?:^|/)tests?{_CODE}|(?:^|/)tests?[-_.][^/]*{_CODE}|[-_.](?:tests?|unittests?|e2e|cy){_CODE}"
        r"|[-_.]specs?\.(?:[cm]?[jt]sx?|vue|svelte|coffee|rb|lua|cr|php|exs|hs)$"
        r"|^specs?/|/specs?/(?:[^/]*/)*[^/]*\.(?:[cm]?[jt]sx?|vue|coffee|rb|lua|cr|php|hs)$"
        # Files that come in variants.
        r"|(?:^|/)(?:requirements|constraints)[\w.-]*\.(?:txt|in|pip)$|(?:^|/)requirements/[^/]*\.(?:txt|in)$"
        r"|(?:^|/)(?:dockerfile|containerfile)(?:[.-](?!py$|go$|rs$|[jt]s$)[\w.-]+)?$"
        r"|(?:^|/)(?:docker-)?compose[\w.-]*\.ya?ml$|(?:^|/)tsconfig[\w.-]*\.json$|(?:^|/)\.env(?:\.[\w.-]+)?$"
    ),
    written=re.compile(
        rf"[a-z0-9](?:UI)?Tests?/|(?:[a-z0-9]|^|/)(?:Tests?|TestCase|TestSuite|IT|ITCase){_BRACKETED}"
        rf"|(?:^|/)Tests?[A-Z][^/]*{_BRACKETED}|[a-z0-9]Specs?\.(?:scala|groovy|hs|php)$"
    ),
    modules=frozenset(name for name in sys.stdlib_module_names if not name.startswith("_"))
    | _set("_pytest pluggy iniconfig packaging exceptiongroup tomli py xdist hypothesis nose nose2 coverage")
    | _set("attr attrs mock setuptools pkg_resources"),
)
"""Paths that the default rule calls sensitive: those of the parity rule, and the same in other ecosystems."""


_NEVER = "securebench"
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
# File systems that ignore case, dots or blanks at the end, or that know short names, take these for `.git`.
_GIT_FOLDER = re.compile(r"\.git[. ]*|git~[0-9]+|\.git:.*", re.IGNORECASE)
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u2060\u206a-\u206f\ufeff]")
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class PatchPolicy:
    """Which paths a candidate's patch may touch.

    Args:
        allow_paths: A closed list of patterns when not empty.
        allow_sensitive_paths: Patterns of sensitive paths that may be touched.
        preserved: Patterns of files that stay as they are: what a patch does to them is left out.
    """

    allow_paths: tuple[str, ...] = ()
    allow_sensitive_paths: tuple[str, ...] = ()
    preserved: tuple[str, ...] = ()


def denial(path: str, policy: PatchPolicy, *, parity: bool = False) -> str | None:
    """Return why a patch must not touch a path, for people; None when it may.

    Args:
        parity: Apply the published rule, which knows fewer sensitive paths.

    Source:
        Benchmark packs, parity rules, repo_patch paths.
    """
    fault = hard_fault(path, parity=parity)
    if fault is not None:
        return fault
    if any(_matches(path, pattern) for pattern in policy.preserved):
        return "the task keeps it as it is"
    if policy.allow_paths and not any(_matches(path, pattern) for pattern in policy.allow_paths):
        return "it is not among the paths that the task allows"
    if any(_matches(path, pattern) for pattern in policy.allow_sensitive_paths):
        return None
    return (PARITY if parity else DEFAULT).why(path)


def denials(paths: Iterable[str], policy: PatchPolicy, *, parity: bool = False) -> str:
    """Return which paths must not be touched and why, five at most; empty when all may be."""
    reasons = ((path, denial(path, policy, parity=parity)) for path in sorted(paths))
    return _listed([(path, why) for path, why in reasons if why is not None])


def special_denials(paths: Iterable[str], policy: PatchPolicy) -> str:
    """Return which of some paths, that are or become symbolic links or submodules, must not; empty when all may."""
    allowed = policy.allow_sensitive_paths
    why = "symbolic links and submodules are sensitive"
    return _listed(
        [(path, why) for path in sorted(paths) if not any(_matches(path, pattern) for pattern in allowed)]
    )


def _listed(reasons: list[tuple[str, str]]) -> str:
    lines = [f"{excerpt(path, 200)!r}: {why}" for path, why in reasons[:_MOST_SHOWN]]
    more = [f"and {len(reasons) - _MOST_SHOWN} more"] if len(reasons) > _MOST_SHOWN else []
    return "\n".join(lines + more)


def hard_fault(path: str, *, parity: bool = False) -> str | None:
    """Return why no policy can allow a path; None when one can."""
    parts = path.split("/")
    if path.startswith("/") or _DRIVE.match(path):
        return "it is an absolute path"
    if ".." in parts:
        return "it leads out of the repository"
    if parts[0].casefold() == _NEVER:
        return f"it lies under {_NEVER}/, which belongs to the evaluator"
    if parity:
        return None
    if not all(parts) or "." in parts:
        return "it is not a plain path"
    if "\\" in path or _CONTROL.search(path):
        return "it holds a backslash or a control character"
    if any(_GIT_FOLDER.fullmatch(_IGNORED.sub("", part)) for part in parts):
        return "it lies in git's own folder"
    return None


def covering(pattern: str) -> tuple[str, ...]:
    """Return the globs, whose `*` crosses `/`, that represent a pattern: itself, and all in the folder it names."""
    folder = pattern.removesuffix("/**").removesuffix("/")
    return (pattern, folder, f"{folder}/*") if folder else (pattern,)


def _matches(path: str, pattern: str) -> bool:
    """Return whether a pattern covers a path: as a glob whose `*` crosses `/`, as the path, or as a folder."""
    folder = pattern.removesuffix("/**").removesuffix("/")
    return (
        path in (pattern, folder)
        or fnmatchcase(path, pattern)
        or bool(folder and path.startswith(f"{folder}/"))
    )
