"""Which paths a patch may touch: the published rule to the letter, and the default rule over many ecosystems."""

from __future__ import annotations

import pytest

from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import (
    PatchPolicy,
    denial,
    denials,
    special_denials,
)

_FREE = PatchPolicy()


def _words(text: str) -> list[str]:
    return text.split()


_PARITY_SENSITIVE = _words("""
    .github/workflows/ci.yml .GitHub/x .gitlab/x ci/run.py CI/x pytest/x.py pytest
    src/__pycache__/x.pyc a/test/b.py tests/x.py Tests/x.py src/TEST/x tests test
    Cargo.lock sub/cargo.toml conftest.py a/b/conftest.py go.mod go.sum package.json web/package-lock.json Pipfile
    Pipfile.lock pnpm-lock.yaml poetry.lock pyproject.toml requirements-dev.txt requirements-test.txt requirements.txt
    setup.cfg setup.py SETUP.PY sitecustomize.py tox.ini usercustomize.py yarn.lock
    pytest.ini src/pytest.py pytest.toml noxfile.py noxfile.old
    x.bash run.sh a/b.zsh any.lock evil.pth RUN.SH
""")

_PARITY_FREE = _words("""
    src/app.py docs/ci/x.md src/securebench.py src/pytest/x.py testing/x.py latest/x.py src/test_app.py app_test.go
    Makefile Dockerfile a.fish src/tests.py contest/x.py requirements/base.txt src/noxfile spec/x_spec.rb
    .git/config build.gradle .circleci/config.yml sh lock src/.shrc setup.pyx src/pytest
""")

_DEFAULT_SENSITIVE = _words("""
    bunfig.toml pip.conf .yarn/releases/yarn.cjs jasmine.json x.egg-link src/_pytest/runner.py nose2.cfg unittest.cfg
    .testr.conf .stestr.conf behave.ini features/environment.py features/steps/add.py robot.toml
    .circleci/config.yml sub/.github/x .travis.yml azure-pipelines.yml azure-pipelines-2.yml Jenkinsfile .gitlab-ci.yml
    bitbucket-pipelines.yml .pre-commit-config.yaml .gitattributes .gitmodules .husky/pre-commit .devcontainer/x .ci/x
    Makefile sub/makefile GNUmakefile rules.mk Justfile Taskfile.yml Rakefile Vagrantfile Procfile
    Dockerfile Dockerfile.dev app.dockerfile Containerfile docker-compose.yml docker-compose.prod.yaml compose.yaml
    .dockerignore .env .env.local .envrc
    test_app.py src/test_app.py src/app_test.py tests.py test.py src/my_tests/x.py integration-tests/x.py testing/x.py
    requirements/base.txt requirements-docs.txt requirements.in constraints.txt environment.yml uv.lock tox.toml
    .coveragerc MANIFEST.in x.pyc mod.so mod.pyd json.py typing.py unittest/__init__.py pluggy.py _pytest/__init__.py
    dodo.py run_tests.py
    web/package.json npm-shrinkwrap.json bun.lockb deno.json .npmrc jest.config.js vitest.config.ts .mocharc.json
    playwright.config.ts cypress.config.js karma.conf.js babel.config.js webpack.config.js vite.config.ts tsconfig.json
    tsconfig.build.json src/app.test.ts src/app.spec.tsx src/__tests__/app.js src/__mocks__/x.js x.snap e2e/login.ts
    src/app-test.mjs src/a.cy.ts spec/models/user.rb gulpfile.js
    pkg/app_test.go testdata/x.json go.work build.rs src/tests/mod.rs src/tests.rs .cargo/config rust-toolchain.toml
    pom.xml build.gradle app/build.gradle.kts settings.gradle gradlew gradle.properties build.sbt
    src/test/java/App.java src/AppTest.java src/AppTests.kt src/TestApp.java src/AppIT.java src/AppSpec.scala
    App.csproj My.sln Directory.Build.props nuget.config global.json src/My.Tests/A.cs MyAppTests/A.swift AppTests.cs
    Gemfile Gemfile.lock x.gemspec .rspec app/user_spec.rb user_test.rb test_user.rb lib/tasks/x.rake
    composer.json composer.lock phpunit.xml.dist src/UserTest.php mix.exs mix.lock app_test.exs rebar.config
    CMakeLists.txt x.cmake configure.ac meson.build BUILD.bazel WORKSPACE x.bzl conanfile.txt test_x.c x_unittest.cc
    Package.swift Podfile pubspec.yaml a_test.dart x.cabal stack.yaml cpanfile t/basic.t DESCRIPTION Project.toml
    x.rockspec dune-project x.opam project.clj a_test.clj x.nimble build.zig flake.nix flake.lock
    x.fish x.ps1 x.bat x.cmd lib.dll lib.dylib tool.jar bin/python3 .venv/bin/x bin/sh
    node_modules/x/index.js .tool-versions
""")

