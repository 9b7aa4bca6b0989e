// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Everything that is compiled once for each instruction set, inside its own namespace.
#include "cpu/vector.inl"
//
#include "cpu/stats.inl"
//
#include "cpu/gae.inl"
#include "cpu/log_prob.inl"
#include "cpu/losses.inl"
