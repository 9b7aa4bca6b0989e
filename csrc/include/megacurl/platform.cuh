// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The few things in which nvcc and the host emulator differ, and the reductions built on them.
// Kernels include this file and nothing of CUDA, so each of them is one source for both.
#pragma once
#include "megacurl/api.h"

#if defined(MC_EMULATE)
#include "emu/cuda_emu.hpp"
#define MC_BACKEND emu
#else
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#define MC_BACKEND cuda
// A shared array of n elements, uninitialised.
#define MC_SHARED(T, name, n) __shared__ T name[n]
#define MC_LAUNCH(kernel, grid, block, stream, ...) \
  kernel<<<(grid), (block), 0, static_cast<cudaStream_t>(stream)>>>(__VA_ARGS__)
#endif

namespace mc::MC_BACKEND {

constexpr unsigned kFullWarp = 0xffffffffu;

// The error of the launches since the last call, if any.
inline Status launch_status() {
#if defined(MC_EMULATE)
  return nullptr;
#else
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
#endif
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

// Shuffles of whole structs: the host exchanges them at once, the device word by word.
#if defined(MC_EMULATE)
template <class T>
T shuffle_up(const T& value, int delta) {
  return __shfl_up_sync(kFullWarp, value, delta);
}
template <class T>
T shuffle_xor(const T& value, int lanes) {
  return __shfl_xor_sync(kFullWarp, value, lanes);
}
#else
template <class T, class Exchange>
__device__ __forceinline__ T exchange_words(const T& value, Exchange exchange) {
  static_assert(sizeof(T) % 4 == 0, "only whole words are shuffled");
  union Words {
    T whole;
    unsigned word[sizeof(T) / 4];
    __device__ Words() {}
  } words;
  words.whole = value;
#pragma unroll
  for (int i = 0; i < int(sizeof(T) / 4); ++i) words.word[i] = exchange(words.word[i]);
  return words.whole;
}
template <class T>
__device__ __forceinline__ T shuffle_up(const T& value, int delta) {
  return exchange_words(value, [=](unsigned w) { return __shfl_up_sync(kFullWarp, w, delta); });
}
template <class T>
__device__ __forceinline__ T shuffle_xor(const T& value, int lanes) {
  return exchange_words(value, [=](unsigned w) { return __shfl_xor_sync(kFullWarp, w, lanes); });
}
#endif

// Every lane of a full warp ends with the total; merge must be commutative up to rounding.
template <class T, class Merge>
__device__ __forceinline__ T warp_reduce(T value, Merge merge) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes >>= 1) value = merge(value, shuffle_xor(value, lanes));
  return value;
}

// Every thread of a block of kWarps warps ends with the total, merged in the order of the warps.
// The order is fixed, so the same input gives the same bits.
template <int kWarps, class T, class Merge>
__device__ __forceinline__ T block_reduce(T value, Merge merge) {
  MC_SHARED(T, part, kWarps);
  value = warp_reduce(value, merge);
  __syncthreads();  // an earlier reduction may still be reading
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = value;
  __syncthreads();
  T total = part[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) total = merge(total, part[w]);
  return total;
}

}  // namespace mc::MC_BACKEND
