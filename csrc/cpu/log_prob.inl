// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// One row of logits: what its softmax needs, and its gradient.
// Included inside the namespace of an instruction set.

// exp that is 0 far below 0 (and for -inf), where the polynomial does not reach; keeps a NaN.
MC_INLINE Vec exp_below(Vec x) {
  const Vec limit = splat(-87.f);
  const IntVec far = x < limit;
  const Vec e = vector_exp(far ? limit : x);
  return far ? Vec{} : e;
}

// The next up to 16 scaled logits at c; `fill` in lanes beyond the end.
template <class Logit>
MC_INLINE Vec scaled(const Logit* logits, int64_t c, int64_t columns, float scale, float fill) {
  if (columns - c >= kLanes) return load(logits + c) * scale;
  Vec z = splat(fill);
  for (int64_t i = 0; c + i < columns; ++i) z[i] = load_one(logits + c + i) * scale;
  return z;
}

template <class Logit>
static SoftmaxSums softmax_row(const Logit* logits, int64_t columns, float scale) {
  Vec tops = splat(kNoLogit);
  for (int64_t c = 0; c < columns; c += kLanes)
    tops = larger(scaled(logits, c, columns, scale, kNoLogit), tops);
  float top = kNoLogit;
  for (int i = 0; i < kLanes; ++i) top = std::max(top, tops[i]);
  double total = 0, weighted = 0;
  for (int64_t c = 0; c < columns;) {
    const int64_t stop = std::min(columns, c + kFloatSums);
    Vec sums{}, products{};
    for (; c < stop; c += kLanes) {
      const Vec x = scaled(logits, c, columns, scale, -std::numeric_limits<float>::infinity()) - top;
      const Vec e = exp_below(x);
      sums += e;
      products += e == Vec{} ? Vec{} : x * e;
    }
    total += double(sum(sums));
    weighted += double(sum(products));
  }
  return {top, float(total), float(weighted)};
}

static SoftmaxSums softmax(const void* logits, bool bf16, int64_t columns, float scale) {
  return bf16 ? softmax_row(static_cast<const uint16_t*>(logits), columns, scale)
              : softmax_row(static_cast<const float*>(logits), columns, scale);
}

template <class Logit>
static void softmax_grad_row(const Logit* logits, const SoftmaxGrad& g, Logit* grad) {
  const auto slopes = [&](int64_t c) {
    const Vec log_p = scaled(logits, c, g.columns, g.scale, kNoLogit) - g.normalizer;
    const Vec p = exp_below(log_p);
    const Vec slope = -p * (g.by_log_prob + g.by_entropy * (log_p + g.entropy));
    return (p == Vec{} ? Vec{} : slope) * g.scale;
  };
  int64_t c = 0;
  for (; c + kLanes <= g.columns; c += kLanes) store(grad + c, slopes(c));
  if (c < g.columns) {
    Logit rest[kLanes];
    store(rest, slopes(c));
    std::copy(rest, rest + (g.columns - c), grad + c);
  }
  if (g.target >= 0 && g.target < g.columns) {  // once more in float32, for one rounding only
    const float log_p = load_one(logits + g.target) * g.scale - g.normalizer, p = std::exp(log_p);
    const float slope = p == 0.f ? 0.f : -p * (g.by_log_prob + g.by_entropy * (log_p + g.entropy));
    Logit rest[kLanes];
    store(rest, splat((slope + g.by_log_prob) * g.scale));
    grad[g.target] = rest[0];
  }
}

static void softmax_grad(const void* logits, bool bf16, const SoftmaxGrad& g, void* grad) {
  if (bf16)
    softmax_grad_row(static_cast<const uint16_t*>(logits), g, static_cast<uint16_t*>(grad));
  else
    softmax_grad_row(static_cast<const float*>(logits), g, static_cast<float*>(grad));
}
