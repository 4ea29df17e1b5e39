//===- Semantics.h - The instruction table of the machine -----------------===//
//
// One row per instruction form that only touches registers: its mnemonic, its
// operands and the function that executes it for a warp. The rows live in one
// file per family (Integer.cpp, Float.cpp, ...), each compiled once per host
// instruction set. Instructions that the engine executes have no row; the
// lowering knows them.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_SEMANTICS_H
#define KPERFIR_SIMT_EXEC_SEMANTICS_H

#include "Simt/Exec/Program.h"

#include <span>
#include <string_view>

namespace kperfir::simt {

struct Timing {
  Pipe pipe;
  LatencyClass latency;
};

namespace timing {
inline constexpr Timing kInt{Pipe::Alu, LatencyClass::Alu};
inline constexpr Timing kInt64{Pipe::Alu, LatencyClass::Alu64};
inline constexpr Timing kIntMul{Pipe::Fma, LatencyClass::IntMul};
inline constexpr Timing kIntMulWide{Pipe::Fma, LatencyClass::IntMulWide};
inline constexpr Timing kIntMul64{Pipe::Fma, LatencyClass::IntMul64};
inline constexpr Timing kIntDiv32{Pipe::Sfu, LatencyClass::IntDiv32};
inline constexpr Timing kIntDiv64{Pipe::Sfu, LatencyClass::IntDiv64};
inline constexpr Timing kBitCount{Pipe::Sfu, LatencyClass::Sfu};
inline constexpr Timing kFma{Pipe::Fma, LatencyClass::Fma};
inline constexpr Timing kHalf{Pipe::Half, LatencyClass::Half};
inline constexpr Timing kFp64{Pipe::Fp64, LatencyClass::Fp64};
inline constexpr Timing kSfu{Pipe::Sfu, LatencyClass::Sfu};
inline constexpr Timing kEx2{Pipe::Sfu, LatencyClass::Ex2};
inline constexpr Timing kDivApprox{Pipe::Sfu, LatencyClass::DivApprox};
inline constexpr Timing kDivFull{Pipe::Sfu, LatencyClass::DivFull};
inline constexpr Timing kDivRn{Pipe::Sfu, LatencyClass::DivRn32};
inline constexpr Timing kSqrtRn{Pipe::Sfu, LatencyClass::SqrtRn32};
inline constexpr Timing kDivFp64{Pipe::Fp64, LatencyClass::Div64Fp};
inline constexpr Timing kConvert{Pipe::Sfu, LatencyClass::Convert};
inline constexpr Timing kConvertHalf{Pipe::Alu, LatencyClass::ConvertHalf};
inline constexpr Timing kPredicate{Pipe::Alu, LatencyClass::Predicate};
inline constexpr Timing kSelect{Pipe::Alu, LatencyClass::Select};
inline constexpr Timing kMov{Pipe::Alu, LatencyClass::Mov};
inline constexpr Timing kSpecial{Pipe::Alu, LatencyClass::Special};
inline constexpr Timing kLoadParam{Pipe::Lsu, LatencyClass::LoadParam};
inline constexpr Timing kShuffle{Pipe::Lsu, LatencyClass::Shuffle};
inline constexpr Timing kVote{Pipe::Alu, LatencyClass::Vote};
inline constexpr Timing kMatch{Pipe::Alu, LatencyClass::Match};
inline constexpr Timing kRedux{Pipe::Alu, LatencyClass::Redux};
} // namespace timing

/// Operands and execution of an instruction form. The signature is the
/// destinations, `=`, then the sources, one letter each:
///   b 8-bit   h 16-bit   w 32-bit   d 64-bit   q 128-bit   p predicate
/// Destinations are MicroOp::dst[0..], sources MicroOp::src[0..].
struct Form {
  const char *signature;
  Handler handler;
};

struct Semantics {
  const char *mnemonic; // normalised: see normaliseMnemonic
  Form form;
  Opcode opcode;
  Timing timing;
};

/// The tables of one host instruction set, one span per family.
struct InstructionSet {
  std::span<const std::span<const Semantics>> families;
};

/// Row of `mnemonic`, or null.
const Semantics *findSemantics(HostIsa isa, std::string_view mnemonic);
/// All rows, in table order.
InstructionSet instructionSet(HostIsa isa);

/// Special registers, the operand of MovSpecial (MicroOp::sub).
enum class SpecialRegister : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NWarpId,
  SmId,
  NSmId,
  GridId,
  LaneMaskEq,
  LaneMaskLt,
  LaneMaskLe,
  LaneMaskGt,
  LaneMaskGe,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NClusterIdX,
  NClusterIdY,
  NClusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtaRank,
  ClusterNctaRank,
  IsExplicitCluster,
  DynamicSmemSize,
  TotalSmemSize,
  Clock,
  ClockHi,
  Clock64,
  GlobalTimer,
  GlobalTimerLo,
  GlobalTimerHi,
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_SEMANTICS_H
