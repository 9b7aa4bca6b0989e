// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// AVX-512 F, VL, DQ, BW (Skylake-X, Zen 4 and later).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/table.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi,bmi2")
namespace mc::cpu {
namespace avx512 {
#include "cpu/kernels.inl"
}  // namespace avx512

const Table kAvx512Table = {"avx512",
                            avx512::moments,
                            avx512::gae,
                            avx512::scale,
                            avx512::policy_loss,
                            avx512::value_loss,
                            avx512::softmax,
                            avx512::softmax_grad};
}  // namespace mc::cpu
#pragma GCC pop_options
#endif
