"""SIGKILL between any two system calls leaves the old text or the new, no debris, and all that was acknowledged."""

import json
import subprocess
import sys
from pathlib import Path

from crashing import SCENARIOS


def test_a_writer_killed_anywhere_leaves_the_old_text_or_the_new(tmp_path: Path) -> None:
    program = Path(__file__).with_name("crashing.py")
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)
    assert points.keys() == SCENARIOS.keys()
    assert min(points.values()) >= 30, points
