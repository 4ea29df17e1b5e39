//===- SourceNames.cpp - Which line of the user's source is this? ---------===//
//
// Triton wraps a file location in names of variables (NameLoc), inlining
// (CallSiteLoc: callee at caller) and merged operations (FusedLoc).
//
//===----------------------------------------------------------------------===//

#include "passes/SourceNames.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::kperf;

/// Files of Triton's standard library: `tl.sum`, `tl.cdiv` and the like.
static bool isLibraryFile(StringRef file) {
  return file.contains("/triton/language/") ||
         file.contains("/triton/experimental/");
}

/// Adds the frames of `loc`, innermost first.
static void collectFrames(Location loc, SmallVectorImpl<SourcePlace> &frames) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return collectFrames(named.getChildLoc(), frames);
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    collectFrames(call.getCallee(), frames);
    return collectFrames(call.getCaller(), frames);
  }
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      collectFrames(part, frames);
    return;
  }
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    frames.push_back(
        {file.getFilename().getValue(), file.getLine(), file.getColumn()});
}

SourcePlace kperf::findSource(Location loc) {
  SmallVector<SourcePlace> frames;
  collectFrames(loc, frames);
  for (const SourcePlace &frame : frames)
    if (!isLibraryFile(frame.file))
      return frame;
  return frames.empty() ? SourcePlace() : frames.front();
}

std::string kperf::describePlace(StringRef what, Location loc) {
  SourcePlace place = findSource(loc);
  return llvm::formatv("{0} {1}:{2}", what,
                       llvm::sys::path::filename(place.file), place.line);
}

std::string RegionNames::make(StringRef kind, Location loc) {
  std::string base = kind.str();
  if (!findSource(loc).file.empty())
    base = describePlace(kind, loc);
  unsigned count = ++counts[base];
  return count == 1 ? base : llvm::formatv("{0}#{1}", base, count).str();
}
