// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The two losses with gradient and statistics. Included inside the namespace of an instruction set.

// The next up to 16 tokens at t: their valid lanes, and loads that put 0 into the others.
struct Slice {
  int64_t t, count;
  IntVec on;

  Slice(const uint8_t* mask, int64_t at, int64_t end) : t(at), count(std::min(kLanes, end - at)) {
    if (count == kLanes) {
      on = mask ? load_mask(mask + at) : ~IntVec{};
      return;
    }
    on = IntVec{};
    for (int64_t i = 0; i < count; ++i) on[i] = !mask || mask[at + i] ? -1 : 0;
  }
  Vec get(const float* x) const {
    Vec v{};
    if (count == kLanes)
      v = load(x + t);
    else
      for (int64_t i = 0; i < count; ++i) v[i] = x[t + i];
    return on ? v : Vec{};
  }
  void put(float* out, Vec v) const {
    if (count == kLanes)
      store(out + t, v);
    else
      for (int64_t i = 0; i < count; ++i) out[t + i] = v[i];
  }
  Vec where(IntVec condition) const { return condition & on ? splat(1.f) : Vec{}; }
};

struct PolicyLanes {
  Vec column[kPolicyStats] = {};
  PolicyLanes() { column[kPolicyMaxRatio] = column[kPolicyMinRatio] = splat(1.f); }
};

// Comparisons keep a NaN where min and max would hide it.
MC_INLINE void policy_slice(const PolicyLossArgs& a, const Slice& s, PolicyLanes& lanes) {
  const Vec log_ratio = s.get(a.log_probs) - s.get(a.old_log_probs), advantage = s.get(a.advantages);
  const Vec limit = splat(a.log_ratio_clamp), zero{};
  const IntVec above = log_ratio > limit, below = log_ratio < -limit;
  const Vec exponent = above ? limit : (below ? -limit : log_ratio);
  const Vec ratio = vector_exp(exponent);
  const Vec plain = -ratio * advantage;
  const IntVec high = (ratio > a.high) & (advantage > zero);
  const IntVec low = (ratio < a.low) & (advantage < zero);
  IntVec dual{};
  if (a.dual_clip > 0) dual = (ratio > a.dual_clip) & (advantage < zero);
  Vec loss = high ? -a.high * advantage : plain;
  loss = low ? -a.low * advantage : loss;
  loss = dual ? -a.dual_clip * advantage : loss;
  const Vec slope = (above | below | high | low | dual) ? zero : plain;
  Vec factor = s.get(a.coefficients);
  if (a.token_weights) factor *= s.get(a.token_weights);
  s.put(a.grad, factor * slope);
  Vec* column = lanes.column;
  column[kPolicyLoss] += factor * loss;
  column[kPolicyTokens] += s.where(~IntVec{});
  column[kPolicyClippedHigh] += s.where(high);
  column[kPolicyClippedLow] += s.where(low);
  column[kPolicyDualClipped] += s.where(dual);
  column[kPolicyK1] -= log_ratio;
  column[kPolicyK3] += ratio - 1.f - exponent;  // 0 in the lanes that are off
  column[kPolicyRatio] += s.on ? ratio : zero;
  if (a.entropy) column[kPolicyEntropy] += s.get(a.entropy);
  column[kPolicyMaxRatio] = larger(ratio, column[kPolicyMaxRatio]);
  column[kPolicyMinRatio] = smaller(ratio, column[kPolicyMinRatio]);
}

static void policy_loss(const PolicyLossArgs& a, int64_t begin, int64_t end, double* row) {
  std::fill(row, row + kPolicyStats, 0.0);
  row[kPolicyMaxRatio] = row[kPolicyMinRatio] = 1.0;
  for (int64_t t = begin; t < end;) {
    const int64_t stop = std::min(end, t + kFloatSums);
    PolicyLanes lanes;
    for (; t < stop; t += kLanes) policy_slice(a, Slice(a.mask, t, stop), lanes);
    for (int k = 0; k < kPolicyMaxRatio; ++k) row[k] += double(sum(lanes.column[k]));
    for (int i = 0; i < kLanes; ++i) {
      row[kPolicyMaxRatio] = std::max(row[kPolicyMaxRatio], double(lanes.column[kPolicyMaxRatio][i]));
      row[kPolicyMinRatio] = std::min(row[kPolicyMinRatio], double(lanes.column[kPolicyMinRatio][i]));
    }
  }
}

struct ValueLanes {
  Vec loss{}, clipped{}, squared_error{};
};

MC_INLINE void value_slice(const ValueLossArgs& a, const Slice& s, ValueLanes& lanes) {
  const Vec value = s.get(a.values), target = s.get(a.returns), gap = value - target;
  const Vec error = gap * gap;
  Vec loss = error, slope = 2.f * gap;
  if (a.old_values) {
    const Vec old = s.get(a.old_values), low = old - a.value_clip, high = old + a.value_clip;
    const Vec inside = (value < low ? low : (value > high ? high : value)) - target;
    const IntVec clipped = inside * inside > error;
    loss = clipped ? inside * inside : error;
    slope = clipped ? Vec{} : slope;
    lanes.clipped += s.where(clipped);
  }
  const Vec factor = s.get(a.coefficients) * a.factor;
  s.put(a.grad, factor * slope);
  lanes.loss += factor * loss;
  lanes.squared_error += error;
}

// Moments of returns - values and of the returns over one tile, whose numbers are in the cache.
static void value_moments(const ValueLossArgs& a, int64_t begin, int64_t end, double* row) {
  float residual[kMomentsTile];
  Moments residuals, targets;
  for (int64_t t = begin; t < end; t += kMomentsTile) {
    const int64_t n = std::min(kMomentsTile, end - t);
    for (int64_t i = 0; i < n; ++i) residual[i] = a.returns[t + i] - a.values[t + i];
    const uint8_t* mask = a.mask ? a.mask + t : nullptr;
    residuals.merge(tile_moments(residual, mask, n));
    targets.merge(tile_moments(a.returns + t, mask, n));
  }
  row[kValueTokens] = targets.count;
  row[kResidualMean] = residuals.mean;
  row[kResidualM2] = residuals.m2;
  row[kReturnMean] = targets.mean;
  row[kReturnM2] = targets.m2;
}

static void value_loss(const ValueLossArgs& a, int64_t begin, int64_t end, double* row) {
  std::fill(row, row + kValueStats, 0.0);
  for (int64_t t = begin; t < end;) {
    const int64_t stop = std::min(end, t + kFloatSums);
    ValueLanes lanes;
    for (; t < stop; t += kLanes) value_slice(a, Slice(a.mask, t, stop), lanes);
    row[kValueLoss] += double(sum(lanes.loss));
    row[kValueClipped] += double(sum(lanes.clipped));
    row[kValueSquaredError] += double(sum(lanes.squared_error));
  }
  value_moments(a, begin, end, row);
}
