// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Log-probs and entropies from logits, and their gradient, against double precision.
#include "tests/support.hpp"
//
#include "kernels/log_prob.cuh"

namespace {

constexpr int64_t kRows = 5;

uint16_t upper_half(float& x) {  // x loses its lower half too
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits &= 0xffff0000u;
  std::memcpy(&x, &bits, 4);
  return uint16_t(bits >> 16);
}

// columns: the rank's part of the vocabulary; the target of row 1 is on another rank.
void compare(int64_t columns, bool bf16, float offset, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(offset, 3);
  std::vector<float> logits(size_t(kRows * columns));
  std::vector<uint16_t> halves(logits.size());
  for (float& x : logits) x = normal(random);
  if (columns > 3) logits[2] = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i)
    if (bf16) halves[i] = upper_half(logits[i]);
  std::vector<int64_t> targets = {0, columns + 7, columns - 1, columns / 2, -1};
  const float scale = 1 / 0.7f;
  const void* data = bf16 ? static_cast<const void*>(halves.data()) : logits.data();
  auto sums = test::output<float>(4 * kRows);
  const mc::LogProbArgs forward{data, bf16, kRows, columns, targets.data(), scale, sums.data()};
  test::expect_ok(mc::emu::launch_log_prob(forward, nullptr));

  std::vector<float> normalizer(kRows), entropy(kRows), by_log_prob(kRows), by_entropy(kRows);
  for (int64_t r = 0; r < kRows; ++r) {
    const float* row = logits.data() + r * columns;
    double top = double(mc::kNoLogit), sum = 0, weighted = 0;
    for (int64_t c = 0; c < columns; ++c) top = std::max(top, double(row[c] * scale));
    for (int64_t c = 0; c < columns; ++c) {
      const double x = double(row[c] * scale) - top, e = std::exp(x);
      sum += e;
      if (e > 0) weighted += x * e;
    }
    const bool here = targets[size_t(r)] >= 0 && targets[size_t(r)] < columns;
    test::expect_near("top", sums[size_t(r)], top, 0);
    test::expect_near("sum", sums[size_t(kRows + r)], sum, 3e-6);
    test::expect_near("weighted", sums[size_t(2 * kRows + r)], weighted, 3e-6);
    test::expect_near("picked", sums[size_t(3 * kRows + r)],
                      here ? double(row[targets[size_t(r)]] * scale) : 0, 0);
    normalizer[size_t(r)] = float(top + (sum > 0 ? std::log(sum) : 0));
    entropy[size_t(r)] = sum > 0 ? float(std::log(sum) - weighted / sum) : 0;
    by_log_prob[size_t(r)] = normal(random) - offset, by_entropy[size_t(r)] = normal(random) - offset;
  }
  auto grad = test::output<float>(kRows * columns);
  std::vector<uint16_t> grad_halves(grad.size(), 0x7fc0);
  const mc::LogProbGradArgs backward{data,
                                     bf16,
                                     kRows,
                                     columns,
                                     targets.data(),
                                     scale,
                                     normalizer.data(),
                                     entropy.data(),
                                     by_log_prob.data(),
                                     by_entropy.data(),
                                     bf16 ? static_cast<void*>(grad_halves.data()) : grad.data()};
  test::expect_ok(mc::emu::launch_log_prob_grad(backward, nullptr));
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const size_t i = size_t(r * columns + c), s = size_t(r);
      const double log_p = double(logits[i] * scale) - double(normalizer[s]), p = std::exp(log_p);
      double g = p > 0 ? -p * (double(by_log_prob[s]) +
                               double(by_entropy[s]) * (log_p + double(entropy[s])))
                       : 0;
      if (c == targets[s]) g += double(by_log_prob[s]);
      const uint32_t bits = uint32_t(grad_halves[i]) << 16;
      if (bf16) std::memcpy(&grad[i], &bits, 4);
      test::expect_near("gradient", grad[i], g * double(scale), bf16 ? 4e-3 : 1e-5);
    }
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = test::read_arguments(argc, argv);
  const bool few = arguments.longest <= 300;
  const std::vector<int64_t> all = {0, 1, 31, 255, 256, 257, 1003}, some = {31, 257};
  for (int64_t columns : few ? some : all)
    for (bool bf16 : {false, true})
      compare(columns, bf16, columns == 257 ? 50.f : 0.f, arguments.seed);
  return test::report("log_prob");
}