_DEFAULT_FREE = _words("""
    src/app.py app/models/user.rb lib/index.js src/Latest.java src/contest.py src/attestation.py docs/testing.md
    src/latest/app.py README.md src/protest/march.py http/server.go types/index.ts email/send.js code/x.py
    src/json.py src/typing.py profile/views.py packaging/requirements.py src/dockerfile.py docker/dockerfile_parser.py
    src/PodSpec.java api/spec/types.go openapi-spec/api.yaml src/file_spec.py src/KeySpec.kt src/compose.py
    src/environment.py .gitignore src/setup_helpers.py src/lock.py src/configuration.js src/Makefile.md
    src/features/support/ticket.ts src/features/environment.py src/robot.py src/bunfig.ts src/yarn/index.ts
    src/greatest.ts src/testimonial.tsx src/Testimony.java app/Edit.java src/buildings.rs src/tested.py ci.py
""")


@pytest.mark.parametrize("path", _PARITY_SENSITIVE)
def test_sensitive_under_both_rules(path: str) -> None:
    for parity in (True, False):
        assert denial(path, _FREE, parity=parity) is not None
        assert denial(path, PatchPolicy(allow_paths=(path,)), parity=parity) is not None
        assert denial(path, PatchPolicy(allow_sensitive_paths=(path,)), parity=parity) is None


@pytest.mark.parametrize("path", _PARITY_FREE)
def test_the_published_rule_denies_nothing_else(path: str) -> None:
    assert denial(path, _FREE, parity=True) is None


@pytest.mark.parametrize("path", _DEFAULT_SENSITIVE)
def test_the_default_rule_knows_every_ecosystem(path: str) -> None:
    assert denial(path, _FREE) is not None
    assert denial(path, PatchPolicy(allow_sensitive_paths=(path,))) is None


@pytest.mark.parametrize("path", _DEFAULT_FREE)
def test_the_default_rule_lets_plain_source_pass(path: str) -> None:
    assert denial(path, _FREE) is None


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "it is an absolute path"),
        ("C:/x", "it is an absolute path"),
        ("../x", "it leads out of the repository"),
        ("src/../../x", "it leads out of the repository"),
        ("securebench/x", "it lies under securebench/, which belongs to the evaluator"),
        ("SecureBench/x", "it lies under securebench/, which belongs to the evaluator"),
    ],
)
def test_what_no_policy_allows(path: str, why: str) -> None:
    policy = PatchPolicy(("*",), ("*", path))
    assert denial(path, policy) == why
    assert denial(path, policy, parity=True) == why


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".git/config", "it lies in git's own folder"),
        ("src/.GIT/hooks/x", "it lies in git's own folder"),
        ("git~1/config", "it lies in git's own folder"),
        (".git. /config", "it lies in git's own folder"),
        (".g\u200cit/config", "it lies in git's own folder"),
        ("a//b", "it is not a plain path"),
        ("./a", "it is not a plain path"),
        ("", "it is not a plain path"),
        ("a\\b", "it holds a backslash or a control character"),
        ("a\nb", "it holds a backslash or a control character"),
    ],
)
def test_what_the_default_rule_never_allows_either(path: str, why: str) -> None:
    assert denial(path, PatchPolicy(("*", path), ("*", path))) == why


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/", "src/a.py", True),
        ("src/", "src", True),
        ("src/", "src2/a.py", False),
        ("src", "src/a/b.py", True),
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", True),
        ("src/*.py", "src/a/b.py", True),
        ("*.py", "src/a/b.py", True),
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "src/A.py", False),
        ("src/a.?y", "src/a.py", True),
        ("src/[ab].py", "src/a.py", True),
        ("[ab].py", "[ab].py", True),
        ("lib", "src/lib/a.py", False),
        ("/", "src/a.py", False),
    ],
)
@pytest.mark.parametrize("parity", [True, False])
def test_patterns(pattern: str, path: str, matches: bool, parity: bool) -> None:
    why = denial(path, PatchPolicy(allow_paths=(pattern,)), parity=parity)
    assert why == (None if matches else "it is not among the paths that the task allows")


def test_five_denied_paths_are_shown_and_the_others_counted() -> None:
    paths = [*(f"tests/{number}\x1b.py" for number in range(7)), "src/x.py"]
    lines = denials(paths, _FREE, parity=True).splitlines()
    assert lines[0] == "'tests/0\\\\x1b.py': everything under tests/ is sensitive"
    assert lines[5:] == ["and 2 more"]


def test_links_and_submodules_need_leave_whatever_their_name() -> None:
    message = "'src/link': symbolic links and submodules are sensitive"
    assert special_denials({"src/link"}, PatchPolicy(allow_paths=("src/",))) == message
    assert not special_denials({"src/link"}, PatchPolicy(allow_sensitive_paths=("src/",)))
