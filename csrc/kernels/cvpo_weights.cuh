// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// W_S and W_D of every trajectory, and their product on every token's advantage (CVPO Eq. 27).
#pragma once
#include "megacurl/cvpo.h"
#include "megacurl/platform.cuh"

namespace mc::MC_BACKEND {

constexpr int kWeightThreads = 128;

__global__ void __launch_bounds__(kWeightThreads)
    cvpo_weights_kernel(CvpoWeightsArgs a) {
  const int64_t i = int64_t(blockIdx.x) * kWeightThreads + threadIdx.x;
  if (i >= a.trajectories) return;
  a.w_s[i] = stochasticity_weight(a, i);
  a.w_d[i] = difficulty_weight(a, i);
}

inline Status launch_cvpo_weights(const CvpoWeightsArgs& a, void* stream) {
  if (a.trajectories == 0) return nullptr;
  const dim3 grid(unsigned((a.trajectories + kWeightThreads - 1) / kWeightThreads));
  MC_LAUNCH(cvpo_weights_kernel, grid, dim3(kWeightThreads), stream, a);
  return launch_status();
}

// One block a sequence.
__global__ void __launch_bounds__(kWeightThreads)
    apply_weights_kernel(ApplyWeightsArgs a) {
  const int64_t s = blockIdx.x, begin = a.cu[s];
  const int length = int(a.cu[s + 1] - begin);
  const float weight = float(a.w_s[s] * (a.w_d ? a.w_d[s] : 1.0));
  for (int t = int(threadIdx.x); t < length; t += kWeightThreads)
    a.weighted[begin + t] = weight * a.advantages[begin + t];
}

inline Status launch_apply_weights(const ApplyWeightsArgs& a, void* stream) {
  if (a.cu.sequences == 0) return nullptr;
  const dim3 grid(unsigned(a.cu.sequences));
  MC_LAUNCH(apply_weights_kernel, grid, dim3(kWeightThreads), stream, a);
  return launch_status();
}

}  // namespace mc::MC_BACKEND
