// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// What the operators call: one class a backend, with the launch functions, the guard that makes the
// tensors' device current, and the stream.
#pragma once
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/tensor.h>

#include "binding/checks.h"

namespace mc::binding {

#define MC_LAUNCH_FUNCTIONS(NAME)                                 \
  static constexpr auto check_offsets = &mc::NAME::check_offsets; \
  static constexpr auto value_stats = &mc::NAME::value_stats;     \
  static constexpr auto group_mean = &mc::NAME::group_mean;       \
  static constexpr auto gae = &mc::NAME::gae;                     \
  static constexpr auto cvpo_weights = &mc::NAME::cvpo_weights;   \
  static constexpr auto apply_weights = &mc::NAME::apply_weights; \
  static constexpr auto policy_loss = &mc::NAME::policy_loss;     \
  static constexpr auto value_loss = &mc::NAME::value_loss;       \
  static constexpr auto log_prob = &mc::NAME::log_prob;           \
  static constexpr auto log_prob_grad = &mc::NAME::log_prob_grad

// On the host there is one device and no stream.
struct HostScope {
  explicit HostScope(const Tensor&) {}
  void* stream() const { return nullptr; }
};

struct Cpu {
  using Scope = HostScope;
  MC_LAUNCH_FUNCTIONS(cpu);
};

#if MC_WITH_EMU
struct Emulator {
  using Scope = HostScope;
  MC_LAUNCH_FUNCTIONS(emu);
};
#endif

#if MC_WITH_CUDA
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
inline void* current_stream(int32_t device) {
  return torch::stable::accelerator::getCurrentStream(device).nativeHandle();
}
#else
// Only libtorch_cuda has it, and this library must load beside a torch for the CPU too.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t, void**);
inline void* current_stream(int32_t device) {
  void* stream = nullptr;
  STD_TORCH_CHECK(aoti_torch_get_current_cuda_stream, "this torch was built without CUDA");
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  return stream;
}
#endif

class CudaScope {
 public:
  explicit CudaScope(const Tensor& t)
      : device_(t.get_device_index()), guard_(device_), stream_(current_stream(device_)) {}
  void* stream() const { return stream_; }

 private:
  int32_t device_;
  torch::stable::accelerator::DeviceGuard guard_;
  void* stream_;
};

struct Cuda {
  using Scope = CudaScope;
  MC_LAUNCH_FUNCTIONS(cuda);
};
#endif

}  // namespace mc::binding
