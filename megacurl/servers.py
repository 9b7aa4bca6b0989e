# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The rollout servers of a run: started by its first rank, known to all."""

from __future__ import annotations

import asyncio
from pathlib import Path

from megacurl.config.errors import ConfigError
from megacurl.config.schema import Config
from megacurl.megatron.groups import Grid
from megacurl.rollout.engine import RolloutEngine
from megacurl.rollout.errors import RolloutError
from megacurl.rollout.servers.endpoint import Endpoint, wait_until_up
from megacurl.rollout.servers.launch import LaunchedServers, VLLMSettings

_START_S = 600.0


def start_servers(
    engine: RolloutEngine, config: Config, grid: Grid, folder: Path
) -> LaunchedServers | None:
    """Start ``--rollout-launch`` servers and attach every rank's engine to them; collective.

    Args:
        engine: this rank's, not started.
        config: the run's settings.
        grid: this rank's place.
        folder: receives the servers' logs.

    Returns:
        On the first rank the servers, which end with ``close``; None where there are none.

    Raises:
        ConfigError: on all ranks, if they do not come up; tells the end of a log.
    """
    count = config.rollout.rollout_launch
    if not count:
        return None
    if grid.device.type != "cpu":
        raise ConfigError(
            f"--rollout-launch {count}: on GPUs, which are the trainer's, give --rollout-urls of "
            "servers that you started elsewhere; docs/rollout.md has the command"
        )
    servers, problem = None, None
    if grid.rank == 0:
        try:
            servers = LaunchedServers(_settings(engine, config), count, folder)
            asyncio.run(_wait(servers))
        except (RolloutError, OSError) as error:
            problem = f"--rollout-launch {count}: {error}"
            if servers:
                servers.close()
    urls, problem = grid.gather_objects((servers.urls if servers else [], problem))[0]
    if problem:
        raise ConfigError(problem)
    engine.attach(urls)
    return servers


def _settings(engine: RolloutEngine, config: Config) -> VLLMSettings:
    return VLLMSettings(
        model=config.model.hf_checkpoint,
        dtype="bfloat16" if config.model.bf16 else "float32",
        max_model_len=engine.max_model_len,
        max_batch_size=config.rollout.rollout_max_batch_size,
        kv_cache_mb=config.rollout.rollout_kv_cache_mb,
    )


async def _wait(servers: LaunchedServers) -> None:
    """Until all answer; a server that ends instead tells why at once."""
    async with Endpoint.opened(*servers.urls) as endpoints:
        for endpoint in endpoints:
            await wait_until_up(endpoint, _START_S, servers.check)
