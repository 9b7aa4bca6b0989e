// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The operators torch.ops.megacurl.*, over torch's stable ABI: one binary for several versions of torch.
// Shapes for tracing and gradients are registered in megacurl/ops/registration.py.
#include <torch/csrc/stable/library.h>

#include <tuple>

#include "binding/backends.h"
#include "cpu/table.h"

namespace mc::binding {

constexpr ScalarType kFloat = ScalarType::Float, kDouble = ScalarType::Double,
                     kBool = ScalarType::Bool;
// The vector exponential of the CPU backend is made for |x| <= 87.
constexpr double kLargestLogRatio = 80;

template <class Backend>
struct Ops {
  using Scope = typename Backend::Scope;

  static std::tuple<Tensor, Tensor, Tensor> value_stats(Tensor values, OptionalTensor mask,
                                                        Tensor cu_seqlens) {
    const int64_t tokens = values.numel();
    const bool bf16 = check_values(values, "values", tokens);
    check(mask, kBool, "mask", tokens, values);
    const Scope scope(values);
    const Offsets cu =
        checked_offsets<Backend>(cu_seqlens, "cu_seqlens", tokens, values, scope.stream());
    Tensor count = new_vector(values, kDouble, cu.sequences),
           mean = new_vector(values, kDouble, cu.sequences),
           m2 = new_vector(values, kDouble, cu.sequences);
    const ValueStatsArgs args{values.const_data_ptr(), bf16,
                              pointer<uint8_t>(mask),  cu,
                              output<double>(count),   output<double>(mean),
                              output<double>(m2)};
    check_status(Backend::value_stats(args, scope.stream()), "value_stats");
    return {count, mean, m2};
  }

  static std::tuple<Tensor, Tensor> group_mean(Tensor x, OptionalTensor include, Tensor offsets) {
    check(x, kDouble, "x", x.numel(), x);
    check(include, kBool, "include", x.numel(), x);
    const Scope scope(x);
    const Offsets groups =
        checked_offsets<Backend>(offsets, "offsets", x.numel(), x, scope.stream());
    Tensor mean = new_vector(x, kDouble, groups.sequences),
           count = new_vector(x, kDouble, groups.sequences);
    const GroupMeanArgs args{pointer<double>(x), pointer<uint8_t>(include), groups,
                             output<double>(mean), output<double>(count)};
    check_status(Backend::group_mean(args, scope.stream()), "group_mean");
    return {mean, count};
  }

  static std::tuple<Tensor, Tensor> gae(Tensor values, Tensor rewards, OptionalTensor mask,
                                        Tensor cu_seqlens, Tensor lam_policy, Tensor lam_critic,
                                        double gamma, OptionalTensor bootstrap) {
    const int64_t tokens = values.numel();
    const bool bf16 = check_values(values, "values", tokens);
    check(rewards, kFloat, "rewards", tokens, values);
    check(mask, kBool, "mask", tokens, values);
    STD_TORCH_CHECK(gamma >= 0 && gamma <= 1, "gamma is ", gamma, "; it must lie in [0, 1]");
    const Scope scope(values);
    const Offsets cu =
        checked_offsets<Backend>(cu_seqlens, "cu_seqlens", tokens, values, scope.stream());
    check(lam_policy, kDouble, "lam_policy", cu.sequences, values);
    check(lam_critic, kDouble, "lam_critic", cu.sequences, values);
    check(bootstrap, kFloat, "bootstrap", cu.sequences, values);
    Tensor advantages = new_vector(values, kFloat, tokens),
           returns = new_vector(values, kFloat, tokens);
    const GaeArgs args{values.const_data_ptr(),    bf16,
                       pointer<float>(rewards),    pointer<uint8_t>(mask),
                       cu,                         pointer<double>(lam_policy),
                       pointer<double>(lam_critic), gamma,
                       pointer<float>(bootstrap),  output<float>(advantages),
                       output<float>(returns)};
    check_status(Backend::gae(args, scope.stream()), "gae");
    return {advantages, returns};
  }

