// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// What the binding and the three backends (cpu, cuda, emu) agree on: plain structs of raw pointers.
// No torch and no CUDA type appears here, so nvcc never sees a torch header.
#pragma once
#include <cstdint>

#if defined(__CUDACC__)
#define MC_HOST_DEVICE __host__ __device__
#else
#define MC_HOST_DEVICE
#endif

namespace mc {

// cu_seqlens: sequence s owns the tokens [cu[s], cu[s+1]). int32 or int64 in memory.
struct Offsets {
  const void* data;
  bool is_int64;
  int64_t sequences;

  MC_HOST_DEVICE int64_t operator[](int64_t i) const {
    return is_int64 ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

// What is wrong with offsets; the order is that of the messages in binding/checks.h.
enum OffsetsVerdict : int32_t { kOffsetsFine, kOffsetsStart, kOffsetsDecrease, kOffsetsEnd };

// In every struct: token arrays have one entry a packed token; a mask byte is 0 or 1, and a null mask
// means that every token is valid. What stands at masked tokens is never read into a result.

struct ValueStatsArgs {
  const void* values;
  bool values_bf16;
  const uint8_t* mask;
  Offsets cu;
  double *count, *mean, *m2;  // [sequences]; m2: sum of squared deviations
};

struct GroupMeanArgs {
  const double* x;
  const uint8_t* include;  // may be null
  Offsets groups;          // group g owns the entries [groups[g], groups[g+1])
  double *mean, *count;    // [groups]
};

struct GaeArgs {
  const void* values;
  bool values_bf16;
  const float* rewards;
  const uint8_t* mask;
  Offsets cu;
  const double *lam_policy, *lam_critic;  // [sequences], clamped to [0, 1] by the kernels
  double gamma;
  const float* bootstrap;       // [sequences], may be null: 0
  float *advantages, *returns;  // [tokens]
};

// W_S (CVPO Eq. 15, 16) and W_D (Eq. 25, 26) of each trajectory.
struct CvpoWeightsArgs {
  int64_t trajectories;
  const double *spread, *mean_spread;
  const uint8_t* correct;
  const double* accuracy;  // rho of the trajectory's question; null: W_D is 1
  double alpha_p, alpha_n, lambda_p, lambda_n;
  bool prose, relative, bottleneck;
  double k1, c1, k2, c2;
  double *w_s, *w_d;
};

struct ApplyWeightsArgs {
  const float* advantages;
  Offsets cu;
  const double *w_s, *w_d;  // [sequences]; w_d may be null
  float* weighted;
};

// Columns of the policy loss's statistics: sums over valid tokens, but for the two ratios.
enum PolicyStat {
  kPolicyLoss,
  kPolicyTokens,
  kPolicyClippedHigh,
  kPolicyClippedLow,
  kPolicyDualClipped,
  kPolicyK1,
  kPolicyK3,
  kPolicyRatio,
  kPolicyEntropy,
  kPolicyMaxRatio,  // largest ratio, at least 1
  kPolicyMinRatio,  // smallest ratio, at most 1
  kPolicyStats
};

struct PolicyLossArgs {
  int64_t tokens;
  const float *log_probs, *old_log_probs, *advantages;
  const uint8_t* mask;
  const float* coefficients;
  const float* token_weights;  // factor of each token's loss (TIS), may be null
  const float* entropy;        // only summed, may be null
  float low, high;             // 1 - eps_clip, 1 + eps_clip_high
  float dual_clip;             // 0: off
  float log_ratio_clamp;
  float* grad;      // [tokens], d loss / d log_probs
  double* partial;  // [blocks, kPolicyStats]
  double* stats;    // [kPolicyStats]
  float* loss;      // [1]
};

// Columns of the value loss's statistics. The last four are moments over the valid tokens: mean and
// sum of squared deviations of returns - values, and of returns.
enum ValueStat {
  kValueLoss,
  kValueTokens,
  kValueClipped,
  kValueSquaredError,
  kResidualMean,
  kResidualM2,
  kReturnMean,
  kReturnM2,
  kValueStats
};

struct ValueLossArgs {
  int64_t tokens;
  const float *values, *returns, *old_values;  // old_values: null without a clip
  const uint8_t* mask;
  const float* coefficients;
  float value_clip;  // used with old_values
  float factor;      // 1/2, or 1
  float* grad;       // [tokens], d loss / d values
  double* partial;   // [blocks, kValueStats]
  double* stats;     // [kValueStats]
  float* loss;       // [1]
};

// Rows of logits: one a token, `columns` entries of the vocabulary (a rank's part of it).
struct LogProbArgs {
  const void* logits;  // [rows, columns]
  bool bf16;
  int64_t rows, columns;
  const int64_t* targets;  // column of each row's target; outside [0, columns) on another rank
  float inverse_temperature;
  // [4, rows] of z = logits / temperature: its largest, sum exp(z - largest),
  // sum (z - largest) exp(z - largest), and that of the target or 0.
  float* sums;
};

struct LogProbGradArgs {
  const void* logits;
  bool bf16;
  int64_t rows, columns;
  const int64_t* targets;
  float inverse_temperature;
  const float *normalizer, *entropy;            // [rows]: log sum exp z and H, over all ranks
  const float *grad_log_prob, *grad_entropy;    // [rows]
  void* grad;                                   // [rows, columns], the type of the logits
};

// Stands for the largest of no logits; finite, so that nothing becomes inf - inf.
constexpr float kNoLogit = -1e30f;

// Tokens that one block of a loss kernel (or one task on the CPU) sums into a row of `partial`.
constexpr int64_t kLossTile = 2048;
constexpr int64_t loss_blocks(int64_t tokens) { return (tokens + kLossTile - 1) / kLossTile; }

// Error text, or null. It comes from the runtime and need not be freed.
using Status = const char*;

// check_offsets also waits for the device; scratch is one int32 there (unused on the CPU).
#define MC_DECLARE_BACKEND(NAME)                                                             \
  namespace NAME {                                                                           \
  Status check_offsets(const Offsets&, int64_t total, int32_t* scratch, int32_t* verdict,    \
                       void* stream);                                                        \
  Status value_stats(const ValueStatsArgs&, void* stream);                                   \
  Status group_mean(const GroupMeanArgs&, void* stream);                                     \
  Status gae(const GaeArgs&, void* stream);                                                  \
  Status cvpo_weights(const CvpoWeightsArgs&, void* stream);                                 \
  Status apply_weights(const ApplyWeightsArgs&, void* stream);                               \
  Status policy_loss(const PolicyLossArgs&, void* stream);                                   \
  Status value_loss(const ValueLossArgs&, void* stream);                                     \
  Status log_prob(const LogProbArgs&, void* stream);                                         \
  Status log_prob_grad(const LogProbGradArgs&, void* stream);                                \
  }

MC_DECLARE_BACKEND(cpu)
MC_DECLARE_BACKEND(cuda)
MC_DECLARE_BACKEND(emu)

}  // namespace mc
