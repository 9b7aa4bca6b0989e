// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Checks cu_seqlens on the device: from 0 up to the number of tokens, never down.
#pragma once
#include "megacurl/platform.cuh"

namespace mc::MC_BACKEND {

constexpr int kOffsetsThreads = 256;

// One block. The verdict with the smallest number wins, so that it does not depend on timing.
__global__ void __launch_bounds__(kOffsetsThreads)
    check_offsets_kernel(Offsets cu, int64_t total, int32_t* __restrict__ verdict) {
  constexpr int32_t kNone = 1 << 30;
  int32_t found = kNone;
  for (int64_t i = threadIdx.x; i < cu.sequences; i += kOffsetsThreads)
    if (cu[i + 1] < cu[i]) found = kOffsetsDecrease;
  if (threadIdx.x == 0) {
    if (cu[cu.sequences] != total && found == kNone) found = kOffsetsEnd;
    if (cu[0] != 0) found = kOffsetsStart;
  }
  found = block_reduce<kOffsetsThreads / 32>(
      found, [](int32_t a, int32_t b) { return a < b ? a : b; });
  if (threadIdx.x == 0) *verdict = found == kNone ? int32_t(kOffsetsFine) : found;
}

inline Status launch_check_offsets(const Offsets& cu, int64_t total, int32_t* scratch,
                                   int32_t* verdict, void* stream) {
  MC_LAUNCH(check_offsets_kernel, dim3(1), dim3(kOffsetsThreads), stream, cu, total, scratch);
#if defined(MC_EMULATE)
  *verdict = *scratch;
  return nullptr;
#else
  if (Status error = launch_status()) return error;
  const auto on = static_cast<cudaStream_t>(stream);
  cudaError_t error =
      cudaMemcpyAsync(verdict, scratch, sizeof(*verdict), cudaMemcpyDeviceToHost, on);
  if (error == cudaSuccess) error = cudaStreamSynchronize(on);
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
#endif
}

}  // namespace mc::MC_BACKEND
