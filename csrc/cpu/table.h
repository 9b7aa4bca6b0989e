// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The inner loops of the CPU backend: one table of functions for each instruction set.
#pragma once
#include "megacurl/api.h"

namespace mc::cpu {

struct Moments {
  double count = 0, mean = 0, m2 = 0;

  void merge(const Moments& other) {  // Chan et al. 1979
    const double total = count + other.count;
    if (other.count == 0) return;
    const double delta = other.mean - mean, share = other.count / total;
    m2 += other.m2 + delta * delta * count * share;
    mean += delta * share;
    count = total;
  }
};

struct GaeSequence {
  const void* values;
  bool values_bf16;
  const float* rewards;
  const uint8_t* mask;
  int64_t length;
  double decay_policy, decay_critic;  // gamma lambda
  float gamma, bootstrap;
  float *advantages, *returns;
};

// Of one row of scaled logits; see LogProbArgs.
struct SoftmaxSums {
  float top, sum, weighted;
};

struct SoftmaxGrad {
  int64_t columns, target;
  float scale, normalizer, entropy, by_log_prob, by_entropy;
};

struct Table {
  const char* name;
  Moments (*moments)(const void* values, bool bf16, const uint8_t* mask, int64_t n);
  void (*gae)(const GaeSequence&);
  void (*scale)(const float* x, float factor, int64_t n, float* out);
  // Tokens [begin, end) of a loss; row: the columns of its statistics, overwritten.
  void (*policy_loss)(const PolicyLossArgs&, int64_t begin, int64_t end, double* row);
  void (*value_loss)(const ValueLossArgs&, int64_t begin, int64_t end, double* row);
  SoftmaxSums (*softmax)(const void* logits, bool bf16, int64_t columns, float scale);
  void (*softmax_grad)(const void* logits, bool bf16, const SoftmaxGrad&, void* grad);
};

extern const Table kBaseTable;
#if defined(__x86_64__)
extern const Table kAvx2Table, kAvx512Table;
#endif

// The best of them for this processor, or the one that MEGACURL_CPU_ISA names.
const Table& table();

}  // namespace mc::cpu
