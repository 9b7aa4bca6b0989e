// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// CVPO's two weights of one trajectory, the same on every backend (double precision: a few numbers a
// response).
#pragma once
#include <cmath>

#include "megacurl/api.h"

namespace mc {

MC_HOST_DEVICE inline double sigmoid(double x) {
  // exp() of a large positive number overflows, so its argument stays negative.
  if (x >= 0.0) return 1.0 / (1.0 + exp(-x));
  const double e = exp(x);
  return e / (1.0 + e);
}

// W_S: 1 + alpha_P sigmoid(lambda_P (s - mu)) of a correct response (Eq. 15) and
// 1 - alpha_N sigmoid(lambda_N (mu - s)) of a wrong one (Eq. 16).
MC_HOST_DEVICE inline double stochasticity_weight(const CvpoWeightsArgs& a, int64_t i) {
  const double mean = a.mean_spread[i];
  double gap = a.spread[i] - mean;
  if (a.relative) gap = mean > 0.0 ? gap / mean : 0.0;
  if (a.prose) gap = -gap;
  return a.correct[i] ? 1.0 + a.alpha_p * sigmoid(a.lambda_p * gap)
                      : 1.0 - a.alpha_n * sigmoid(-a.lambda_n * gap);
}

// W_D: 2 sigmoid(k1 (rho - c1)) sigmoid(-k2 (rho - c2)) (Eq. 25), times 1 - rho^2 in the bottleneck
// phase (Eq. 26).
MC_HOST_DEVICE inline double difficulty_weight(const CvpoWeightsArgs& a, int64_t i) {
  if (!a.accuracy) return 1.0;
  const double rho = a.accuracy[i];
  const double weight = 2.0 * sigmoid(a.k1 * (rho - a.c1)) * sigmoid(-a.k2 * (rho - a.c2));
  return a.bottleneck ? weight * (1.0 - rho * rho) : weight;
}

}  // namespace mc
