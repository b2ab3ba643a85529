"""Check installed packages for known vulnerabilities: `make audit`.

pip-audit looks up each package at PyPI, or at OSV if PyPI does not answer. The check fails if it finds a vulnerability
that is not listed with a reason in `tools/ignored.txt`. Without a connection to either service, the check passes with a
warning. pip-audit reports "no known vulnerabilities" even if it could not look up anything, so the packages that it has
looked up are counted here.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

IGNORED = Path(__file__).with_name("ignored.txt")
SERVICES = ("pypi", "osv")
PATIENCE = 180
"""Timeout of one service in seconds."""


@dataclass(frozen=True)
class Result:
    """The response of a service.

    Args:
        looked_up: the number of packages that the service knows.
        unknown: the names of the other packages.
        found: one line for each vulnerability, by its id.
    """

    looked_up: int
    unknown: Sequence[str]
    found: Mapping[str, str]


def main() -> int:
    """Print the result, and return the exit code: 1 for a vulnerability that is not ignored, else 0."""
    if find_spec("pip_audit") is None:
        write_line("pip-audit is not installed: it is in the extra `dev`; remove .venv and run make again.")
        return 1
    reasons = ignored(IGNORED.read_text(encoding="utf-8"))
    result = audit(installed())
    if result is None:
        write_line("WARNING: THE DEPENDENCIES WERE NOT AUDITED: neither PyPI nor OSV can be reached from here.")
        return 0
    write_line(f"{result.looked_up} packages were looked up, and {len(result.found)} known vulnerabilities were found.")
    if result.unknown:
        write_line(f"WARNING: NOT AUDITED, because the service does not know them: {', '.join(result.unknown)}.")
    for name, reason in reasons.items():
        write_line(
            f"ignored: {name}: {reason}"
            if name in result.found
            else f"{name} is no longer found: remove it from the list."
        )
    bad = [line for name, line in result.found.items() if name not in reasons]
    for line in bad:
        write_line(f"VULNERABLE: {line}")
    return 1 if bad else 0


def installed() -> list[str]:
    """`name==version` of every installed package except graphveil, without build tags such as +cpu."""
    found = {one.name: one.version.split("+")[0] for one in distributions() if one.name != "graphveil"}
    return sorted(f"{name}=={version}" for name, version in found.items())


def audit(packages: Sequence[str]) -> Result | None:
    """The result of the first service that knows at least one package; None if none does."""
    for service in SERVICES:
        result = query(service, packages)
        if result is not None and result.looked_up:
            return result
    return None


def query(service: str, packages: Sequence[str]) -> Result | None:
    """Run pip-audit with one service.

    Args:
        service: one of `SERVICES`.
        packages: `name==version` of each package.

    Returns:
        The result, or None if the service did not answer.
    """
    with tempfile.TemporaryDirectory() as name:
        requirements, out = Path(name) / "packages.txt", Path(name) / "result.json"
        requirements.write_text("\n".join(packages), encoding="utf-8")
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(requirements), "--no-deps", "--disable-pip"]
        command += ["--vulnerability-service", service, "--format", "json", "--output", str(out)]
        try:
            done = subprocess.run(
                [*command, "--progress-spinner", "off"], capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            write_line(f"{service} did not answer within {PATIENCE} s.")
            return None
        if not out.exists():
            write_line(
                f"{service} did not answer: {(done.stderr.strip().splitlines() or ['no reason given'])[-1][:200]}"
            )
            return None
        return read(json.loads(out.read_text(encoding="utf-8")))


def read(content: Mapping[str, Any]) -> Result:
    """Parse the JSON of pip-audit, in which a skipped package has a reason instead of a version."""
    looked_up = [one for one in content["dependencies"] if "skip_reason" not in one]
    found = {
        bad["id"]: f"{one['name']} {one['version']}: {bad['id']}, fixed in {', '.join(bad['fix_versions']) or 'none'}"
        for one in looked_up
        for bad in one["vulns"]
    }
    unknown = [one["name"] for one in content["dependencies"] if "skip_reason" in one]
    return Result(len(looked_up), unknown, found)


def ignored(text: str) -> dict[str, str]:
    """Parse the list of ignored vulnerabilities: on each line an id, and the reason why it does not matter here."""
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if without := [line[0] for line in lines if len(line) < 2]:
        raise SystemExit(f"{IGNORED}: no reason is given for {', '.join(without)}.")
    return dict(lines)


def write_line(sentence: str) -> None:
    """Write a sentence to stderr."""
    sys.stderr.write(f"{sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
