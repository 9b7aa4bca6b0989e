// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The CUDA kernels, compiled for the host emulator. Test builds only.
#define MC_EMULATE 1
#include "kernels/launch.inl"
