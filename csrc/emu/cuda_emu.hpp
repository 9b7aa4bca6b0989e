// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Host emulation of the part of CUDA that the kernels use: run them, in tests, without a GPU.
//
// Every CUDA thread is a fiber. Fibers switch only where CUDA lets threads meet: __syncthreads,
// __syncwarp, shuffles and votes. Blocks run one after the other. The order of threads and blocks is
// an option, and what a GPU answers with a hang or with garbage is an error that names file and line:
// collectives that lanes of a mask reach at different places or not at all, lanes outside their mask,
// shuffles from such lanes, unequal numbers of barriers, empty grids, too much shared memory.
// Shared memory starts as NaN. Out-of-bounds accesses are left to AddressSanitizer
// and races to ThreadSanitizer, for which every fiber is a thread.
// Not modelled: memory order between blocks, launch limits by registers, fast-math, timing.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "emu/block.hpp"

#define __global__ inline
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

using cudaStream_t = void*;

namespace cuda_emu {

inline int lane() { return int(Block::current()->self().number & 31); }

template <class T>
T shuffle(uint32_t mask, const T& value, int source, const Site& site) {
  static_assert(std::is_trivially_copyable_v<T>, "shuffled as bytes");
  static_assert(sizeof(T) % 4 == 0, "shuffled as words on the device");
  // Large structs go in pieces of the buffer's width.
  constexpr size_t kPiece = 64;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  T result{};
  auto* out = reinterpret_cast<unsigned char*>(&result);
  for (size_t at = 0; at < sizeof(T); at += kPiece) {
    const Unwatched scope;
    const size_t n = std::min(kPiece, sizeof(T) - at);
    const auto* brought = Block::current()->meet(mask, bytes + at, n, site);
    if (!(mask >> (source & 31) & 1)) fail("a shuffle reads a lane outside the mask", site);
    std::memcpy(out + at, brought[source & 31], n);
  }
  return result;
}

inline uint32_t ballot(uint32_t mask, bool vote, const Site& site) {
  const Unwatched scope;
  const unsigned char mine = vote;
  const auto* brought = Block::current()->meet(mask, &mine, 1, site);
  uint32_t result = 0;
  for (int l = 0; l < 32; ++l)
    if (mask >> l & 1) result |= uint32_t(brought[l][0]) << l;
  return result;
}

inline void sync_warp(const Site& site, uint32_t mask = 0xffffffffu) {
  Block::current()->sync_warp(mask, site);
}

// CUDA's rule: a lane beyond the edge reads its own value.
inline int lane_up(int delta) { return lane() < delta ? lane() : lane() - delta; }
inline int lane_down(int delta) { return lane() + delta > 31 ? lane() : lane() + delta; }

}  // namespace cuda_emu

#define MC_EMU_SITE(what) \
  ::cuda_emu::Site { what, __FILE__, __LINE__ }
#define __syncthreads() ::cuda_emu::Block::current()->barrier(MC_EMU_SITE("__syncthreads"))
#define __syncwarp(...) \
  ::cuda_emu::sync_warp(MC_EMU_SITE("__syncwarp") __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(mask, value, source) \
  ::cuda_emu::shuffle((mask), (value), (source), MC_EMU_SITE("__shfl_sync"))
#define __shfl_xor_sync(mask, value, lanes) \
  ::cuda_emu::shuffle((mask), (value), ::cuda_emu::lane() ^ (lanes), MC_EMU_SITE("__shfl_xor_sync"))
#define __shfl_up_sync(mask, value, delta)                      \
  ::cuda_emu::shuffle((mask), (value), ::cuda_emu::lane_up(delta), \
                      MC_EMU_SITE("__shfl_up_sync"))
#define __shfl_down_sync(mask, value, delta)                      \
  ::cuda_emu::shuffle((mask), (value), ::cuda_emu::lane_down(delta), \
                      MC_EMU_SITE("__shfl_down_sync"))
#define __ballot_sync(mask, vote) \
  ::cuda_emu::ballot((mask), (vote), MC_EMU_SITE("__ballot_sync"))

struct __nv_bfloat16 {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 x) {
  const uint32_t bits = uint32_t(x.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {uint16_t(0x7fff)};  // NaN
  return {uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};       // half to even
}

// One array a block for each declaration and each instance of a template around it.
#define MC_SHARED(T, name, n)            \
  static const char mc_shared_tag_##name = 0; \
  T* const name =                        \
      static_cast<T*>(::cuda_emu::Block::current()->shared(&mc_shared_tag_##name, (n) * sizeof(T)))
#define MC_LAUNCH(kernel, grid, block, stream, ...) \
  ((void)(stream), ::cuda_emu::launch((grid), (block), [&] { kernel(__VA_ARGS__); }))
