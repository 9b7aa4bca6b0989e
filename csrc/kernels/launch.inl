// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The launch functions of one backend; included once by cuda/launch.cu and by emu/launch_emu.cpp.
#include "kernels/cvpo_weights.cuh"
#include "kernels/gae.cuh"
#include "kernels/log_prob.cuh"
#include "kernels/offsets.cuh"
#include "kernels/policy_loss.cuh"
#include "kernels/value_loss.cuh"
#include "kernels/value_stats.cuh"

namespace mc::MC_BACKEND {

Status check_offsets(const Offsets& cu, int64_t total, int32_t* scratch, int32_t* verdict,
                     void* stream) {
  return launch_check_offsets(cu, total, scratch, verdict, stream);
}
Status value_stats(const ValueStatsArgs& a, void* stream) { return launch_value_stats(a, stream); }
Status group_mean(const GroupMeanArgs& a, void* stream) { return launch_group_mean(a, stream); }
Status gae(const GaeArgs& a, void* stream) { return launch_gae(a, stream); }
Status cvpo_weights(const CvpoWeightsArgs& a, void* stream) {
  return launch_cvpo_weights(a, stream);
}
Status apply_weights(const ApplyWeightsArgs& a, void* stream) {
  return launch_apply_weights(a, stream);
}
Status policy_loss(const PolicyLossArgs& a, void* stream) { return launch_policy_loss(a, stream); }
Status value_loss(const ValueLossArgs& a, void* stream) { return launch_value_loss(a, stream); }
Status log_prob(const LogProbArgs& a, void* stream) { return launch_log_prob(a, stream); }
Status log_prob_grad(const LogProbGradArgs& a, void* stream) {
  return launch_log_prob_grad(a, stream);
}

}  // namespace mc::MC_BACKEND
