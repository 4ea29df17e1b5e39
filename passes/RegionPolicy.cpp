//===- RegionPolicy.cpp - Which kinds of regions to record ----------------===//

#include "passes/RegionPolicy.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kperf;

static constexpr uint64_t bit(Kind kind) {
  return uint64_t(1) << static_cast<unsigned>(kind);
}

template <typename... Kinds> static constexpr uint64_t bits(Kinds... kinds) {
  return (bit(kinds) | ...);
}

static constexpr uint64_t kFull = (bit(Kind::Between) << 1) - 1;
static constexpr uint64_t kAuto = kFull & ~bit(Kind::Compute);
static constexpr uint64_t kGaps = bit(Kind::Between);
static constexpr uint64_t kMinimal =
    bits(Kind::Kernel, Kind::Loop, Kind::Prologue, Kind::Epilogue, Kind::User,
         Kind::Mark);
static constexpr uint64_t kMemory =
    kMinimal | kGaps |
    bits(Kind::Iteration, Kind::Load, Kind::Store, Kind::AsyncCopy,
         Kind::AsyncWait, Kind::Tma, Kind::MbarrierWait, Kind::LocalLoad,
         Kind::LocalStore, Kind::Atomic);
static constexpr uint64_t kMma =
    kMinimal | kGaps |
    bits(Kind::Iteration, Kind::Dot, Kind::Wgmma, Kind::WgmmaWait,
         Kind::Tcgen05, Kind::AsyncWait, Kind::MbarrierWait);
static constexpr uint64_t kSync =
    kMinimal | kGaps |
    bits(Kind::Iteration, Kind::AsyncWait, Kind::WgmmaWait, Kind::MbarrierWait,
         Kind::Barrier, Kind::Atomic);
static_assert(getMaxEnumValForKind() == static_cast<unsigned>(Kind::Between));

static std::optional<uint64_t> findKinds(StringRef word) {
  if (std::optional<Kind> kind = symbolizeKind(word))
    return bit(*kind);
  return llvm::StringSwitch<std::optional<uint64_t>>(word)
      .Case("minimal", kMinimal)
      .Case("auto", kAuto)
      .Case("memory", kMemory)
      .Case("mma", kMma)
      .Case("sync", kSync)
      .Case("full", kFull)
      .Default(std::nullopt);
}

FailureOr<RegionPolicy> RegionPolicy::read(ArrayRef<std::string> words,
                                           ModuleOp module, StringRef pass) {
  RegionPolicy policy;
  policy.kinds = words.empty() ? kAuto : 0;
  for (StringRef word : words) {
    std::optional<uint64_t> more = findKinds(word);
    if (!more) {
      module.emitError() << pass << ": '" << word
                         << "' is no kind of region and no policy; see "
                            "docs/contracts.md, 3 (regions)";
      return failure();
    }
    policy.kinds |= *more;
  }
  return policy;
}

RegionPolicy RegionPolicy::only(Kind kind) {
  RegionPolicy policy;
  policy.kinds = bit(kind);
  return policy;
}

bool RegionPolicy::contains(Kind kind) const { return kinds & bit(kind); }

void RegionPolicy::remove(Kind kind) { kinds &= ~bit(kind); }

ArrayRef<Kind> RegionPolicy::listByValue() {
  static constexpr Kind order[] = {
      Kind::Compute,   Kind::ConvertLayout, Kind::LocalStore,   Kind::LocalLoad,
      Kind::Barrier,   Kind::Reduce,        Kind::Scan,         Kind::Call,
      Kind::Atomic,    Kind::Store,         Kind::AsyncCopy,    Kind::Tma,
      Kind::Load,      Kind::Tcgen05,       Kind::Wgmma,        Kind::Dot,
      Kind::AsyncWait, Kind::WgmmaWait,     Kind::MbarrierWait,
  };
  return order;
}
