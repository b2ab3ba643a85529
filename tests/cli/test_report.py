"""`graphveil report` of a run, and what it refuses."""

from pathlib import Path

from tests.program import CommandLine


def test_a_report_of_a_run(tmp_path: Path, graphveil: CommandLine) -> None:
    run = tmp_path / "run"
    protect = ["protect", "synthetic", "--secret", "secret", "--set", "rounds=4", "--out", str(run)]
    assert graphveil(*protect).returncode == 0
    done = graphveil("report", str(run))
    assert done.returncode == 0, done.stderr
    assert str(run / "report.html") in done.stdout
    assert "synthetic" in (run / "report.html").read_text()
    elsewhere = tmp_path / "new" / "page.html"
    assert graphveil("report", str(run), "--out", str(elsewhere)).returncode == 0
    assert elsewhere.exists()
    for wrong, says in (
        ([str(tmp_path / "nothing")], "cannot be shown"),
        ([str(tmp_path)], "holds neither run.json nor"),
        ([str(run), "--out", str(run / "run.json")], "ends in .html"),
    ):
        done = graphveil("report", *wrong)
        assert done.returncode == 2
        assert says in done.stderr
        assert "Traceback" not in done.stderr
