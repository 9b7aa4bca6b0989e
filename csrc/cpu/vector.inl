// Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
// Vectors of 16 floats by GCC's extensions; the compiler splits them where registers are narrower.
// Included inside the namespace of an instruction set, since the code depends on it.

using Vec = float __attribute__((vector_size(64)));
using IntVec = int32_t __attribute__((vector_size(64)));
using ByteVec = uint8_t __attribute__((vector_size(16)));
using HalfVec = uint16_t __attribute__((vector_size(32)));
constexpr int64_t kLanes = 16;
#define MC_INLINE static inline __attribute__((always_inline))

MC_INLINE Vec splat(float x) { return Vec{} + x; }
MC_INLINE Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
// bfloat16 is the upper half of a float.
MC_INLINE Vec load(const uint16_t* p) {
  HalfVec half;
  std::memcpy(&half, p, sizeof half);
  return (Vec)(__builtin_convertvector(half, IntVec) << 16);
}
MC_INLINE float load_one(const float* p) { return *p; }
MC_INLINE float load_one(const uint16_t* p) {
  const uint32_t bits = uint32_t(*p) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
MC_INLINE void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
// Rounds to bfloat16, half to even; a NaN stays one.
MC_INLINE void store(uint16_t* p, Vec v) {
  const IntVec bits = (IntVec)v;
  const IntVec rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const HalfVec half = __builtin_convertvector(v == v ? rounded : (IntVec{} + 0x7fff), HalfVec);
  std::memcpy(p, &half, sizeof half);
}

// Lanes whose mask byte is set, as all-ones integers.
MC_INLINE IntVec load_mask(const uint8_t* mask) {
  ByteVec bytes;
  std::memcpy(&bytes, mask, sizeof bytes);
  return __builtin_convertvector(bytes, IntVec) != 0;
}
enum class Lanes { none, all, some };
MC_INLINE Lanes which_lanes(const uint8_t* mask) {
  if (!mask) return Lanes::all;
  uint64_t low, high;
  std::memcpy(&low, mask, 8);
  std::memcpy(&high, mask + 8, 8);
  if ((low & high) == 0x0101010101010101ull) return Lanes::all;
  return (low | high) ? Lanes::some : Lanes::none;
}
MC_INLINE IntVec lanes_of(Lanes which, const uint8_t* mask) {
  return which == Lanes::all ? ~IntVec{} : load_mask(mask);
}

MC_INLINE float sum(Vec v) {
  float total = 0;
  for (int i = 0; i < kLanes; ++i) total += v[i];
  return total;
}
MC_INLINE Vec larger(Vec a, Vec b) { return a > b ? a : b; }
MC_INLINE Vec smaller(Vec a, Vec b) { return a < b ? a : b; }

// Lane i takes lane i + kBy; zeros come in at the end.
template <int kBy>
MC_INLINE Vec shift_down(Vec v) {
  IntVec index;
  for (int i = 0; i < kLanes; ++i) index[i] = i + kBy;
#if defined(__clang__)
  Vec out{};
  for (int i = 0; i + kBy < kLanes; ++i) out[i] = v[i + kBy];
  return out;
#else
  return __builtin_shuffle(v, Vec{}, index);
#endif
}

// exp for |x| <= 87 with a relative error below 2^-21: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2]
// (its Taylor series; a NaN stays one).
MC_INLINE Vec vector_exp(Vec x) {
  const Vec magic = splat(12582912.f);  // 1.5 * 2^23: adding it rounds to an integer
  const Vec n = (x * 1.44269504f + magic) - magic;
  Vec r = x - n * 0.693145752f;  // ln 2 in two parts, the first exact in few bits
  r = r - n * 1.42860677e-6f;
  Vec p = splat(1.f / 5040.f);
  p = p * r + 1.f / 720.f;
  p = p * r + 1.f / 120.f;
  p = p * r + 1.f / 24.f;
  p = p * r + 1.f / 6.f;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  const Vec in_range = n == n ? n : Vec{};  // a NaN has no integer
  const IntVec exponent = (__builtin_convertvector(in_range, IntVec) + 127) << 23;
  return p * (Vec)exponent;
}
