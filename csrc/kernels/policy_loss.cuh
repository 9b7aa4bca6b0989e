// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Clipped policy loss: the loss, its gradient by the log-probabilities, and statistics, in one pass.
//   L = sum_t c_t w_t f(r_t, A_t),  f = -min(r A, clip(r, low, high) A), at most -dual_clip A for A < 0
// Blocks write rows that a second launch adds in a fixed order: the same input gives the same bits.
#pragma once
#include "megacurl/platform.cuh"

namespace mc::MC_BACKEND {

constexpr int kLossThreads = 256;

struct PolicyRow {
  float column[kPolicyStats];
};

__device__ __forceinline__ PolicyRow empty_policy_row() {
  PolicyRow row{};
  row.column[kPolicyMaxRatio] = row.column[kPolicyMinRatio] = 1.f;
  return row;
}

// Adds columns, but takes the larger or smaller of the two ratios.
struct MergePolicy {
  template <class Column>
  static __device__ __forceinline__ void into(Column* total, const Column* other) {
#pragma unroll
    for (int i = 0; i < kPolicyMaxRatio; ++i) total[i] += other[i];
    if (other[kPolicyMaxRatio] > total[kPolicyMaxRatio])
      total[kPolicyMaxRatio] = other[kPolicyMaxRatio];
    if (other[kPolicyMinRatio] < total[kPolicyMinRatio])
      total[kPolicyMinRatio] = other[kPolicyMinRatio];
  }
  __device__ __forceinline__ PolicyRow operator()(PolicyRow a, const PolicyRow& b) const {
    into(a.column, b.column);
    return a;
  }
};

// Returns the gradient at a valid token. Comparisons, unlike fminf, let a NaN through to the loss.
__device__ __forceinline__ float policy_token(const PolicyLossArgs& a, int64_t t, PolicyRow& row) {
  const float log_ratio = a.log_probs[t] - a.old_log_probs[t], advantage = a.advantages[t];
  const float limit = a.log_ratio_clamp;
  const bool clamped = log_ratio > limit || log_ratio < -limit;
  const float exponent = log_ratio > limit ? limit : log_ratio < -limit ? -limit : log_ratio;
  const float ratio = expf(exponent);
  float loss = -ratio * advantage, slope = clamped ? 0.f : loss;
  float* column = row.column;
  if (ratio > a.high && advantage > 0.f) {
    loss = -a.high * advantage;
    slope = 0.f;
    column[kPolicyClippedHigh] += 1.f;
  } else if (ratio < a.low && advantage < 0.f) {
    loss = -a.low * advantage;
    slope = 0.f;
    column[kPolicyClippedLow] += 1.f;
  } else if (a.dual_clip > 0.f && ratio > a.dual_clip && advantage < 0.f) {
    loss = -a.dual_clip * advantage;
    slope = 0.f;
    column[kPolicyDualClipped] += 1.f;
  }
  const float factor = a.coefficients[t] * (a.token_weights ? a.token_weights[t] : 1.f);
  column[kPolicyLoss] += factor * loss;
  column[kPolicyTokens] += 1.f;
  column[kPolicyK1] -= log_ratio;
  column[kPolicyK3] += ratio - 1.f - exponent;
  column[kPolicyRatio] += ratio;
  if (a.entropy) column[kPolicyEntropy] += a.entropy[t];
  if (ratio > column[kPolicyMaxRatio]) column[kPolicyMaxRatio] = ratio;
  if (ratio < column[kPolicyMinRatio]) column[kPolicyMinRatio] = ratio;
  return factor * slope;
}

__global__ void __launch_bounds__(kLossThreads)
    policy_loss_kernel(PolicyLossArgs a) {
  const int64_t begin = int64_t(blockIdx.x) * kLossTile;
  const int64_t end = begin + kLossTile < a.tokens ? begin + kLossTile : a.tokens;
  PolicyRow row = empty_policy_row();
  for (int64_t t = begin + threadIdx.x; t < end; t += kLossThreads)
    a.grad[t] = !a.mask || a.mask[t] ? policy_token(a, t, row) : 0.f;
  row = block_reduce<kLossThreads / 32>(row, MergePolicy{});
  if (threadIdx.x == 0)
    for (int i = 0; i < kPolicyStats; ++i)
      a.partial[int64_t(blockIdx.x) * kPolicyStats + i] = double(row.column[i]);
}

struct PolicyTotal {
  double column[kPolicyStats];
};

// One warp: few rows, and few bytes to shuffle.
__global__ void __launch_bounds__(32)
    policy_total_kernel(PolicyLossArgs a, int64_t rows) {
  PolicyTotal total{};
  total.column[kPolicyMaxRatio] = total.column[kPolicyMinRatio] = 1.0;
  for (int64_t r = threadIdx.x; r < rows; r += 32)
    MergePolicy::into(total.column, a.partial + r * kPolicyStats);
  total = warp_reduce(total, [](PolicyTotal p, const PolicyTotal& q) {
    MergePolicy::into(p.column, q.column);
    return p;
  });
  if (threadIdx.x == 0) {
    for (int i = 0; i < kPolicyStats; ++i) a.stats[i] = total.column[i];
    *a.loss = float(total.column[kPolicyLoss]);
  }
}

inline Status launch_policy_loss(const PolicyLossArgs& a, void* stream) {
  const int64_t blocks = loss_blocks(a.tokens);
  if (blocks > 0)
    MC_LAUNCH(policy_loss_kernel, dim3(unsigned(blocks)), dim3(kLossThreads), stream, a);
  MC_LAUNCH(policy_total_kernel, dim3(1), dim3(32), stream, a, blocks);
  return launch_status();
}

}  // namespace mc::MC_BACKEND
