// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The two losses, their gradients and statistics against double precision; the same bits again.
#include "tests/support.hpp"
//
#include "kernels/value_loss.cuh"

namespace {

using test::Ragged;

struct Buffers {
  std::vector<float> grad, loss;
  std::vector<double> partial, stats;
  Buffers(int64_t tokens, int columns)
      : grad(test::output<float>(tokens)),
        loss(test::output<float>(1)),
        partial(test::output<double>(mc::loss_blocks(tokens) * columns)),
        stats(test::output<double>(columns)) {}
};

void policy_loss(Ragged& batch, const uint8_t* mask, bool extras) {
  const auto old = batch.poisoned(batch.noise(), mask), entropy = batch.noise();
  auto fresh = batch.noise(0, 0.6f);
  for (size_t t = 0; t < fresh.size(); ++t) fresh[t] += old[t];
  const size_t last = fresh.size() - 1;
  fresh[last] = old[last] + 30, fresh[last - 1] = old[last - 1] - 30;  // beyond the clamp
  const auto advantages = batch.poisoned(batch.noise(), mask), weights = batch.noise(1, 0.1f);
  const auto coefficients = batch.noise(1, 0.2f);
  Buffers out(batch.tokens(), mc::kPolicyStats);
  const mc::PolicyLossArgs args{batch.tokens(),
                                fresh.data(),
                                old.data(),
                                advantages.data(),
                                mask,
                                coefficients.data(),
                                extras ? weights.data() : nullptr,
                                extras ? entropy.data() : nullptr,
                                0.8f,
                                1.28f,
                                extras ? 1.2f : 0.f,
                                20.f,
                                out.grad.data(),
                                out.partial.data(),
                                out.stats.data(),
                                out.loss.data()};
  test::expect_ok(mc::emu::launch_policy_loss(args, nullptr));
  double want[mc::kPolicyStats] = {}, magnitude = 1;
  want[mc::kPolicyMaxRatio] = want[mc::kPolicyMinRatio] = 1;
  for (size_t t = 0; t < fresh.size(); ++t) {
    double slope = 0;
    if (batch.valid(mask, int64_t(t))) {
      const double x = double(fresh[t] - old[t]), c = std::min(std::max(x, -20.0), 20.0);
      const double r = std::exp(c), a = advantages[t];
      double f = -r * a;
      slope = x == c ? f : 0;
      if (r > double(1.28f) && a > 0) {
        f = -double(1.28f) * a, slope = 0, want[mc::kPolicyClippedHigh] += 1;
      } else if (r < double(0.8f) && a < 0) {
        f = -double(0.8f) * a, slope = 0, want[mc::kPolicyClippedLow] += 1;
      } else if (extras && r > double(1.2f) && a < 0) {
        f = -double(1.2f) * a, slope = 0, want[mc::kPolicyDualClipped] += 1;
      }
      const double factor = double(coefficients[t]) * (extras ? double(weights[t]) : 1);
      slope *= factor;
      want[mc::kPolicyLoss] += factor * f, magnitude += std::fabs(factor * f);
      want[mc::kPolicyTokens] += 1, want[mc::kPolicyK1] -= x, want[mc::kPolicyK3] += r - 1 - c;
      want[mc::kPolicyRatio] += r, want[mc::kPolicyEntropy] += extras ? double(entropy[t]) : 0;
      want[mc::kPolicyMaxRatio] = std::max(want[mc::kPolicyMaxRatio], r);
      want[mc::kPolicyMinRatio] = std::min(want[mc::kPolicyMinRatio], r);
    }
    test::expect_near("policy gradient", out.grad[t], slope, 2e-6);
  }
  test::expect_near("policy loss", out.loss[0] / magnitude, want[0] / magnitude, 1e-6);
  for (int k : {mc::kPolicyTokens, mc::kPolicyClippedHigh, mc::kPolicyClippedLow,
                mc::kPolicyDualClipped})
    test::expect_near("count", out.stats[k], want[k], 0);
  for (int k : {mc::kPolicyK1, mc::kPolicyEntropy})
    test::expect_near("sum", out.stats[k], want[k], 1e-5 * std::sqrt(double(batch.tokens())));
  for (int k : {mc::kPolicyK3, mc::kPolicyRatio, mc::kPolicyMaxRatio, mc::kPolicyMinRatio})
    test::expect_near("ratio", out.stats[k], want[k], 2e-6);
  const Buffers first = out;
  test::expect_ok(mc::emu::launch_policy_loss(args, nullptr));
  test::expect("policy loss gives the same bits again",
               first.stats == out.stats && first.loss == out.loss && first.grad == out.grad);
}

void value_loss(Ragged& batch, const uint8_t* mask, bool clip) {
  const auto values = batch.poisoned(batch.noise(5), mask);
  const auto returns = batch.poisoned(batch.noise(5), mask);
  const auto old = batch.poisoned(batch.noise(5), mask), coefficients = batch.noise(1, 0.2f);
  Buffers out(batch.tokens(), mc::kValueStats);
  const mc::ValueLossArgs args{batch.tokens(),
                               values.data(),
                               returns.data(),
                               clip ? old.data() : nullptr,
                               mask,
                               coefficients.data(),
                               0.2f,
                               0.5f,
                               out.grad.data(),
                               out.partial.data(),
                               out.stats.data(),
                               out.loss.data()};
  test::expect_ok(mc::emu::launch_value_loss(args, nullptr));
  double loss = 0, tokens = 0, clipped = 0, squared = 0, sums[2] = {}, m2[2] = {};
  for (size_t t = 0; t < values.size(); ++t) {
    double slope = 0;
    if (batch.valid(mask, int64_t(t))) {
      const double gap = double(values[t]) - double(returns[t]);
      double error = gap * gap;
      slope = 2 * gap;
      if (clip) {
        const double low = double(old[t] - 0.2f), high = double(old[t] + 0.2f);
        const double inside =
            std::min(std::max(double(values[t]), low), high) - double(returns[t]);
        if (inside * inside > error + 1e-12) error = inside * inside, slope = 0, clipped += 1;
      }
      loss += 0.5 * double(coefficients[t]) * error;
      slope *= 0.5 * double(coefficients[t]);
      tokens += 1, squared += gap * gap, sums[0] -= gap, sums[1] += double(returns[t]);
    }
    test::expect_near("value gradient", out.grad[t], slope, 2e-6);
  }
  const double means[2] = {tokens > 0 ? sums[0] / tokens : 0, tokens > 0 ? sums[1] / tokens : 0};
  for (size_t t = 0; t < values.size(); ++t)
    if (batch.valid(mask, int64_t(t))) {
      const double residual = double(returns[t]) - double(values[t]) - means[0];
      m2[0] += residual * residual;
      m2[1] += (double(returns[t]) - means[1]) * (double(returns[t]) - means[1]);
    }
  const double wanted[mc::kValueStats] = {loss,     tokens, clipped,  squared,
                                          means[0], m2[0],  means[1], m2[1]};
  test::expect_near("value loss", out.loss[0], loss, 1e-6);
  for (int k = 0; k < mc::kValueStats; ++k)
    test::expect_near("value statistic", out.stats[k], wanted[k], k == 1 || k == 2 ? 0 : 1e-6);
}

void nothing() {
  const Buffers empty(0, mc::kPolicyStats);
  Buffers out = empty;
  mc::PolicyLossArgs args{};
  args.stats = out.stats.data(), args.loss = out.loss.data();
  test::expect_ok(mc::emu::launch_policy_loss(args, nullptr));
  test::expect("no tokens have loss 0", out.loss[0] == 0 && out.stats[mc::kPolicyTokens] == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = test::read_arguments(argc, argv);
  Ragged batch(arguments.longest, arguments.seed);
  policy_loss(batch, nullptr, false);
  policy_loss(batch, batch.mask.data(), true);
  value_loss(batch, nullptr, false);
  value_loss(batch, batch.mask.data(), true);
  nothing();
  return test::report("losses");
}
