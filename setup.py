# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Build script; the metadata is in pyproject.toml.

It exists for the compiled part: the CUDA and C++ kernels of ``csrc/`` become an extension module
``megacurl._C`` that is declared here. Until they are there the package is pure Python.
"""

from setuptools import setup

setup()
