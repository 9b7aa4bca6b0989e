// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Moments of a sequence, and scaling. Included inside the namespace of an instruction set.

// Numbers that fit the first-level cache, so that the second pass over them is free.
constexpr int64_t kMomentsTile = 2048;
// Float lanes are emptied into doubles after so many additions.
constexpr int64_t kFloatSums = 64 * kLanes;

// Of at most kMomentsTile numbers: around their first one, then around their mean.
template <class Value>
static Moments tile_moments(const Value* values, const uint8_t* mask, int64_t n) {
  int64_t first = 0;
  while (mask && first < n && !mask[first]) ++first;
  if (first == n) return {};
  struct Sums {
    double count = 0, plain = 0, square = 0;
  };
  auto sums_around = [&](float pivot) {
    Sums total;
    const int64_t full = n - n % kLanes;
    for (int64_t i = 0; i < full;) {
      const int64_t stop = std::min(full, i + kFloatSums);
      Vec count{}, plain{}, square{};
      for (; i < stop; i += kLanes) {
        const Lanes which = which_lanes(mask ? mask + i : nullptr);
        if (which == Lanes::none) continue;
        const IntVec on = lanes_of(which, mask + i);
        const Vec x = on ? load(values + i) - pivot : Vec{};
        count += on ? splat(1.f) : Vec{};
        plain += x;
        square += x * x;
      }
      total.count += double(sum(count));
      total.plain += double(sum(plain));
      total.square += double(sum(square));
    }
    for (int64_t i = full; i < n; ++i)
      if (!mask || mask[i]) {
        const double x = double(load_one(values + i)) - double(pivot);
        total.count += 1;
        total.plain += x;
        total.square += x * x;
      }
    return total;
  };
  const float pivot = load_one(values + first);
  const Sums rough = sums_around(pivot);
  const float center = float(double(pivot) + rough.plain / rough.count);
  const Sums fine = sums_around(center);
  const double offset = fine.plain / fine.count;
  return {fine.count, double(center) + offset, std::max(0.0, fine.square - fine.plain * offset)};
}

template <class Value>
static Moments sequence_moments(const Value* values, const uint8_t* mask, int64_t n) {
  Moments total;
  for (int64_t i = 0; i < n; i += kMomentsTile)
    total.merge(tile_moments(values + i, mask ? mask + i : nullptr, std::min(kMomentsTile, n - i)));
  return total;
}

static Moments moments(const void* values, bool bf16, const uint8_t* mask, int64_t n) {
  return bf16 ? sequence_moments(static_cast<const uint16_t*>(values), mask, n)
              : sequence_moments(static_cast<const float*>(values), mask, n);
}

static void scale(const float* x, float factor, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = factor * x[i];
}
