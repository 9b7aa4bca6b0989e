// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// AVX2 and FMA (Haswell, Zen and later).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/table.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
namespace mc::cpu {
namespace avx2 {
#include "cpu/kernels.inl"
}  // namespace avx2

const Table kAvx2Table = {"avx2",
                          avx2::moments,
                          avx2::gae,
                          avx2::scale,
                          avx2::policy_loss,
                          avx2::value_loss,
                          avx2::softmax,
                          avx2::softmax_grad};
}  // namespace mc::cpu
#pragma GCC pop_options
#endif
