//===- Lanes.h - From a function on one lane to a warp instruction --------===//
//
// `lane<[](u32 a, u32 b) { return a + b; }>` is the Form of an instruction that
// applies the lambda to every active lane; the types of its parameters say
// which registers it takes. Included by the units that are compiled once per
// host instruction set (KPERFIR_SIMT_ISA). Everything here is in an unnamed
// namespace or always inlined, and the standard library's functions stay out:
// code that the linker merges between units must not depend on the instruction
// set.
//
// Destination rows equal a source row or are disjoint from all (the register
// allocator sees to it), so lane loops carry no dependence.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_LANES_H
#define KPERFIR_SIMT_EXEC_LANES_H

#include "Simt/Exec/FloatModes.h"

#include <utility>

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

// --- warp instructions -------------------------------------------------------

template <unsigned... I> using Sequence = std::integer_sequence<unsigned, I...>;
template <unsigned N> using Iota = std::make_integer_sequence<unsigned, N>;

template <auto F, unsigned M, unsigned E, class Signature> struct LaneWise;

template <auto F, unsigned M, unsigned E, class D, class... S>
struct LaneWise<F, M, E, D (*)(S...)> {
  static constexpr char signature[] = {Layout<D, E>::letter, '=',
                                       Layout<S, E>::letter..., '\0'};

  template <unsigned... I>
  LANE static void apply(ExecContext &context, const MicroOp &op,
                         LaneMask active, Sequence<I...>) {
    loop(context, op, active, Source<S, E>(context, op.src[I])...);
  }

  LANE static void loop(ExecContext &context, const MicroOp &op,
                        LaneMask active, Source<S, E>... sources) {
    constexpr unsigned n = kWarpSize * E;
    if constexpr (sizeof(D) == 1 && Layout<D, E>::letter == 'p') {
      alignas(64) u32 flags[kWarpSize];
      for (unsigned i = 0; i < n; ++i)
        flags[i] = F(prepare<M>(sources.at(i))...) ? ~0u : 0u;
      writePredicate(context, op.dst[0], collect(flags), active);
    } else {
      using Word = typename Layout<D, E>::Word;
      Word *to = reinterpret_cast<Word *>(context.dst(op.dst[0]));
      if constexpr ((M & (kOneLoop | kRounding)) == 0) {
        if (active == kFullMask) [[likely]] {
#pragma GCC ivdep
          for (unsigned i = 0; i < n; ++i)
            to[i] =
                Layout<D, E>::store(finish<M>(F(prepare<M>(sources.at(i))...)));
          return;
        }
      }
      alignas(64) Word result[n];
      for (unsigned i = 0; i < n; ++i)
        result[i] =
            Layout<D, E>::store(finish<M>(F(prepare<M>(sources.at(i))...)));
      if ((M & (kOneLoop | kRounding)) != 0 && active == kFullMask)
        __builtin_memcpy(to, result, sizeof result);
      else
        blend<E>(to, result, active);
    }
  }

  [[gnu::noinline]] static void run(ExecContext &context, const MicroOp &op,
                                    LaneMask active) {
    apply(context, op, active, Iota<sizeof...(S)>{});
  }

  /// The same in another rounding mode. `run` is not inlined, so none of its
  /// arithmetic moves across the switches.
  static void runRounded(ExecContext &context, const MicroOp &op,
                         LaneMask active) {
    constexpr unsigned mode = (M & kToZero) ? _MM_ROUND_TOWARD_ZERO
                              : (M & kDown) ? _MM_ROUND_DOWN
                                            : _MM_ROUND_UP;
    unsigned saved = _mm_getcsr();
    _mm_setcsr((saved & ~unsigned(_MM_ROUND_MASK)) | mode);
    run(context, op, active);
    _mm_setcsr(saved);
  }

  static constexpr Handler handler = (M & kRounding) != 0 ? &runRounded : &run;
};

/// Form of an instruction that applies F to each lane.
template <auto F, unsigned M = kPlain>
inline constexpr Form lane = {LaneWise<F, M, 1, decltype(+F)>::signature,
                              LaneWise<F, M, 1, decltype(+F)>::handler};
/// The same to both halves of each lane's packed registers.
template <auto F, unsigned M = kPlain>
inline constexpr Form lane2 = {LaneWise<F, M, 2, decltype(+F)>::signature,
                               LaneWise<F, M, 2, decltype(+F)>::handler};

// A lambda over `a`, `a, b` or `a, b, c` of one type that returns it.
#define UNARY(T, ...) [](T a) -> T { return static_cast<T>(__VA_ARGS__); }
#define BINARY(T, ...) [](T a, T b) -> T { return static_cast<T>(__VA_ARGS__); }
#define TERNARY(T, ...)                                                        \
  [](T a, T b, T c) -> T { return static_cast<T>(__VA_ARGS__); }

// --- fused multiply-add ------------------------------------------------------

/// s + error, rounded to odd: the neighbour of the exact sum whose last bit is
/// set. Rounding that once more to at most precision - 2 bits is correct
/// rounding.
LANE f64 toOdd(f64 sum, f64 error) {
  u64 bits = bitCast<u64>(sum);
  bool inexact = error < 0.0 || error > 0.0;
  bool away = (error < 0.0) != (sum < 0.0); // the exact value is nearer to zero
  u64 odd = away ? bits - 1 : bits + 1;
  return bitCast<f64>(inexact && (bits & 1) == 0 ? odd : bits);
}
LANE f32 toOdd(f32 sum, f32 error) {
  u32 bits = bitCast<u32>(sum);
  bool inexact = error < 0.0f || error > 0.0f;
  bool away = (error < 0.0f) != (sum < 0.0f);
  u32 odd = away ? bits - 1 : bits + 1;
  return bitCast<f32>(inexact && (bits & 1) == 0 ? odd : bits);
}
/// a + b rounded to odd; the operands may be of any magnitude.
template <class T> LANE T addToOdd(T a, T b) {
  T sum = a + b;
  T part = sum - a;
  return toOdd(sum, (a - (sum - part)) + (b - part));
}

LANE f32 fma(f32 a, f32 b, f32 c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<f32>(
      addToOdd(static_cast<f64>(a) * static_cast<f64>(b), static_cast<f64>(c)));
#endif
}
LANE f64 fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
/// The product of two halves is exact in f32.
LANE f16 fma(f16 a, f16 b, f16 c) {
  return f16(addToOdd(f32(a) * f32(b), f32(c)));
}
LANE bf16 fma(bf16 a, bf16 b, bf16 c) {
  f64 sum = addToOdd(static_cast<f64>(f32(a)) * static_cast<f64>(f32(b)),
                     static_cast<f64>(f32(c)));
  f32 narrow = static_cast<f32>(sum);
  u32 bits = bitCast<u32>(narrow);
  f64 back = narrow;
  bits = __builtin_fabs(back) > __builtin_fabs(sum) ? bits - 1 : bits;
  return bf16(bitCast<f32>(back < sum || back > sum ? bits | 1 : bits));
}

} // namespace
} // namespace kperfir::simt::KPERFIR_SIMT_ISA

#endif // KPERFIR_SIMT_EXEC_LANES_H
