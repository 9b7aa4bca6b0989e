// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Arguments of the operators: what is checked, and raw pointers out of tensors.
#pragma once
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <limits>
#include <optional>

#include "megacurl/api.h"

namespace mc::binding {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;

template <class T>
const T* pointer(const Tensor& t) {
  return static_cast<const T*>(t.const_data_ptr());
}
template <class T>
const T* pointer(const OptionalTensor& t) {
  return t ? pointer<T>(*t) : nullptr;
}
template <class T>
T* output(Tensor& t) {
  return static_cast<T*>(t.mutable_data_ptr());
}

inline const char* name_of(ScalarType type) {
  switch (type) {
    case ScalarType::Float: return "float32";
    case ScalarType::Double: return "float64";
    case ScalarType::BFloat16: return "bfloat16";
    case ScalarType::Half: return "float16";
    case ScalarType::Bool: return "bool";
    case ScalarType::Int: return "int32";
    case ScalarType::Long: return "int64";
    default: return "another type";
  }
}

// A contiguous vector of `count` numbers on the device of `like`.
inline void check_vector(const Tensor& t, const char* name, int64_t count, const Tensor& like) {
  STD_TORCH_CHECK(t.dim() == 1 && t.is_contiguous(), name, " has ", t.dim(),
                  " dimensions or gaps in memory; give a contiguous vector");
  STD_TORCH_CHECK(t.numel() == count, name, " has ", t.numel(), " entries; it must have ", count);
  STD_TORCH_CHECK(t.device() == like.device(), name,
                  " is on another device than the first argument");
}
inline void check(const Tensor& t, ScalarType type, const char* name, int64_t count,
                  const Tensor& like) {
  STD_TORCH_CHECK(t.scalar_type() == type, name, " is ", name_of(t.scalar_type()),
                  "; it must be ", name_of(type));
  check_vector(t, name, count, like);
}
inline void check(const OptionalTensor& t, ScalarType type, const char* name, int64_t count,
                  const Tensor& like) {
  if (t) check(*t, type, name, count, like);
}
// float32 or bfloat16; returns whether it is the latter.
inline bool check_values(const Tensor& t, const char* name, int64_t count) {
  const ScalarType type = t.scalar_type();
  STD_TORCH_CHECK(type == ScalarType::Float || type == ScalarType::BFloat16, name, " is ",
                  name_of(type), "; it must be float32 or bfloat16");
  check_vector(t, name, count, t);
  return type == ScalarType::BFloat16;
}

inline Tensor new_vector(const Tensor& like, ScalarType type, int64_t count) {
  return torch::stable::new_empty(like, {count}, type);
}

inline void check_status(Status error, const char* op) {
  STD_TORCH_CHECK(!error, "megacurl::", op, ": ", error ? error : "");
}

inline Offsets offsets_of(const Tensor& cu, const char* name, const Tensor& like) {
  const ScalarType type = cu.scalar_type();
  STD_TORCH_CHECK(type == ScalarType::Int || type == ScalarType::Long, name, " is ",
                  name_of(type), "; it must be int32 or int64");
  check_vector(cu, name, cu.numel(), like);
  STD_TORCH_CHECK(cu.numel() >= 1, name, " is empty; it must begin with 0");
  STD_TORCH_CHECK(cu.numel() - 1 <= std::numeric_limits<int32_t>::max(), name,
                  " names more than 2^31 sequences");
  return {cu.const_data_ptr(), type == ScalarType::Long, cu.numel() - 1};
}

// Reads the offsets' values, which on a GPU waits for the device.
template <class Backend>
Offsets checked_offsets(const Tensor& cu, const char* name, int64_t total, const Tensor& like,
                        void* stream) {
  const Offsets offsets = offsets_of(cu, name, like);
  Tensor scratch = new_vector(cu, ScalarType::Int, 1);
  int32_t verdict = kOffsetsFine;
  check_status(Backend::check_offsets(offsets, total, output<int32_t>(scratch), &verdict, stream),
               "check_offsets");
  STD_TORCH_CHECK(verdict != kOffsetsStart, name, " must start at 0");
  STD_TORCH_CHECK(verdict != kOffsetsDecrease, name, " decreases; it must rise");
  STD_TORCH_CHECK(verdict != kOffsetsEnd, name, " must end at the number of entries, ", total);
  return offsets;
}

}  // namespace mc::binding
