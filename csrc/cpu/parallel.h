// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Loops on torch's own threads. How work is cut does not depend on their number where it matters for
// the result: sequences and tiles are whole.
#pragma once
#include <torch/csrc/stable/ops.h>

#include <algorithm>

#include "megacurl/api.h"

namespace mc::cpu {

constexpr int64_t kTokensWorthAThread = 16384;

// Calls run(s) for every sequence, in runs that are even by tokens.
template <class Run>
void for_each_sequence(const Offsets& cu, const Run& run) {
  const int64_t sequences = cu.sequences, total = cu[sequences];
  const auto all = [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) run(s);
  };
  const int64_t threads = int64_t(torch::stable::get_num_threads());
  if (total < kTokensWorthAThread || threads == 1) return all(0, sequences);
  const int64_t parts = std::min(sequences, threads * 4);
  const auto first_of = [&](int64_t part) {  // the first sequence that starts at or after its share
    int64_t low = 0, high = sequences;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (cu[middle] * parts < total * part)
        low = middle + 1;
      else
        high = middle;
    }
    return part == parts ? sequences : low;
  };
  torch::stable::parallel_for(
      0, parts, 1, [&](int64_t begin, int64_t end) { all(first_of(begin), first_of(end)); });
}

template <class Run>
void for_each_tile(int64_t tiles, const Run& run) {
  torch::stable::parallel_for(0, tiles, kTokensWorthAThread / kLossTile,
                              [&](int64_t begin, int64_t end) {
                                for (int64_t i = begin; i < end; ++i) run(i);
                              });
}

template <class Run>
void for_each_row(int64_t rows, int64_t columns, const Run& run) {
  const int64_t grain = std::max<int64_t>(1, kTokensWorthAThread / std::max<int64_t>(1, columns));
  torch::stable::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) run(row);
  });
}

}  // namespace mc::cpu
