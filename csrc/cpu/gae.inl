// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// GAE of one sequence for two lambdas, backwards, 16 tokens at a time.
// Included inside the namespace of an instruction set.

// Powers of one decay that a step of 16 tokens needs, computed in double.
struct Decay {
  double by1_exact;
  Vec to_end;                // lane i: decay^(16 - i), what the state after the lanes contributes
  float by1, by2, by4, by8;  // decay^1, ^2, ^4, ^8

  explicit Decay(double decay) : by1_exact(decay) {
    double power = 1;
    float powers[kLanes + 1];
    for (int i = 0; i <= kLanes; ++i, power *= decay) powers[i] = float(power);
    for (int i = 0; i < kLanes; ++i) to_end[i] = powers[kLanes - i];
    by1 = powers[1], by2 = powers[2], by4 = powers[4], by8 = powers[8];
  }
  // Lane i of the result: sum over j >= i of decay^(j - i) delta_j, plus decay^(16 - i) after.
  Vec suffix_sums(Vec delta, float after) const {
    Vec s = delta + by1 * shift_down<1>(delta);
    s += by2 * shift_down<2>(s);
    s += by4 * shift_down<4>(s);
    s += by8 * shift_down<8>(s);
    return s + to_end * after;
  }
};

struct GaeWalk {
  const GaeSequence& q;
  const Decay policy, critic;
  float next_value;
  // In double: with many gaps there is an addition a token, and float32 roundings would add up.
  double after_policy = 0, after_critic = 0;

  explicit GaeWalk(const GaeSequence& sequence)
      : q(sequence),
        policy(sequence.decay_policy),
        critic(sequence.decay_critic),
        next_value(sequence.bootstrap) {}

  void one(const float* value, int64_t t) { step(*value, t); }
  void one(const uint16_t* value, int64_t t) { step(load_one(value), t); }
  void step(float value, int64_t t) {
    const float delta = q.rewards[t] + q.gamma * next_value - value;
    after_policy = double(delta) + policy.by1_exact * after_policy;
    after_critic = double(delta) + critic.by1_exact * after_critic;
    next_value = value;
    q.advantages[t] = float(after_policy);
    q.returns[t] = float(after_critic) + value;
  }
  void skip(int64_t t) { q.advantages[t] = q.returns[t] = 0; }

  template <class Value>
  void some(const Value* values, int64_t begin, int64_t end) {
    for (int64_t t = end - 1; t >= begin; --t)
      if (!q.mask || q.mask[t])
        one(values + t, t);
      else
        skip(t);
  }
  template <class Value>
  void lanes(const Value* values, int64_t begin) {
    const Vec value = load(values + begin);
    Vec next = shift_down<1>(value);
    next[kLanes - 1] = next_value;
    const Vec delta = load(q.rewards + begin) + q.gamma * next - value;
    const Vec a = policy.suffix_sums(delta, float(after_policy));
    const Vec c = critic.suffix_sums(delta, float(after_critic));
    store(q.advantages + begin, a);
    store(q.returns + begin, c + value);
    after_policy = double(a[0]), after_critic = double(c[0]), next_value = value[0];
  }
  template <class Value>
  void run(const Value* values) {
    int64_t end = q.length;
    for (; end >= kLanes; end -= kLanes) {
      const int64_t begin = end - kLanes;
      switch (which_lanes(q.mask ? q.mask + begin : nullptr)) {
        case Lanes::all:
          lanes(values, begin);
          break;
        case Lanes::some:
          some(values, begin, end);
          break;
        case Lanes::none:
          store(q.advantages + begin, Vec{});
          store(q.returns + begin, Vec{});
      }
    }
    some(values, 0, end);
  }
};

static void gae(const GaeSequence& sequence) {
  GaeWalk walk(sequence);
  if (sequence.values_bf16)
    walk.run(static_cast<const uint16_t*>(sequence.values));
  else
    walk.run(static_cast<const float*>(sequence.values));
}
