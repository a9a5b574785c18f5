"""The example that is written like a notebook runs, and draws its picture."""

import subprocess
import sys

import pytest


def test_the_example_runs(root, tmp_path):
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, root / "mine" / "example.py", "precision.png"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "precision.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["precision.png"], "no other file is made"
    printed = done.stdout.decode()
    assert "528 English lines, 528 French lines" in printed
    assert "in truth, above" in printed
