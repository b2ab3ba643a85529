"""Ask whether an installed package has a known vulnerability: `make audit`.

pip-audit looks each one up at PyPI, or at OSV where PyPI does not answer. A vulnerability fails, unless
`tools/ignored.txt` says why it does not matter here. A machine that reaches no such service passes, and says so in
capital letters: pip-audit itself would report "no known vulnerabilities" where it could look nothing up, so what it
looked up is counted here.
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
"""Seconds for all the look-ups of one service."""


@dataclass(frozen=True)
class Answer:
    """What a service knows: packages it has looked up, packages it has not, a line for each vulnerability by its id."""

    looked_up: int
    unknown: Sequence[str]
    found: Mapping[str, str]


def main() -> int:
    """Print what was found; 1 if anything was."""
    if find_spec("pip_audit") is None:
        say("pip-audit is not installed: it is in the dev extra, so remove .venv and run make again.")
        return 1
    reasons = ignored(IGNORED.read_text(encoding="utf-8"))
    answer = audit(installed())
    if answer is None:
        say("WARNING: THE DEPENDENCIES WERE NOT AUDITED: neither PyPI's nor OSV's advisories can be reached from here.")
        return 0
    say(f"{answer.looked_up} packages were looked up, {len(answer.found)} vulnerabilities are known.")
    if answer.unknown:
        say(f"WARNING: NOT AUDITED, since the service does not know them: {', '.join(answer.unknown)}.")
    for name, reason in reasons.items():
        say(
            f"ignored: {name}: {reason}"
            if name in answer.found
            else f"{name} is no longer found: take it off the list."
        )
    bad = [line for name, line in answer.found.items() if name not in reasons]
    for line in bad:
        say(f"VULNERABLE: {line}")
    return 1 if bad else 0


def installed() -> list[str]:
    """`name==version` of every package here but our own; +cpu and the like are builds of the same source."""
    found = {one.name: one.version.split("+")[0] for one in distributions() if one.name != "graphveil"}
    return sorted(f"{name}=={version}" for name, version in found.items())


def audit(packages: Sequence[str]) -> Answer | None:
    """The answer of the first service that knows anything at all."""
    for service in SERVICES:
        answer = ask(service, packages)
        if answer is not None and answer.looked_up:
            return answer
    return None


def ask(service: str, packages: Sequence[str]) -> Answer | None:
    """Let pip-audit ask one service; None if that came to nothing."""
    with tempfile.TemporaryDirectory() as name:
        wanted, out = Path(name) / "packages.txt", Path(name) / "answer.json"
        wanted.write_text("\n".join(packages), encoding="utf-8")
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(wanted), "--no-deps", "--disable-pip"]
        command += ["--vulnerability-service", service, "--format", "json", "--output", str(out)]
        try:
            done = subprocess.run(
                [*command, "--progress-spinner", "off"], capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            say(f"{service} did not answer within {PATIENCE} s.")
            return None
        if not out.exists():
            say(f"{service} did not answer: {(done.stderr.strip().splitlines() or ['no reason given'])[-1][:200]}")
            return None
        return read(json.loads(out.read_text(encoding="utf-8")))


def read(answer: Mapping[str, Any]) -> Answer:
    """pip-audit's JSON; a package that was skipped has a reason instead of a version."""
    looked_up = [one for one in answer["dependencies"] if "skip_reason" not in one]
    found = {
        bad["id"]: f"{one['name']} {one['version']}: {bad['id']}, mended in {', '.join(bad['fix_versions']) or 'none'}"
        for one in looked_up
        for bad in one["vulns"]
    }
    unknown = [one["name"] for one in answer["dependencies"] if "skip_reason" in one]
    return Answer(len(looked_up), unknown, found)


def ignored(text: str) -> dict[str, str]:
    """Lines of an id and the reason why it does not matter here."""
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if without := [line[0] for line in lines if len(line) < 2]:
        raise SystemExit(f"{IGNORED}: no reason is given for {', '.join(without)}.")
    return dict(lines)


def say(sentence: str) -> None:
    """On stderr, so that it is seen among what make says."""
    sys.stderr.write(f"{sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
