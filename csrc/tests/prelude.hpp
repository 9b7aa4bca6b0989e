// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// The standard headers of the tests, precompiled: they are most of a test's compile time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>
