// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Generalised advantage estimation over packed sequences, for two lambdas in one pass.
//
// Going back in time, the state (value of the next valid token V, advantages A_1, A_2) changes at a
// valid token to V' = v, A_i' = r - v + gamma V + g_i A_i with g_i = gamma lambda_i, and not at all at
// a masked one. Over a run of tokens, n of them valid, that makes for n > 0
//   A_i' = g_i^n A_i + gamma g_i^(n-1) V + k_i,
// so a run is described by (n, its earliest value, k_1, k_2), and runs join associatively: a block
// scans kGaeItems tokens a thread from the end of its sequence. The powers come from a table that is
// computed in double; multiplied up in float32, g^65536 would be off by 1e-3.
#pragma once
#include "megacurl/platform.cuh"

namespace mc::MC_BACKEND {

constexpr int kGaeThreads = 128, kGaeItems = 4, kGaeChunk = kGaeThreads * kGaeItems;
constexpr int kGaeWarps = kGaeThreads / 32;

struct GaeRun {
  int32_t n;
  float value, k1, k2;
};

struct GaeState {
  float next_value, a1, a2;
};

struct GaePowers {
  const float *p1, *p2;  // g_i^0 .. g_i^kGaeChunk, in shared memory
  float gamma;

  // `later` comes first in processing order: it holds the tokens nearer to the end.
  __device__ __forceinline__ GaeRun join(const GaeRun& later, const GaeRun& earlier) const {
    if (earlier.n == 0) return later;
    if (later.n == 0) return earlier;
    const float handed = gamma * later.value;
    return {later.n + earlier.n, earlier.value,
            earlier.k1 + p1[earlier.n] * later.k1 + p1[earlier.n - 1] * handed,
            earlier.k2 + p2[earlier.n] * later.k2 + p2[earlier.n - 1] * handed};
  }
  __device__ __forceinline__ GaeState apply(const GaeRun& run, const GaeState& s) const {
    if (run.n == 0) return s;
    const float handed = gamma * s.next_value;
    return {run.value, run.k1 + p1[run.n] * s.a1 + p1[run.n - 1] * handed,
            run.k2 + p2[run.n] * s.a2 + p2[run.n - 1] * handed};
  }
};

__device__ __forceinline__ double integer_power(double base, int exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

// Fills table[0 .. top] with the powers of `base`; the caller synchronises.
__device__ __forceinline__ void fill_powers(double base, int top, float* table) {
  const double step = integer_power(base, kGaeThreads);
  double power = integer_power(base, int(threadIdx.x));
  for (int e = int(threadIdx.x); e <= top; e += kGaeThreads, power *= step) table[e] = float(power);
}

__device__ __forceinline__ double clamp_lambda(double lambda) {
  return lambda < 0.0 ? 0.0 : lambda > 1.0 ? 1.0 : lambda;
}

// A thread's tokens, latest first.
struct GaeTokens {
  float reward[kGaeItems], value[kGaeItems];
  bool valid[kGaeItems];
};

template <class Value>
__device__ __forceinline__ void gae_load(const GaeArgs& a, int64_t begin, int latest,
                                         GaeTokens& tokens) {
  const Value* values = static_cast<const Value*>(a.values) + begin;
#pragma unroll
  for (int j = 0; j < kGaeItems; ++j) {
    const int t = latest - j;
    tokens.valid[j] = t >= 0 && (!a.mask || a.mask[begin + t]);
    tokens.reward[j] = tokens.valid[j] ? a.rewards[begin + t] : 0.f;
    tokens.value[j] = tokens.valid[j] ? to_float(values[t]) : 0.f;
  }
}

// One block a sequence.
template <class Value>
__global__ void __launch_bounds__(kGaeThreads)
    gae_kernel(GaeArgs a) {
  MC_SHARED(float, power1, kGaeChunk + 1);
  MC_SHARED(float, power2, kGaeChunk + 1);
  MC_SHARED(GaeRun, totals, 2 * kGaeWarps);  // two halves in turn: one barrier a chunk
  const int64_t s = blockIdx.x, begin = a.cu[s];
  const int length = int(a.cu[s + 1] - begin);
  const int lane = int(threadIdx.x & 31), warp = int(threadIdx.x >> 5);
  const double decay1 = a.gamma * clamp_lambda(a.lam_policy[s]);
  const double decay2 = a.gamma * clamp_lambda(a.lam_critic[s]);
  const int top = length < kGaeChunk ? length : kGaeChunk;
  fill_powers(decay1, top, power1);
  fill_powers(decay2, top, power2);
  __syncthreads();
  const float g1 = float(decay1), g2 = float(decay2), gamma = float(a.gamma);
  const GaePowers powers{power1, power2, gamma};
  GaeState carry{a.bootstrap ? a.bootstrap[s] : 0.f, 0.f, 0.f};
  int half = 0;
  for (int rest = length; rest > 0; rest -= kGaeChunk, half ^= 1) {
    const int latest = rest - 1 - int(threadIdx.x) * kGaeItems;
    GaeTokens tokens;
    gae_load<Value>(a, begin, latest, tokens);
    GaeRun run{0, 0.f, 0.f, 0.f};
#pragma unroll
    for (int j = 0; j < kGaeItems; ++j)
      if (tokens.valid[j]) {
        const float delta =
            tokens.reward[j] - tokens.value[j] + (run.n > 0 ? gamma * run.value : 0.f);
        run = {run.n + 1, tokens.value[j], delta + g1 * run.k1, delta + g2 * run.k2};
      }
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      const GaeRun before = shuffle_up(run, d);
      if (lane >= d) run = powers.join(before, run);
    }
    if (lane == 31) totals[half * kGaeWarps + warp] = run;
    const GaeRun before = shuffle_up(run, 1);
    __syncthreads();
    GaeState state = carry;
#pragma unroll
    for (int w = 0; w < kGaeWarps; ++w) {
      if (w == warp) state = carry;
      carry = powers.apply(totals[half * kGaeWarps + w], carry);
    }
    if (lane > 0) state = powers.apply(before, state);
#pragma unroll
    for (int j = 0; j < kGaeItems; ++j) {
      const int t = latest - j;
      if (tokens.valid[j]) {
        const float delta = tokens.reward[j] + gamma * state.next_value - tokens.value[j];
        state = {tokens.value[j], delta + g1 * state.a1, delta + g2 * state.a2};
      }
      if (t >= 0) {
        a.advantages[begin + t] = tokens.valid[j] ? state.a1 : 0.f;
        a.returns[begin + t] = tokens.valid[j] ? state.a2 + tokens.value[j] : 0.f;
      }
    }
  }
}

inline Status launch_gae(const GaeArgs& a, void* stream) {
  if (a.cu.sequences == 0) return nullptr;
  const dim3 grid(unsigned(a.cu.sequences));
  if (a.values_bf16)
    MC_LAUNCH(gae_kernel<__nv_bfloat16>, grid, dim3(kGaeThreads), stream, a);
  else
    MC_LAUNCH(gae_kernel<float>, grid, dim3(kGaeThreads), stream, a);
  return launch_status();
}

}  // namespace mc::MC_BACKEND