  static std::tuple<Tensor, Tensor, Tensor> cvpo_weights(
      Tensor spread, Tensor mean_spread, Tensor correct, OptionalTensor accuracy,
      OptionalTensor advantages, OptionalTensor cu_seqlens, double alpha_p, double alpha_n,
      double lambda_p, double lambda_n, bool prose, bool relative, bool bottleneck, double k1,
      double c1, double k2, double c2) {
    const int64_t n = spread.numel();
    check(spread, kDouble, "spread", n, spread);
    check(mean_spread, kDouble, "mean_spread", n, spread);
    check(correct, kBool, "correct", n, spread);
    check(accuracy, kDouble, "accuracy", n, spread);
    STD_TORCH_CHECK(advantages.has_value() == cu_seqlens.has_value(),
                    "give advantages and cu_seqlens both, or neither");
    const Scope scope(spread);
    Tensor w_s = new_vector(spread, kDouble, n), w_d = new_vector(spread, kDouble, n);
    const CvpoWeightsArgs args{n, pointer<double>(spread), pointer<double>(mean_spread),
                               pointer<uint8_t>(correct), pointer<double>(accuracy), alpha_p,
                               alpha_n, lambda_p, lambda_n, prose, relative, bottleneck, k1, c1,
                               k2, c2, output<double>(w_s), output<double>(w_d)};
    check_status(Backend::cvpo_weights(args, scope.stream()), "cvpo_weights");
    if (!advantages) return {w_s, w_d, new_vector(spread, kFloat, 0)};
    STD_TORCH_CHECK(advantages->device() == spread.device(),
                    "advantages is on another device than the first argument");
    return {w_s, w_d, apply_weights(*advantages, w_s, w_d, *cu_seqlens)};
  }

  static Tensor apply_weights(Tensor advantages, Tensor w_s, OptionalTensor w_d,
                              Tensor cu_seqlens) {
    const int64_t tokens = advantages.numel();
    check(advantages, kFloat, "advantages", tokens, advantages);
    const Scope scope(advantages);
    const Offsets cu =
        checked_offsets<Backend>(cu_seqlens, "cu_seqlens", tokens, advantages, scope.stream());
    check(w_s, kDouble, "w_s", cu.sequences, advantages);
    check(w_d, kDouble, "w_d", cu.sequences, advantages);
    Tensor weighted = new_vector(advantages, kFloat, tokens);
    const ApplyWeightsArgs args{pointer<float>(advantages), cu, pointer<double>(w_s),
                                pointer<double>(w_d), output<float>(weighted)};
    check_status(Backend::apply_weights(args, scope.stream()), "apply_weights");
    return weighted;
  }

  static std::tuple<Tensor, Tensor, Tensor> policy_loss(
      Tensor log_probs, Tensor old_log_probs, Tensor advantages, OptionalTensor mask,
      Tensor coefficients, OptionalTensor token_weights, OptionalTensor entropy, double eps_clip,
      double eps_clip_high, double dual_clip, double log_ratio_clamp) {
    const int64_t tokens = log_probs.numel();
    check(log_probs, kFloat, "log_probs", tokens, log_probs);
    check(old_log_probs, kFloat, "old_log_probs", tokens, log_probs);
    check(advantages, kFloat, "advantages", tokens, log_probs);
    check(mask, kBool, "mask", tokens, log_probs);
    check(coefficients, kFloat, "coefficients", tokens, log_probs);
    check(token_weights, kFloat, "token_weights", tokens, log_probs);
    check(entropy, kFloat, "entropy", tokens, log_probs);
    STD_TORCH_CHECK(eps_clip >= 0 && eps_clip <= 1 && eps_clip_high >= 0, "eps_clip is ", eps_clip,
                    ", eps_clip_high ", eps_clip_high,
                    "; the first must lie in [0, 1], the second be at least 0");
    STD_TORCH_CHECK(dual_clip == 0 || dual_clip > 1, "dual_clip is ", dual_clip,
                    "; it must be above 1, or 0 for none");
    STD_TORCH_CHECK(log_ratio_clamp > 0 && log_ratio_clamp <= kLargestLogRatio,
                    "log_ratio_clamp is ", log_ratio_clamp, "; it must lie in (0, 80]");
    const Scope scope(log_probs);
    Tensor grad = new_vector(log_probs, kFloat, tokens),
           partial = new_vector(log_probs, kDouble, loss_blocks(tokens) * kPolicyStats),
           stats = new_vector(log_probs, kDouble, kPolicyStats),
           loss = torch::stable::new_empty(log_probs, {}, kFloat);
    const PolicyLossArgs args{tokens,
                              pointer<float>(log_probs),
                              pointer<float>(old_log_probs),
                              pointer<float>(advantages),
                              pointer<uint8_t>(mask),
                              pointer<float>(coefficients),
                              pointer<float>(token_weights),
                              pointer<float>(entropy),
                              float(1 - eps_clip),
                              float(1 + eps_clip_high),
                              float(dual_clip),
                              float(log_ratio_clamp),
                              output<float>(grad),
                              output<double>(partial),
                              output<double>(stats),
                              output<float>(loss)};
    check_status(Backend::policy_loss(args, scope.stream()), "policy_loss");
    return {loss, stats, grad};
  }

