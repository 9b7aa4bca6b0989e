// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Log-probability of a target and entropy from logits, without a softmax in memory. Forward gives the
// numbers that ranks with parts of the vocabulary merge; backward needs the merged ones.
#pragma once
#include "megacurl/platform.cuh"

namespace mc::MC_BACKEND {

constexpr int kLogProbThreads = 256;

// Over a set of scaled logits z: their maximum, sum exp(z - top), sum (z - top) exp(z - top).
struct Softmax {
  float top, sum, weighted;

  __device__ __forceinline__ void add(float z) {
    if (z > top) {
      const float shift = top - z, scale = expf(shift);
      weighted = scale * (weighted + shift * sum);
      sum = scale * sum + 1.f;
      top = z;
    } else {
      const float e = expf(z - top);
      sum += e;
      weighted += e == 0.f ? 0.f : (z - top) * e;  // a logit of -inf: no outcome
    }
  }
};

struct MergeSoftmax {
  static __device__ __forceinline__ Softmax moved(const Softmax& a, float top) {
    const float shift = a.top - top, scale = expf(shift);
    return {top, scale * a.sum, scale * (a.weighted + shift * a.sum)};
  }
  __device__ __forceinline__ Softmax operator()(const Softmax& a, const Softmax& b) const {
    const float top = a.top > b.top ? a.top : b.top;
    const Softmax p = moved(a, top), q = moved(b, top);
    return {top, p.sum + q.sum, p.weighted + q.weighted};
  }
};

// One block a row.
template <class Logit>
__global__ void __launch_bounds__(kLogProbThreads)
    log_prob_kernel(LogProbArgs a) {
  const int64_t row = blockIdx.x;
  const Logit* logits = static_cast<const Logit*>(a.logits) + row * a.columns;
  Softmax mine{kNoLogit, 0.f, 0.f};
  for (int64_t c = threadIdx.x; c < a.columns; c += kLogProbThreads)
    mine.add(to_float(logits[c]) * a.inverse_temperature);
  const Softmax all = block_reduce<kLogProbThreads / 32>(mine, MergeSoftmax{});
  if (threadIdx.x == 0) {
    const int64_t target = a.targets[row];
    const bool here = target >= 0 && target < a.columns;
    a.sums[row] = all.top;
    a.sums[a.rows + row] = all.sum;
    a.sums[2 * a.rows + row] = all.weighted;
    a.sums[3 * a.rows + row] = here ? to_float(logits[target]) * a.inverse_temperature : 0.f;
  }
}

__device__ __forceinline__ void put(float x, float& out) { out = x; }
__device__ __forceinline__ void put(float x, __nv_bfloat16& out) { out = __float2bfloat16_rn(x); }

// d log p_y / dz_j = 1[j = y] - p_j and dH / dz_j = -p_j (log p_j + H). One block a row.
template <class Logit>
__global__ void __launch_bounds__(kLogProbThreads)
    log_prob_grad_kernel(LogProbGradArgs a) {
  const int64_t row = blockIdx.x;
  const Logit* logits = static_cast<const Logit*>(a.logits) + row * a.columns;
  Logit* grad = static_cast<Logit*>(a.grad) + row * a.columns;
  const float normalizer = a.normalizer[row], entropy = a.entropy[row];
  const float by_log_prob = a.grad_log_prob[row], by_entropy = a.grad_entropy[row];
  const int64_t target = a.targets[row];
  for (int64_t c = threadIdx.x; c < a.columns; c += kLogProbThreads) {
    const float log_p = to_float(logits[c]) * a.inverse_temperature - normalizer;
    const float p = expf(log_p);
    float g = p == 0.f ? 0.f : -p * (by_log_prob + by_entropy * (log_p + entropy));
    if (c == target) g += by_log_prob;
    put(g * a.inverse_temperature, grad[c]);
  }
}

inline Status launch_log_prob(const LogProbArgs& a, void* stream) {
  if (a.rows == 0) return nullptr;
  const dim3 grid(unsigned(a.rows)), block(kLogProbThreads);
  if (a.bf16)
    MC_LAUNCH(log_prob_kernel<__nv_bfloat16>, grid, block, stream, a);
  else
    MC_LAUNCH(log_prob_kernel<float>, grid, block, stream, a);
  return launch_status();
}

inline Status launch_log_prob_grad(const LogProbGradArgs& a, void* stream) {
  if (a.rows == 0 || a.columns == 0) return nullptr;
  const dim3 grid(unsigned(a.rows)), block(kLogProbThreads);
  if (a.bf16)
    MC_LAUNCH(log_prob_grad_kernel<__nv_bfloat16>, grid, block, stream, a);
  else
    MC_LAUNCH(log_prob_grad_kernel<float>, grid, block, stream, a);
  return launch_status();
}

}  // namespace mc::MC_BACKEND
