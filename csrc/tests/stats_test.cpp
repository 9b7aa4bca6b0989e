// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Value statistics, group means, CVPO's weights and the check of offsets, against double precision.
#include "tests/support.hpp"
//
#include "kernels/cvpo_weights.cuh"
#include "kernels/offsets.cuh"
#include "kernels/value_stats.cuh"

namespace {

using test::Ragged;

void value_stats(Ragged& batch, const uint8_t* mask, float mean) {
  const auto values = batch.poisoned(batch.noise(mean), mask);
  const int64_t n = batch.sequences();
  auto count = test::output<double>(n), found = test::output<double>(n);
  auto m2 = test::output<double>(n);
  const mc::ValueStatsArgs args{values.data(),  false,        mask,     batch.offsets(mean == 0),
                                count.data(), found.data(), m2.data()};
  test::expect_ok(mc::emu::launch_value_stats(args, nullptr));
  for (int64_t s = 0; s < n; ++s) {
    double sum = 0, valid = 0, squares = 0;
    for (int64_t t = batch.cu[s]; t < batch.cu[s + 1]; ++t)
      if (batch.valid(mask, t)) sum += values[t], valid += 1;
    const double center = valid > 0 ? sum / valid : 0;
    for (int64_t t = batch.cu[s]; t < batch.cu[s + 1]; ++t)
      if (batch.valid(mask, t)) squares += (values[t] - center) * (values[t] - center);
    test::expect_near("count", count[s], valid, 0);
    test::expect_near("mean", found[s], center, 1e-7);
    test::expect_near("m2", m2[s], squares, 1e-6);
  }
}

void group_mean(Ragged& batch) {
  const int64_t n = batch.tokens();
  std::vector<double> x;
  for (float v : batch.noise()) x.push_back(v);
  for (const uint8_t* include : {static_cast<const uint8_t*>(nullptr),
                                 static_cast<const uint8_t*>(batch.mask.data())}) {
    auto mean = test::output<double>(batch.sequences()), count = mean;
    const mc::GroupMeanArgs args{x.data(), include, batch.offsets(), mean.data(), count.data()};
    test::expect_ok(mc::emu::launch_group_mean(args, nullptr));
    for (int64_t g = 0; g < batch.sequences(); ++g) {
      double sum = 0, members = 0;
      for (int64_t i = batch.cu[g]; i < batch.cu[g + 1]; ++i)
        if (batch.valid(include, i)) sum += x[size_t(i)], members += 1;
      test::expect_near("group count", count[size_t(g)], members, 0);
      test::expect_near("group mean", mean[size_t(g)], members > 0 ? sum / members : 0, 1e-13);
    }
  }
  test::expect("tokens are there", n > 0);
}

void weights(Ragged& batch) {
  const int64_t n = batch.tokens();  // more trajectories than a block has threads
  std::vector<double> spread, mean, accuracy;
  std::vector<uint8_t> correct;
  for (int64_t i = 0; i < n; ++i) {
    spread.push_back(double(batch.random() % 1000) / 1000);
    mean.push_back(double(batch.random() % 1000) / 1000);
    accuracy.push_back(double(batch.random() % 1001) / 1000);
    correct.push_back(batch.random() % 2);
  }
  auto w_s = test::output<double>(n), w_d = test::output<double>(n);
  const mc::CvpoWeightsArgs args{n,   spread.data(), mean.data(), correct.data(), accuracy.data(),
                                 0.3, 0.4,           50.0,        20.0,           false,
                                 false, true,        12.0,        0.35,           20.0,
                                 0.8, w_s.data(),    w_d.data()};
  test::expect_ok(mc::emu::launch_cvpo_weights(args, nullptr));
  for (size_t i = 0; i < size_t(n); ++i) {
    const double gap = spread[i] - mean[i], rho = accuracy[i];
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    const double s = correct[i] ? 1 + 0.3 * sigmoid(50 * gap) : 1 - 0.4 * sigmoid(-20 * gap);
    const double d = 2 * sigmoid(12 * (rho - 0.35)) * sigmoid(-20 * (rho - 0.8)) * (1 - rho * rho);
    test::expect_near("W_S", w_s[i], s, 1e-13);
    test::expect_near("W_D", w_d[i], d, 1e-13);
  }
  const auto advantages = batch.noise();
  auto weighted = test::output<float>(n);
  const mc::ApplyWeightsArgs apply{advantages.data(), batch.offsets(), w_s.data(), w_d.data(),
                                   weighted.data()};
  test::expect_ok(mc::emu::launch_apply_weights(apply, nullptr));
  for (int64_t s = 0; s < batch.sequences(); ++s)
    for (int64_t t = batch.cu[s]; t < batch.cu[s + 1]; ++t)
      test::expect_near("weighted", weighted[size_t(t)],
                        w_s[size_t(s)] * w_d[size_t(s)] * double(advantages[size_t(t)]), 1e-6);
}

void offsets() {
  const auto verdict = [](std::vector<int64_t> cu, int64_t total) {
    int32_t scratch = -1, found = -1;
    const mc::Offsets offsets{cu.data(), true, int64_t(cu.size()) - 1};
    test::expect_ok(mc::emu::launch_check_offsets(offsets, total, &scratch, &found, nullptr));
    return found;
  };
  std::vector<int64_t> many;
  for (int64_t i = 0; i <= 1000; ++i) many.push_back(i * 3);
  test::expect("rising offsets are fine", verdict(many, 3000) == mc::kOffsetsFine);
  test::expect("empty sequences are fine", verdict({0, 0, 3, 3}, 3) == mc::kOffsetsFine);
  test::expect("no sequence is fine", verdict({0}, 0) == mc::kOffsetsFine);
  test::expect("a wrong end is found", verdict(many, 2999) == mc::kOffsetsEnd);
  test::expect("a wrong start is found", verdict({1, 2}, 2) == mc::kOffsetsStart);
  many[700] = 0;
  test::expect("a decrease is found", verdict(many, 3000) == mc::kOffsetsDecrease);
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = test::read_arguments(argc, argv);
  Ragged batch(arguments.longest, arguments.seed);
  value_stats(batch, nullptr, 0.f);
  value_stats(batch, batch.mask.data(), 8000.f);
  group_mean(batch);
  weights(batch);
  offsets();
  return test::report("stats");
}
