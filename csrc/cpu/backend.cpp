// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The CPU backend: sequences or tiles in parallel, one pass over each, long sums in double.
#include <cstdlib>
#include <cstring>

#include "cpu/parallel.h"
#include "cpu/table.h"
#include "megacurl/cvpo.h"

namespace mc::cpu {

namespace {

const Table& choose_table() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw");
  const char* named = std::getenv("MEGACURL_CPU_ISA");
  const auto allowed = [&](const Table& t) { return !named || !std::strcmp(named, t.name); };
  if (avx512 && allowed(kAvx512Table)) return kAvx512Table;
  if (avx2 && allowed(kAvx2Table)) return kAvx2Table;
#endif
  return kBaseTable;
}

const uint8_t* from(const uint8_t* mask, int64_t begin) { return mask ? mask + begin : nullptr; }

// Value i of a token array that holds float32 or bfloat16.
const void* from(const void* values, bool bf16, int64_t i) {
  return static_cast<const char*>(values) + i * (bf16 ? 2 : 4);
}

double clamp_lambda(double lambda) { return std::min(std::max(lambda, 0.0), 1.0); }

}  // namespace

const Table& table() {
  static const Table& chosen = choose_table();
  return chosen;
}

Status check_offsets(const Offsets& cu, int64_t total, int32_t*, int32_t* verdict, void*) {
  *verdict = cu[0] != 0 ? kOffsetsStart : kOffsetsFine;
  for (int64_t s = 0; *verdict == kOffsetsFine && s < cu.sequences; ++s)
    if (cu[s + 1] < cu[s]) *verdict = kOffsetsDecrease;
  if (*verdict == kOffsetsFine && cu[cu.sequences] != total) *verdict = kOffsetsEnd;
  return nullptr;
}

Status value_stats(const ValueStatsArgs& a, void*) {
  const Table& t = table();
  for_each_sequence(a.cu, [&](int64_t s) {
    const int64_t begin = a.cu[s];
    const Moments m = t.moments(from(a.values, a.values_bf16, begin), a.values_bf16,
                                from(a.mask, begin), a.cu[s + 1] - begin);
    a.count[s] = m.count, a.mean[s] = m.mean, a.m2[s] = m.m2;
  });
  return nullptr;
}

Status group_mean(const GroupMeanArgs& a, void*) {
  for (int64_t g = 0; g < a.groups.sequences; ++g) {
    double sum = 0, count = 0;
    for (int64_t i = a.groups[g]; i < a.groups[g + 1]; ++i)
      if (!a.include || a.include[i]) sum += a.x[i], count += 1;
    a.mean[g] = count > 0 ? sum / count : 0.0;
    a.count[g] = count;
  }
  return nullptr;
}

Status gae(const GaeArgs& a, void*) {
  const Table& t = table();
  for_each_sequence(a.cu, [&](int64_t s) {
    const int64_t begin = a.cu[s];
    t.gae({from(a.values, a.values_bf16, begin), a.values_bf16, a.rewards + begin,
           from(a.mask, begin), a.cu[s + 1] - begin, a.gamma * clamp_lambda(a.lam_policy[s]),
           a.gamma * clamp_lambda(a.lam_critic[s]), float(a.gamma),
           a.bootstrap ? a.bootstrap[s] : 0.f, a.advantages + begin, a.returns + begin});
  });
  return nullptr;
}

Status cvpo_weights(const CvpoWeightsArgs& a, void*) {
  for (int64_t i = 0; i < a.trajectories; ++i) {
    a.w_s[i] = stochasticity_weight(a, i);
    a.w_d[i] = difficulty_weight(a, i);
  }
  return nullptr;
}

Status apply_weights(const ApplyWeightsArgs& a, void*) {
  const Table& t = table();
  for_each_sequence(a.cu, [&](int64_t s) {
    const int64_t begin = a.cu[s];
    const float weight = float(a.w_s[s] * (a.w_d ? a.w_d[s] : 1.0));
    t.scale(a.advantages + begin, weight, a.cu[s + 1] - begin, a.weighted + begin);
  });
  return nullptr;
}

