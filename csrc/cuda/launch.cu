// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The only unit that nvcc compiles.
#include "kernels/launch.inl"
