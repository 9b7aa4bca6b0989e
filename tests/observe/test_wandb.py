# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The optional wandb sink: a clear refusal without the package, an offline run with it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_python(
    script: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    env |= {"PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, env=env, timeout=120, check=False, text=True, capture_output=True
    )


def test_without_the_package_the_error_names_the_extra(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules['wandb'] = None\n"
        "from megacurl.observe.logger import MetricLogger\n"
        "MetricLogger(sys.argv[1], ['jsonl', 'wandb'], None, enabled=False)\n"
        "try:\n"
        "    MetricLogger(sys.argv[1], ['jsonl', 'wandb'], None, enabled=True)\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = run_python(script, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "pip install 'megacurl[wandb]'" in done.stdout


@pytest.mark.skipif(
    importlib.util.find_spec("wandb") is None, reason="the wandb extra is not installed"
)
def test_without_a_login_a_run_is_offline_and_a_resumed_one_keeps_its_id(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from megacurl.observe.sinks.wandb import open_sink\n"
        "run_dir, resume, steps = Path(sys.argv[1]), eval(sys.argv[2]), eval(sys.argv[3])\n"
        "sink = open_sink(run_dir, resume)\n"
        "for step in steps:\n"
        "    sink.log(step, {'actor/loss': float('nan'), 'eval/a/avg@4': 0.5})\n"
        "sink.close()\n"
    )
    run_dir = tmp_path / "run"
    ids = []
    for resume, steps in (("None", "range(3)"), ("1", "range(2, 4)"), ("-1", "range(2)")):
        done = run_python(script, str(run_dir), resume, steps, HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
        ids.append((run_dir / "wandb_run_id.txt").read_text().strip())
    assert ids[0] == ids[1] != ids[2]
    folders = [path.name for path in (run_dir / "wandb").glob("offline-run-*")]
    assert len(folders) >= 2
    assert all(name.rsplit("-", 1)[1] in ids for name in folders)


def test_a_login_is_found_without_asking(tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine wandb.example.org login user password secret\n")
    (tmp_path / "broken").write_text("machine\n")
    script = (
        "import sys, types\n"
        "sys.modules['wandb'] = types.ModuleType('wandb')\n"
        "from megacurl.observe.sinks.wandb import _default_mode\n"
        "print(_default_mode())\n"
    )
    nothing = str(tmp_path / "absent")
    cases = [
        ({"NETRC": nothing}, "offline"),
        ({"NETRC": nothing, "WANDB_API_KEY": "k"}, "online"),
        ({"NETRC": str(tmp_path / "netrc")}, "offline"),
        ({"NETRC": str(tmp_path / "broken")}, "offline"),
        (
            {"NETRC": str(tmp_path / "netrc"), "WANDB_BASE_URL": "https://wandb.example.org"},
            "online",
        ),
    ]
    for environment, mode in cases:
        done = run_python(script, **environment)
        assert done.stdout.strip() == mode, (environment, done.stderr)
