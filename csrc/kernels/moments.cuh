// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Count, mean and sum of squared deviations that merge (Welford 1962, Chan et al. 1979).
#pragma once
#include "megacurl/platform.cuh"

namespace mc::MC_BACKEND {

struct Moments {
  double count, mean, m2;
};

// 1/x to 1e-14, by one Newton step from float32. A division in double has a slow path that needs
// stack memory.
__device__ __forceinline__ double reciprocal(double x) {
  const double guess = double(1.f / float(x));
  return guess * (2.0 - x * guess);
}

struct MergeMoments {
  __device__ __forceinline__ Moments operator()(const Moments& a, const Moments& b) const {
    const double count = a.count + b.count;
    if (count == 0.0) return a;
    const double delta = b.mean - a.mean, share = b.count * reciprocal(count);
    return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
  }
};

// One thread's numbers, in float32 around its first one, so that a large common offset costs nothing.
struct RunningMoments {
  float pivot = 0.f, count = 0.f, shift = 0.f, m2 = 0.f;

  __device__ __forceinline__ void add(float x) {
    if (count == 0.f) pivot = x;
    count += 1.f;
    const float delta = (x - pivot) - shift;
    shift += delta / count;
    m2 += delta * ((x - pivot) - shift);
  }
  __device__ __forceinline__ Moments total() const {
    return {double(count), double(pivot) + double(shift), double(m2)};
  }
};

}  // namespace mc::MC_BACKEND
