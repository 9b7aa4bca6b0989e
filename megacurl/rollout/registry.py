# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Engines by name: a file ``<name>_engine.py`` in this package that defines ``ENGINE`` is one.

A name has ``-`` where the file has ``_``.

Files are only listed until one is asked for: the libraries behind engines are heavy, optional,
and some change the process they are imported into.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import megacurl.rollout
from megacurl.rollout.engine import RolloutEngine
from megacurl.utils.names import nearest_hint

_SUFFIX = "_engine"
_external: dict[str, str] = {}


def register_engine(name: str, module: str) -> None:
    """Offer an engine that lives outside this package.

    Args:
        name: name to select it by.
        module: importable module with an attribute ``ENGINE``, a subclass of ``RolloutEngine``.
    """
    if name in engine_names():
        raise ValueError(f"rollout engine {name!r} exists already; choose another name")
    _external[name] = module


def engine_names() -> list[str]:
    """Names that ``create_engine`` accepts, sorted."""
    found = {
        info.name.removesuffix(_SUFFIX).replace("_", "-")
        for info in pkgutil.iter_modules(megacurl.rollout.__path__)
        if info.name.endswith(_SUFFIX)
    }
    return sorted(found | set(_external))


def engine_class(name: str) -> type[RolloutEngine]:
    """Import an engine's file and return its class.

    Raises:
        ValueError: no such engine; names the nearest one.
        ImportError: the engine's library is not installed.
    """
    names = engine_names()
    if name not in names:
        raise ValueError(
            f"unknown rollout engine {name!r}{nearest_hint(name, names)};"
            f" available: {', '.join(names)}"
        )
    module = importlib.import_module(
        _external.get(name) or f"{megacurl.rollout.__name__}.{name.replace('-', '_')}{_SUFFIX}"
    )
    engine = getattr(module, "ENGINE", None)
    if not (isinstance(engine, type) and issubclass(engine, RolloutEngine)):
        raise TypeError(f"{module.__name__}: ENGINE must be a subclass of RolloutEngine")
    return engine


def create_engine(name: str, **settings: Any) -> RolloutEngine:
    """Build the engine called ``name`` (not started).

    Args:
        name: one of ``engine_names()``.
        settings: keyword arguments of its class; None stands for the engine's own default.

    Raises:
        ValueError: no such engine, no such setting, or a value that the engine refuses.
        ImportError: the engine's library is not installed.
    """
    engine = engine_class(name)
    known = list(inspect.signature(engine).parameters)
    given = {key: value for key, value in settings.items() if value is not None}
    for key in given:
        if key not in known:
            raise ValueError(
                f"the {name} engine has no setting {key!r}{nearest_hint(key, known)};"
                f" its settings: {', '.join(known)}"
            )
    return engine(**given)