  static std::tuple<Tensor, Tensor, Tensor> value_loss(Tensor values, Tensor returns,
                                                       OptionalTensor old_values,
                                                       OptionalTensor mask, Tensor coefficients,
                                                       double value_clip, bool half) {
    const int64_t tokens = values.numel();
    check(values, kFloat, "values", tokens, values);
    check(returns, kFloat, "returns", tokens, values);
    check(old_values, kFloat, "old_values", tokens, values);
    check(mask, kBool, "mask", tokens, values);
    check(coefficients, kFloat, "coefficients", tokens, values);
    STD_TORCH_CHECK(!old_values || value_clip > 0, "value_clip is ", value_clip,
                    "; it must be positive where old_values are given");
    const Scope scope(values);
    Tensor grad = new_vector(values, kFloat, tokens),
           partial = new_vector(values, kDouble, loss_blocks(tokens) * kValueStats),
           stats = new_vector(values, kDouble, kValueStats),
           loss = torch::stable::new_empty(values, {}, kFloat);
    const ValueLossArgs args{tokens,
                             pointer<float>(values),
                             pointer<float>(returns),
                             pointer<float>(old_values),
                             pointer<uint8_t>(mask),
                             pointer<float>(coefficients),
                             float(value_clip),
                             half ? 0.5f : 1.f,
                             output<float>(grad),
                             output<double>(partial),
                             output<double>(stats),
                             output<float>(loss)};
    check_status(Backend::value_loss(args, scope.stream()), "value_loss");
    return {loss, stats, grad};
  }

  static Tensor log_prob_sums(Tensor logits, Tensor targets, double temperature) {
    const bool bf16 = check_logits(logits, targets, temperature);
    const Scope scope(logits);
    const int64_t rows = logits.size(0);
    Tensor sums = torch::stable::new_empty(logits, {4, rows}, kFloat);
    const LogProbArgs args{logits.const_data_ptr(),   bf16, rows, logits.size(1),
                           pointer<int64_t>(targets), float(1 / temperature),
                           output<float>(sums)};
    check_status(Backend::log_prob(args, scope.stream()), "log_prob_sums");
    return sums;
  }

  static Tensor log_prob_grad(Tensor logits, Tensor targets, Tensor normalizer, Tensor entropy,
                              Tensor grad_log_prob, Tensor grad_entropy, double temperature) {
    const bool bf16 = check_logits(logits, targets, temperature);
    const int64_t rows = logits.size(0);
    check(normalizer, kFloat, "normalizer", rows, logits);
    check(entropy, kFloat, "entropy", rows, logits);
    check(grad_log_prob, kFloat, "grad_log_prob", rows, logits);
    check(grad_entropy, kFloat, "grad_entropy", rows, logits);
    const Scope scope(logits);
    Tensor grad = torch::stable::empty_like(logits);
    const LogProbGradArgs args{logits.const_data_ptr(),
                               bf16,
                               rows,
                               logits.size(1),
                               pointer<int64_t>(targets),
                               float(1 / temperature),
                               pointer<float>(normalizer),
                               pointer<float>(entropy),
                               pointer<float>(grad_log_prob),
                               pointer<float>(grad_entropy),
                               grad.mutable_data_ptr()};
    check_status(Backend::log_prob_grad(args, scope.stream()), "log_prob_grad");
    return grad;
  }

 private:
  // Returns whether the logits are bfloat16.
  static bool check_logits(const Tensor& logits, const Tensor& targets, double temperature) {
    const ScalarType type = logits.scalar_type();
    STD_TORCH_CHECK(type == kFloat || type == ScalarType::BFloat16, "logits is ", name_of(type),
                    "; it must be float32 or bfloat16");
    STD_TORCH_CHECK(logits.dim() == 2 && logits.is_contiguous(), "logits has ", logits.dim(),
                    " dimensions or gaps in memory; give a contiguous [rows, columns]");
    check(targets, ScalarType::Long, "targets", logits.size(0), logits);
    STD_TORCH_CHECK(temperature > 0, "temperature is ", temperature, "; it must be positive");
    return type == ScalarType::BFloat16;
  }
};

}  // namespace mc::binding

