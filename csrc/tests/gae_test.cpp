// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The GAE kernel against a loop over time in double precision.
#include "tests/support.hpp"
//
#include "kernels/gae.cuh"

namespace {

using test::Ragged;

struct Expected {
  std::vector<double> advantages, returns;
};

Expected loop(const Ragged& batch, const mc::GaeArgs& a, const std::vector<float>& values) {
  Expected e{std::vector<double>(values.size()), std::vector<double>(values.size())};
  const auto clamp = [](double x) { return std::min(std::max(x, 0.0), 1.0); };
  for (int64_t s = 0; s < batch.sequences(); ++s) {
    double next = a.bootstrap ? a.bootstrap[s] : 0, a1 = 0, a2 = 0;
    for (int64_t t = batch.cu[s + 1] - 1; t >= batch.cu[s]; --t) {
      if (!batch.valid(a.mask, t)) continue;
      const double delta = double(a.rewards[t]) + a.gamma * next - double(values[t]);
      a1 = delta + a.gamma * clamp(a.lam_policy[s]) * a1;
      a2 = delta + a.gamma * clamp(a.lam_critic[s]) * a2;
      next = values[t];
      e.advantages[t] = a1;
      e.returns[t] = a2 + next;
    }
  }
  return e;
}

void compare(Ragged& batch, const uint8_t* mask, bool with_bootstrap, double gamma, bool bf16) {
  auto values = batch.noise(0.5f, 0.3f);
  std::vector<uint16_t> halves(values.size());
  if (bf16)
    for (size_t t = 0; t < values.size(); ++t) {
      uint32_t bits;
      std::memcpy(&bits, &values[t], 4);
      halves[t] = uint16_t(bits >> 16);  // rounded towards zero, exactly what is then compared
      bits &= 0xffff0000u;
      std::memcpy(&values[t], &bits, 4);
    }
  const auto poisoned = batch.poisoned(values, mask);
  const auto rewards = batch.poisoned(batch.noise(), mask);
  auto policy = batch.per_sequence(0.9, 1.0), critic = batch.per_sequence(1.0, 1.0);
  policy[5] = -19.0, critic[4] = 2.0;  // to be clamped
  const auto exact = batch.per_sequence(-1, 1);
  const std::vector<float> bootstrap(exact.begin(), exact.end());
  auto advantages = test::output<float>(batch.tokens());
  auto returns = test::output<float>(batch.tokens());
  const mc::GaeArgs args{bf16 ? static_cast<const void*>(halves.data()) : poisoned.data(),
                         bf16,
                         rewards.data(),
                         mask,
                         batch.offsets(gamma == 1),
                         policy.data(),
                         critic.data(),
                         gamma,
                         with_bootstrap ? bootstrap.data() : nullptr,
                         advantages.data(),
                         returns.data()};
  test::expect_ok(mc::emu::launch_gae(args, nullptr));
  const Expected expected = loop(batch, args, values);
  for (size_t t = 0; t < advantages.size(); ++t) {
    test::expect_near("advantage", advantages[t], expected.advantages[t], 2e-5);
    test::expect_near("return", returns[t], expected.returns[t], 2e-5);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = test::read_arguments(argc, argv);
  Ragged batch(arguments.longest, arguments.seed);
  compare(batch, nullptr, false, 1.0, false);
  compare(batch, batch.mask.data(), true, 0.99, false);
  compare(batch, batch.mask.data(), true, 1.0, true);
  return test::report("gae");
}
