//===- ScopeTags.cpp - Scopes of the user's source in locations -----------===//

#include "passes/ScopeTags.h"

#include "mlir/IR/Location.h"
#include "passes/ForeignOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::kperf;

static constexpr StringRef kScopePrefix = "kperf.scope|";
static constexpr StringRef kMarkPrefix = "// kperf.mark|";

static bool isTag(NameLoc loc) {
  return loc.getName().getValue().starts_with(kScopePrefix);
}

std::string kperf::unescape(StringRef text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() &&
        llvm::isHexDigit(text[i + 1]) && llvm::isHexDigit(text[i + 2])) {
      result.push_back(static_cast<char>(llvm::hexDigitValue(text[i + 1]) * 16 +
                                         llvm::hexDigitValue(text[i + 2])));
      i += 2;
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

/// File of the source line that a tag was put on.
static StringAttr findFile(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return findFile(named.getChildLoc());
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return file.getFilename();
  return {};
}

static void parseTag(NameLoc tag, Attribute caller,
                     SmallVectorImpl<Scope> &path) {
  StringRef rest = tag.getName().getValue().drop_front(kScopePrefix.size());
  for (StringRef entry : llvm::split(rest, '|')) {
    Scope scope{{}, findFile(tag.getChildLoc()), 0, 0, 0, caller};
    for (uint32_t *number : {&scope.line, &scope.column, &scope.number}) {
      auto [digits, behind] = entry.split(':');
      if (digits.getAsInteger(10, *number))
        return; // Not written by us.
      entry = behind;
    }
    scope.name = StringAttr::get(tag.getContext(), unescape(entry));
    path.push_back(scope);
  }
}

/// Where a call inside a function that was itself inlined at `caller` is.
static Location chain(Location call, Attribute caller) {
  return caller ? CallSiteLoc::get(call, cast<LocationAttr>(caller)) : call;
}

/// Returns whether there was any tag of ours.
static bool collect(Location loc, Attribute caller,
                    SmallVectorImpl<Scope> &path) {
  if (auto named = dyn_cast<NameLoc>(loc)) {
    bool found = isTag(named);
    if (found)
      parseTag(named, caller, path);
    return collect(named.getChildLoc(), caller, path) || found;
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    bool found = collect(call.getCaller(), caller, path);
    Location around = chain(call.getCaller(), caller);
    return collect(call.getCallee(), around, path) || found;
  }
  bool found = false;
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations()) {
      found |= collect(part, caller, path);
      if (!path.empty())
        break;
    }
  return found;
}

ArrayRef<Scope> ScopeTags::getPath(Location loc) {
  std::unique_ptr<SmallVector<Scope>> &path = paths[loc];
  if (!path) {
    path = std::make_unique<SmallVector<Scope>>();
    hasTags |= collect(loc, Attribute(), *path);
  }
  return *path;
}

Location ScopeTags::strip(Location loc) {
  if (Attribute known = stripped.lookup(loc))
    return cast<LocationAttr>(known);
  Location result = loc;
  if (auto named = dyn_cast<NameLoc>(loc)) {
    Location child = strip(named.getChildLoc());
    result = isTag(named) ? child : NameLoc::get(named.getName(), child);
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    result = CallSiteLoc::get(strip(call.getCallee()), strip(call.getCaller()));
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    SmallVector<Location> parts;
    for (Location part : fused.getLocations())
      parts.push_back(strip(part));
    result = FusedLoc::get(parts, fused.getMetadata(), loc.getContext());
  }
  stripped[loc] = result;
  return result;
}

void ScopeTags::strip(ModuleOp module) {
  module->walk([&](Operation *op) {
    op->setLoc(strip(op->getLoc()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(strip(argument.getLoc()));
  });
}

std::optional<SourceMark> kperf::getMark(Operation *op) {
  if (!isNamed(op, "tt.elementwise_inline_asm"))
    return std::nullopt;
  auto text = op->getAttrOfType<StringAttr>("asm_string");
  if (!text || !text.getValue().starts_with(kMarkPrefix))
    return std::nullopt;
  auto [sign, name] = text.getValue().drop_front(kMarkPrefix.size()).split('|');
  return SourceMark{unescape(name), sign == "u"};
}