namespace {

using CpuOps = mc::binding::Ops<mc::binding::Cpu>;
#if MC_WITH_CUDA
using CudaOps = mc::binding::Ops<mc::binding::Cuda>;
#endif
#if MC_WITH_EMU
using EmulatorOps = mc::binding::Ops<mc::binding::Emulator>;
#endif

#define MC_DEFINE(m)                                                                              \
  m.def(                                                                                          \
      "value_stats(Tensor values, Tensor? mask, Tensor cu_seqlens) -> (Tensor, Tensor, Tensor)"); \
  m.def("group_mean(Tensor x, Tensor? include, Tensor offsets) -> (Tensor, Tensor)");             \
  m.def(                                                                                          \
      "gae(Tensor values, Tensor rewards, Tensor? mask, Tensor cu_seqlens, Tensor lam_policy, "   \
      "Tensor lam_critic, float gamma, Tensor? bootstrap) -> (Tensor, Tensor)");                  \
  m.def(                                                                                          \
      "cvpo_weights(Tensor spread, Tensor mean_spread, Tensor correct, Tensor? accuracy, "        \
      "Tensor? advantages, Tensor? cu_seqlens, float alpha_p, float alpha_n, float lambda_p, "    \
      "float lambda_n, bool prose, bool relative, bool bottleneck, float k1, float c1, "          \
      "float k2, float c2) -> (Tensor, Tensor, Tensor)");                                         \
  m.def(                                                                                          \
      "apply_weights(Tensor advantages, Tensor w_s, Tensor? w_d, Tensor cu_seqlens) -> Tensor");  \
  m.def(                                                                                          \
      "policy_loss(Tensor log_probs, Tensor old_log_probs, Tensor advantages, Tensor? mask, "     \
      "Tensor coefficients, Tensor? token_weights, Tensor? entropy, float eps_clip, "             \
      "float eps_clip_high, float dual_clip, float log_ratio_clamp) -> (Tensor, Tensor, Tensor)");\
  m.def(                                                                                          \
      "value_loss(Tensor values, Tensor returns, Tensor? old_values, Tensor? mask, "              \
      "Tensor coefficients, float value_clip, bool half) -> (Tensor, Tensor, Tensor)");           \
  m.def("log_prob_sums(Tensor logits, Tensor targets, float temperature) -> Tensor");             \
  m.def(                                                                                          \
      "log_prob_grad(Tensor logits, Tensor targets, Tensor normalizer, Tensor entropy, "          \
      "Tensor grad_log_prob, Tensor grad_entropy, float temperature) -> Tensor")

#define MC_IMPLEMENT(m, OPS)                              \
  m.impl("value_stats", TORCH_BOX(&OPS::value_stats));    \
  m.impl("group_mean", TORCH_BOX(&OPS::group_mean));      \
  m.impl("gae", TORCH_BOX(&OPS::gae));                    \
  m.impl("cvpo_weights", TORCH_BOX(&OPS::cvpo_weights));  \
  m.impl("apply_weights", TORCH_BOX(&OPS::apply_weights));\
  m.impl("policy_loss", TORCH_BOX(&OPS::policy_loss));    \
  m.impl("value_loss", TORCH_BOX(&OPS::value_loss));      \
  m.impl("log_prob_sums", TORCH_BOX(&OPS::log_prob_sums));\
  m.impl("log_prob_grad", TORCH_BOX(&OPS::log_prob_grad))

}  // namespace

STABLE_TORCH_LIBRARY(megacurl, m) { MC_DEFINE(m); }
STABLE_TORCH_LIBRARY_IMPL(megacurl, CPU, m) { MC_IMPLEMENT(m, CpuOps); }
#if MC_WITH_CUDA
STABLE_TORCH_LIBRARY_IMPL(megacurl, CUDA, m) { MC_IMPLEMENT(m, CudaOps); }
#endif
#if MC_WITH_EMU
STABLE_TORCH_LIBRARY(megacurl_emu, m) { MC_DEFINE(m); }
STABLE_TORCH_LIBRARY_IMPL(megacurl_emu, CPU, m) { MC_IMPLEMENT(m, EmulatorOps); }
#endif

// What was built, as "name=value" words; read by megacurl/ops/library.py through ctypes.
extern "C" __attribute__((visibility("default"))) const char* megacurl_build_info() {
  return MC_BUILD_INFO;
}
// The instruction set that the CPU backend chose on this machine.
extern "C" __attribute__((visibility("default"))) const char* megacurl_cpu_isa() {
  return mc::cpu::table().name;
}
