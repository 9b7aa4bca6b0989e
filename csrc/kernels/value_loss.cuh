// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The critic's squared error, plain or clipped around the old values, with its gradient and the
// moments from which explained variance is exact.
#pragma once
#include "kernels/moments.cuh"
#include "kernels/policy_loss.cuh"

namespace mc::MC_BACKEND {

struct ValueSums {
  float loss, clipped, squared_error;
};

struct AddValueSums {
  __device__ __forceinline__ ValueSums operator()(const ValueSums& a, const ValueSums& b) const {
    return {a.loss + b.loss, a.clipped + b.clipped, a.squared_error + b.squared_error};
  }
};

// Returns the gradient at a valid token.
__device__ __forceinline__ float value_token(const ValueLossArgs& a, int64_t t, ValueSums& sums) {
  const float value = a.values[t], target = a.returns[t], gap = value - target;
  const float error = gap * gap;
  float loss = error, slope = 2.f * gap;
  if (a.old_values) {
    const float low = a.old_values[t] - a.value_clip, high = a.old_values[t] + a.value_clip;
    const float inside = (value < low ? low : value > high ? high : value) - target;
    if (inside * inside > error) {
      loss = inside * inside;
      slope = 0.f;
      sums.clipped += 1.f;
    }
  }
  const float factor = a.coefficients[t] * a.factor;
  sums.loss += factor * loss;
  sums.squared_error += error;
  return factor * slope;
}

__device__ __forceinline__ void write_value_row(double* row, const ValueSums& sums,
                                                const Moments& residual, const Moments& target) {
  row[kValueLoss] = double(sums.loss);
  row[kValueTokens] = target.count;
  row[kValueClipped] = double(sums.clipped);
  row[kValueSquaredError] = double(sums.squared_error);
  row[kResidualMean] = residual.mean;
  row[kResidualM2] = residual.m2;
  row[kReturnMean] = target.mean;
  row[kReturnM2] = target.m2;
}

__global__ void __launch_bounds__(kLossThreads)
    value_loss_kernel(ValueLossArgs a) {
  const int64_t begin = int64_t(blockIdx.x) * kLossTile;
  const int64_t end = begin + kLossTile < a.tokens ? begin + kLossTile : a.tokens;
  ValueSums sums{0.f, 0.f, 0.f};
  RunningMoments residual, target;
  for (int64_t t = begin + threadIdx.x; t < end; t += kLossThreads) {
    float grad = 0.f;
    if (!a.mask || a.mask[t]) {
      grad = value_token(a, t, sums);
      residual.add(a.returns[t] - a.values[t]);
      target.add(a.returns[t]);
    }
    a.grad[t] = grad;
  }
  constexpr int kWarps = kLossThreads / 32;
  sums = block_reduce<kWarps>(sums, AddValueSums{});
  const Moments residuals = block_reduce<kWarps>(residual.total(), MergeMoments{});
  const Moments targets = block_reduce<kWarps>(target.total(), MergeMoments{});
  if (threadIdx.x == 0)
    write_value_row(a.partial + int64_t(blockIdx.x) * kValueStats, sums, residuals, targets);
}

struct ValueTotal {
  double loss, clipped, squared_error;
  Moments residual, target;
};

struct MergeValueTotal {
  __device__ __forceinline__ ValueTotal operator()(const ValueTotal& a, const ValueTotal& b) const {
    const MergeMoments merge;
    return {a.loss + b.loss, a.clipped + b.clipped, a.squared_error + b.squared_error,
            merge(a.residual, b.residual), merge(a.target, b.target)};
  }
};

__device__ __forceinline__ ValueTotal read_value_row(const double* row) {
  const double count = row[kValueTokens];
  return {row[kValueLoss], row[kValueClipped], row[kValueSquaredError],
          Moments{count, row[kResidualMean], row[kResidualM2]},
          Moments{count, row[kReturnMean], row[kReturnM2]}};
}

__global__ void __launch_bounds__(32)
    value_total_kernel(ValueLossArgs a, int64_t rows) {
  ValueTotal total{};
  for (int64_t r = threadIdx.x; r < rows; r += 32)
    total = MergeValueTotal{}(total, read_value_row(a.partial + r * kValueStats));
  total = warp_reduce(total, MergeValueTotal{});
  if (threadIdx.x == 0) {
    a.stats[kValueLoss] = total.loss;
    a.stats[kValueTokens] = total.target.count;
    a.stats[kValueClipped] = total.clipped;
    a.stats[kValueSquaredError] = total.squared_error;
    a.stats[kResidualMean] = total.residual.mean;
    a.stats[kResidualM2] = total.residual.m2;
    a.stats[kReturnMean] = total.target.mean;
    a.stats[kReturnM2] = total.target.m2;
    *a.loss = float(total.loss);
  }
}

inline Status launch_value_loss(const ValueLossArgs& a, void* stream) {
  const int64_t blocks = loss_blocks(a.tokens);
  if (blocks > 0)
    MC_LAUNCH(value_loss_kernel, dim3(unsigned(blocks)), dim3(kLossThreads), stream, a);
  MC_LAUNCH(value_total_kernel, dim3(1), dim3(32), stream, a, blocks);
  return launch_status();
}

}  // namespace mc::MC_BACKEND
