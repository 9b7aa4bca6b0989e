// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Plain x86-64, or whatever the compiler's default is.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/table.h"

namespace mc::cpu {
namespace base {
#include "cpu/kernels.inl"
}  // namespace base

const Table kBaseTable = {"base",
                          base::moments,
                          base::gae,
                          base::scale,
                          base::policy_loss,
                          base::value_loss,
                          base::softmax,
                          base::softmax_grad};
}  // namespace mc::cpu
