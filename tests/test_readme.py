"""The README: its example runs as it stands, and it has what a first look needs."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_example(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[0]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    certificate, score, *_ = done.stdout.splitlines()
    assert certificate.startswith(
        "An attacker who sees only the released codes, with any method, predicts the label of at"
    )
    assert re.match(r"utility \d\d\.\d\d% auc; counted rule on labels \d\d\.\d\d% accuracy \(chance", score)
    for file in ("model.safetensors", "run.json", "audit.json"):
        assert (tmp_path / "runs" / "cora" / file).exists()
    assert len(EXAMPLES) == 1


def test_the_readme_has_the_two_commands_and_its_picture() -> None:
    for target in ("make demo", "make test"):
        assert re.search(rf"^{target} ", README, re.MULTILINE)
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size > 10_000


def test_the_readme_stays_short() -> None:
    assert len(README.splitlines()) <= 80, "more belongs into docs/"
