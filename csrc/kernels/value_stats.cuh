// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Spread of the values of each sequence, and means over groups of sequences.
#pragma once
#include "kernels/moments.cuh"

namespace mc::MC_BACKEND {

constexpr int kStatsThreads = 128;

// One block a sequence.
template <class Value>
__global__ void __launch_bounds__(kStatsThreads)
    value_stats_kernel(ValueStatsArgs a) {
  const int64_t s = blockIdx.x, begin = a.cu[s];
  const int length = int(a.cu[s + 1] - begin);
  const Value* values = static_cast<const Value*>(a.values) + begin;
  const uint8_t* mask = a.mask ? a.mask + begin : nullptr;
  RunningMoments mine;
  for (int t = int(threadIdx.x); t < length; t += kStatsThreads)
    if (!mask || mask[t]) mine.add(to_float(values[t]));
  const Moments all = block_reduce<kStatsThreads / 32>(mine.total(), MergeMoments{});
  if (threadIdx.x == 0) {
    a.count[s] = all.count;
    a.mean[s] = all.mean;
    a.m2[s] = all.m2;
  }
}

inline Status launch_value_stats(const ValueStatsArgs& a, void* stream) {
  if (a.cu.sequences == 0) return nullptr;
  const dim3 grid(unsigned(a.cu.sequences));
  if (a.values_bf16)
    MC_LAUNCH(value_stats_kernel<__nv_bfloat16>, grid, dim3(kStatsThreads), stream, a);
  else
    MC_LAUNCH(value_stats_kernel<float>, grid, dim3(kStatsThreads), stream, a);
  return launch_status();
}

struct GroupSum {
  double sum, count;
};

// One warp a group: prompts have few responses.
__global__ void __launch_bounds__(kStatsThreads)
    group_mean_kernel(GroupMeanArgs a) {
  const int64_t g = int64_t(blockIdx.x) * (kStatsThreads / 32) + (threadIdx.x >> 5);
  const int lane = int(threadIdx.x & 31);
  if (g >= a.groups.sequences) return;  // whole warps leave
  GroupSum mine{0.0, 0.0};
  const int64_t end = a.groups[g + 1];
  for (int64_t i = a.groups[g] + lane; i < end; i += 32)
    if (!a.include || a.include[i]) mine = {mine.sum + a.x[i], mine.count + 1.0};
  mine = warp_reduce(mine, [](const GroupSum& p, const GroupSum& q) {
    return GroupSum{p.sum + q.sum, p.count + q.count};
  });
  if (lane == 0) {
    a.mean[g] = mine.count > 0.0 ? mine.sum / mine.count : 0.0;
    a.count[g] = mine.count;
  }
}

inline Status launch_group_mean(const GroupMeanArgs& a, void* stream) {
  if (a.groups.sequences == 0) return nullptr;
  constexpr int kWarps = kStatsThreads / 32;
  const dim3 grid(unsigned((a.groups.sequences + kWarps - 1) / kWarps));
  MC_LAUNCH(group_mean_kernel, grid, dim3(kStatsThreads), stream, a);
  return launch_status();
}

}  // namespace mc::MC_BACKEND
