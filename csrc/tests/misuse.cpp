// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each, which the emulator must catch, and two without.
//   misuse NAME        runs that case; "wrong" on the output means that the result showed the mistake
#define MC_EMULATE 1
#include <functional>
#include <map>
#include <string>

#include "megacurl/platform.cuh"

using mc::emu::kFullWarp;

namespace {

__global__ void nothing() {}
__global__ void half_a_warp() {
  if (threadIdx.x < 16) (void)__shfl_xor_sync(kFullWarp, 1.f, 1);
}
__global__ void not_in_the_mask() { (void)__shfl_xor_sync(0x0000ffffu, 1.f, 1); }
__global__ void reads_outside_the_mask() {
  if (threadIdx.x < 16) (void)__shfl_sync(0x0000ffffu, 1.f, 20);
}
__global__ void names_missing_lanes() { (void)__shfl_xor_sync(kFullWarp, 1.f, 1); }
__global__ void two_shuffles() {
  if (threadIdx.x & 1)
    (void)__shfl_xor_sync(kFullWarp, 1.f, 2);
  else
    (void)__shfl_xor_sync(kFullWarp, 2.f, 2);
}
__global__ void barrier_in_a_branch() {
  if (threadIdx.x < 32) __syncthreads();
}
__global__ void two_barriers() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void barrier_against_shuffle() {
  if (threadIdx.x < 32)
    __syncthreads();
  else if (threadIdx.x < 63)
    (void)__ballot_sync(kFullWarp, 1);
}
__global__ void reads_unwritten(float* out) {
  MC_SHARED(float, s, 64);
  s[threadIdx.x] = float(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void too_much_shared(float* out) {
  MC_SHARED(float, s, 20000);
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[threadIdx.x];
}
__global__ void beyond_shared(float* out) {
  MC_SHARED(float, s, 32);
  s[threadIdx.x] = 1;
  out[threadIdx.x & 31] = s[threadIdx.x];
}
struct alignas(16) Four {
  float x[4];
};
__global__ void misaligned(float* out) {
  out[threadIdx.x] = reinterpret_cast<const Four*>(out + 33)[threadIdx.x & 1].x[0];
}
// Reverses 0..63 over two warps; right only with the barrier.
__global__ void reverses(float* out, bool synchronises) {
  MC_SHARED(float, s, 64);
  s[threadIdx.x] = float(threadIdx.x);
  if (synchronises) __syncthreads();
  out[64 * blockIdx.x + threadIdx.x] = s[63 - threadIdx.x];
}
// Right as a result, but blocks add to the same number and a shuffle does not order memory.
__global__ void blocks_race(float* out) {
  if (threadIdx.x == 0) out[64] += 1.f;
}
__global__ void shuffle_as_barrier(float* out) {
  MC_SHARED(float, s, 32);
  s[threadIdx.x] = float(threadIdx.x);
  (void)__shfl_xor_sync(kFullWarp, 1.f, 1);
  out[threadIdx.x] = s[31 - threadIdx.x] + 32;
}
__global__ void warp_barrier(float* out) {
  MC_SHARED(float, s, 32);
  s[threadIdx.x] = float(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = s[31 - threadIdx.x] + 32;
}
__global__ void votes(float* out) {
  const unsigned ballot = __ballot_sync(kFullWarp, threadIdx.x & 1);
  __syncwarp();
  const float below = __shfl_up_sync(kFullWarp, float(threadIdx.x), 1);
  const float above = __shfl_down_sync(kFullWarp, float(threadIdx.x), 1);
  const float edge = (threadIdx.x == 0 || threadIdx.x == 31) ? 1.f : 2.f;
  const float off = ballot == 0xaaaaaaaau ? above - below - edge : 1.f;
  out[64 * blockIdx.x + threadIdx.x] = 63 - float(threadIdx.x) + off;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2)
    cuda_emu::options().order =
        std::string(argv[2]) == "reverse" ? cuda_emu::Order::reverse : cuda_emu::Order::forward;
  std::vector<float> memory(4096, -1.f);
  float* out = memory.data();
  bool reversed = false;  // the case writes 63 - i to out[i]
  const std::map<std::string, std::function<void()>> cases = {
      {"empty_grid", [] { MC_LAUNCH(nothing, dim3(0), dim3(32), nullptr); }},
      {"big_block", [] { MC_LAUNCH(nothing, dim3(1), dim3(2000), nullptr); }},
      {"half_a_warp", [] { MC_LAUNCH(half_a_warp, dim3(1), dim3(32), nullptr); }},
      {"not_in_the_mask", [] { MC_LAUNCH(not_in_the_mask, dim3(1), dim3(32), nullptr); }},
      {"reads_outside_the_mask",
       [] { MC_LAUNCH(reads_outside_the_mask, dim3(1), dim3(32), nullptr); }},
      {"names_missing_lanes", [] { MC_LAUNCH(names_missing_lanes, dim3(1), dim3(24), nullptr); }},
      {"two_shuffles", [] { MC_LAUNCH(two_shuffles, dim3(1), dim3(32), nullptr); }},
      {"barrier_in_a_branch", [] { MC_LAUNCH(barrier_in_a_branch, dim3(1), dim3(64), nullptr); }},
      {"two_barriers", [] { MC_LAUNCH(two_barriers, dim3(1), dim3(64), nullptr); }},
      {"barrier_against_shuffle",
       [] { MC_LAUNCH(barrier_against_shuffle, dim3(1), dim3(64), nullptr); }},
      {"too_much_shared", [&] { MC_LAUNCH(too_much_shared, dim3(1), dim3(32), nullptr, out); }},
      {"beyond_shared", [&] { MC_LAUNCH(beyond_shared, dim3(1), dim3(64), nullptr, out); }},
      {"misaligned", [&] { MC_LAUNCH(misaligned, dim3(1), dim3(32), nullptr, out); }},
      {"reads_unwritten",
       [&] {
         reversed = true;
         MC_LAUNCH(reads_unwritten, dim3(1), dim3(32), nullptr, out);
       }},
      {"missing_barrier",
       [&] {
         reversed = true;
         MC_LAUNCH(reverses, dim3(1), dim3(64), nullptr, out, false);
       }},
      {"blocks_race", [&] { MC_LAUNCH(blocks_race, dim3(2), dim3(32), nullptr, out); }},
      {"shuffle_as_barrier",
       [&] {
         reversed = true;
         MC_LAUNCH(shuffle_as_barrier, dim3(1), dim3(32), nullptr, out);
       }},
      {"right_warp_barrier",
       [&] {
         reversed = true;
         MC_LAUNCH(warp_barrier, dim3(1), dim3(32), nullptr, out);
       }},
      {"right",
       [&] {
         reversed = true;
         MC_LAUNCH(reverses, dim3(3), dim3(64), nullptr, out, true);
       }},
      {"right_votes",
       [&] {
         reversed = true;
         MC_LAUNCH(votes, dim3(2), dim3(32), nullptr, out);
       }},
  };
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) {
    for (const auto& known : cases) std::printf("%s\n", known.first.c_str());
    return 2;
  }
  found->second();
  for (int i = 0; reversed && i < 32; ++i)
    if (!(out[i] == float(63 - i))) {
      std::printf("wrong at %d: %g\n", i, double(out[i]));
      return 1;
    }
  return 0;
}