Status policy_loss(const PolicyLossArgs& a, void*) {
  const Table& t = table();
  const int64_t tiles = loss_blocks(a.tokens);
  for_each_tile(tiles, [&](int64_t i) {
    const int64_t begin = i * kLossTile, end = std::min(a.tokens, begin + kLossTile);
    t.policy_loss(a, begin, end, a.partial + i * kPolicyStats);
  });
  double* total = a.stats;
  std::fill(total, total + kPolicyStats, 0.0);
  total[kPolicyMaxRatio] = total[kPolicyMinRatio] = 1.0;
  for (int64_t i = 0; i < tiles; ++i) {
    const double* row = a.partial + i * kPolicyStats;
    for (int k = 0; k < kPolicyMaxRatio; ++k) total[k] += row[k];
    total[kPolicyMaxRatio] = std::max(total[kPolicyMaxRatio], row[kPolicyMaxRatio]);
    total[kPolicyMinRatio] = std::min(total[kPolicyMinRatio], row[kPolicyMinRatio]);
  }
  *a.loss = float(total[kPolicyLoss]);
  return nullptr;
}

Status value_loss(const ValueLossArgs& a, void*) {
  const Table& t = table();
  const int64_t tiles = loss_blocks(a.tokens);
  for_each_tile(tiles, [&](int64_t i) {
    const int64_t begin = i * kLossTile, end = std::min(a.tokens, begin + kLossTile);
    t.value_loss(a, begin, end, a.partial + i * kValueStats);
  });
  double* total = a.stats;
  std::fill(total, total + kValueStats, 0.0);
  Moments residuals, targets;
  for (int64_t i = 0; i < tiles; ++i) {
    const double* row = a.partial + i * kValueStats;
    for (int k : {kValueLoss, kValueClipped, kValueSquaredError}) total[k] += row[k];
    residuals.merge({row[kValueTokens], row[kResidualMean], row[kResidualM2]});
    targets.merge({row[kValueTokens], row[kReturnMean], row[kReturnM2]});
  }
  total[kValueTokens] = targets.count;
  total[kResidualMean] = residuals.mean, total[kResidualM2] = residuals.m2;
  total[kReturnMean] = targets.mean, total[kReturnM2] = targets.m2;
  *a.loss = float(total[kValueLoss]);
  return nullptr;
}

Status log_prob(const LogProbArgs& a, void*) {
  const Table& t = table();
  for_each_row(a.rows, a.columns, [&](int64_t row) {
    const void* logits = from(a.logits, a.bf16, row * a.columns);
    const SoftmaxSums s = t.softmax(logits, a.bf16, a.columns, a.inverse_temperature);
    const int64_t target = a.targets[row];
    float picked = 0;
    if (target >= 0 && target < a.columns) {
      const void* at = from(logits, a.bf16, target);
      uint32_t bits = 0;
      if (a.bf16)  // the upper half of a float
        std::memcpy(reinterpret_cast<char*>(&bits) + 2, at, 2);
      else
        std::memcpy(&bits, at, 4);
      std::memcpy(&picked, &bits, 4);
    }
    a.sums[row] = s.top, a.sums[a.rows + row] = s.sum, a.sums[2 * a.rows + row] = s.weighted;
    a.sums[3 * a.rows + row] = picked * a.inverse_temperature;
  });
  return nullptr;
}

Status log_prob_grad(const LogProbGradArgs& a, void*) {
  const Table& t = table();
  for_each_row(a.rows, a.columns, [&](int64_t row) {
    const int64_t begin = row * a.columns;
    const SoftmaxGrad g{a.columns,      a.targets[row],       a.inverse_temperature,
                        a.normalizer[row], a.entropy[row], a.grad_log_prob[row],
                        a.grad_entropy[row]};
    void* grad = static_cast<char*>(a.grad) + begin * (a.bf16 ? 2 : 4);
    t.softmax_grad(from(a.logits, a.bf16, begin), a.bf16, g, grad);
  });
  return nullptr;
}

}  // namespace mc::cpu
