"""The check of dependencies: it fails for a vulnerability, and reports if a service did not answer."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tools.dependencies import Result, audit, ignored, installed, main, query, read

from tools import dependencies

CLEAN = {"name": "jinja2", "version": "3.1.6", "vulns": []}
SKIPPED = {"name": "secretive", "skip_reason": "Dependency not found on PyPI and could not be audited"}
BAD = {"name": "pyyaml", "version": "5.3", "vulns": [{"id": "PYSEC-2021-142", "fix_versions": ["5.4"], "aliases": []}]}


@pytest.fixture
def pip_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "find_spec", lambda _: object())


def test_without_pip_audit_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "find_spec", lambda _: None)
    assert main() == 1


def test_the_packages_that_were_looked_up_are_counted() -> None:
    line = "pyyaml 5.3: PYSEC-2021-142, fixed in 5.4"
    assert read({"dependencies": [CLEAN, SKIPPED, BAD]}) == Result(2, ["secretive"], {"PYSEC-2021-142": line})


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        ({"pypi": [CLEAN]}, 0, "1 packages were looked up, and 0 known vulnerabilities"),
        ({"pypi": [CLEAN, SKIPPED]}, 0, "NOT AUDITED, because the service does not know them: secretive"),
        ({"pypi": [CLEAN, BAD]}, 1, "VULNERABLE: pyyaml 5.3: PYSEC-2021-142"),
        ({"pypi": [SKIPPED], "osv": [BAD]}, 1, "VULNERABLE: pyyaml"),
        ({"osv": [CLEAN]}, 0, "1 packages were looked up"),
        ({"pypi": [SKIPPED]}, 0, "THE DEPENDENCIES WERE NOT AUDITED"),
        ({}, 0, "THE DEPENDENCIES WERE NOT AUDITED"),
    ],
)
@pytest.mark.usefixtures("pip_audit")
def test_a_vulnerability_decides_the_exit_code(
    answers: dict[str, list[dict[str, Any]]],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(service: str, packages: Sequence[str]) -> Result | None:
        return read({"dependencies": answers[service]}) if service in answers else None

    monkeypatch.setattr(dependencies, "query", answer)
    assert main() == code
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("pip_audit")
def test_an_ignored_vulnerability_needs_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ignored("# a comment\n\nPYSEC-1 only its server, which nobody starts\n") == {
        "PYSEC-1": "only its server, which nobody starts"
    }
    with pytest.raises(SystemExit, match="no reason is given for PYSEC-2"):
        ignored("PYSEC-2\n")
    (tmp_path / "ignored.txt").write_text("PYSEC-2021-142 we load nothing\nPYSEC-9 gone\n")
    monkeypatch.setattr(dependencies, "IGNORED", tmp_path / "ignored.txt")
    monkeypatch.setattr(dependencies, "query", lambda *_: read({"dependencies": [BAD]}))
    assert main() == 0
    said = capsys.readouterr().err
    assert "ignored: PYSEC-2021-142: we load nothing" in said
    assert "PYSEC-9 is no longer found" in said


def test_a_service_that_fails_or_hangs_has_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "Traceback\nConnectionError: no such host")

    def hangs(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired("pip-audit", 1)

    for happens in (fails, hangs):
        monkeypatch.setattr(subprocess, "run", happens)
        assert query("pypi", ["jinja2==3.1.6"]) is None
        assert audit(["jinja2==3.1.6"]) is None


def test_every_package_except_graphveil_is_checked() -> None:
    packages = installed()
    assert f"torch=={version('torch').split('+')[0]}" in packages
    assert not any(line.startswith("graphveil==") or "+" in line for line in packages)
    assert len(packages) > 40


def test_pip_audit_accepts_the_options() -> None:
    """Run pip-audit on a package that does not exist: nothing is looked up, with or without a network."""
    pytest.importorskip("pip_audit", reason="needs the extra [dev]")
    result = query("pypi", ["graphveil-no-such-package==0.0.1"])
    assert result is None or result == Result(0, ["graphveil-no-such-package"], {})
    help_ = subprocess.run([sys.executable, "-m", "pip_audit", "--help"], capture_output=True, text=True, check=True)
    for option in ("--no-deps", "--disable-pip", "--vulnerability-service", "--output", "--requirement"):
        assert option in help_.stdout
