// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Common to the tests of the emulated kernels: ragged batches, comparison, and main's arguments.
//   TEST [forward|reverse|random] [seed] [longest sequence]
#pragma once
#define MC_EMULATE 1
#include <cstring>
#include <limits>
#include <string>

#include "megacurl/platform.cuh"

namespace test {

inline int failures = 0;

// Relative to 1 + |wanted|; NaN fails.
inline void expect_near(const char* what, double found, double wanted, double tolerance) {
  if (std::fabs(found - wanted) <= tolerance * (1 + std::fabs(wanted))) return;
  if (failures++ < 10) std::fprintf(stderr, "%s: %.9g, wanted %.9g\n", what, found, wanted);
}
inline void expect(const char* what, bool holds) {
  if (!holds && failures++ < 10) std::fprintf(stderr, "%s does not hold\n", what);
}
inline void expect_ok(mc::Status status) { expect("a launch succeeds", status == nullptr); }

// Lengths at which the kernels' loops begin or end.
struct Ragged {
  std::vector<int> lengths;
  std::vector<int64_t> cu{0};
  std::vector<int32_t> cu32;
  std::vector<uint8_t> mask;
  std::mt19937 random;

  Ragged(int longest, unsigned seed) : random(1234 + seed) {
    for (int n : {1, 0, 2, 31, 32, 33, 127, 128, 129, 511, 512, 513, 1023, 2048, 2049, 4097})
      if (n <= longest) lengths.push_back(n);
    for (int n : lengths) cu.push_back(cu.back() + n);
    for (int64_t end : cu) cu32.push_back(int32_t(end));
    for (int64_t t = 0; t < tokens(); ++t) mask.push_back(random() % 4 != 0);
    for (int64_t t = cu[3]; t < cu[4]; ++t) mask[size_t(t)] = 0;  // a sequence without valid tokens
  }
  int64_t tokens() const { return cu.back(); }
  int64_t sequences() const { return int64_t(lengths.size()); }
  mc::Offsets offsets(bool wide = true) const {
    return {wide ? static_cast<const void*>(cu.data()) : cu32.data(), wide, sequences()};
  }
  bool valid(const uint8_t* m, int64_t t) const { return !m || m[t]; }
  std::vector<float> noise(float mean = 0, float scale = 1) {
    std::normal_distribution<float> normal(mean, scale);
    std::vector<float> x(mask.size());
    for (float& v : x) v = normal(random);
    return x;
  }
  // NaN at masked tokens: nothing of it may reach a result.
  std::vector<float> poisoned(std::vector<float> x, const uint8_t* m) const {
    for (size_t t = 0; t < x.size(); ++t)
      if (!valid(m, int64_t(t))) x[t] = std::numeric_limits<float>::quiet_NaN();
    return x;
  }
  std::vector<double> per_sequence(double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    std::vector<double> x(lengths.size());
    for (double& v : x) v = uniform(random);
    return x;
  }
};

// Buffers start as NaN, so that what a kernel forgot to write fails.
template <class T>
std::vector<T> output(int64_t n) {
  return std::vector<T>(size_t(n), std::numeric_limits<T>::quiet_NaN());
}

struct Arguments {
  unsigned seed = 0;
  int longest = 4097;
};

inline Arguments read_arguments(int argc, char** argv) {
  Arguments result;
  auto& options = cuda_emu::options();
  const std::string order = argc > 1 ? argv[1] : "forward";
  options.order = order == "reverse"  ? cuda_emu::Order::reverse
                  : order == "random" ? cuda_emu::Order::random
                                      : cuda_emu::Order::forward;
  if (argc > 2) result.seed = unsigned(std::atoi(argv[2]));
  if (argc > 3) result.longest = std::atoi(argv[3]);
  options.seed = result.seed;
  return result;
}

inline int report(const char* name) {
  std::printf("%s: %d failures\n", name, failures);
  return failures != 0;
}

}  // namespace test
