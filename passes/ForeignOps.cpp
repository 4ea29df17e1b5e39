//===- ForeignOps.cpp - Operations of dialects that are not ours ----------===//

#include "passes/ForeignOps.h"

using namespace mlir;

Operation *kperf::createNamed(OpBuilder &builder, Location loc, StringRef name,
                              TypeRange results, ValueRange operands,
                              ArrayRef<NamedAttribute> attributes) {
  OperationState state(loc, name);
  state.addTypes(results);
  state.addOperands(operands);
  state.addAttributes(attributes);
  return builder.create(state);
}

FailureOr<FunctionOpInterface> kperf::findKernel(ModuleOp module) {
  FunctionOpInterface kernel;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    auto visibility = function->getAttrOfType<StringAttr>("sym_visibility");
    bool isPrivate = visibility && visibility.getValue() == "private";
    if (isPrivate || function->getRegion(0).empty())
      continue;
    if (kernel)
      return function.emitError()
             << "kperfir instruments one kernel per module, found a second";
    kernel = function;
  }
  if (!kernel)
    return module.emitError() << "found no public function to instrument";
  return kernel;
}

int64_t kperf::getModuleInt(ModuleOp module, StringRef name, int64_t fallback) {
  auto attribute = module->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getInt() : fallback;
}

void kperf::addNotes(ModuleOp module, ArrayRef<std::string> notes) {
  if (notes.empty())
    return;
  Builder builder(module.getContext());
  SmallVector<Attribute> all;
  if (auto before = module->getAttrOfType<ArrayAttr>("kperf.notes"))
    llvm::append_range(all, before);
  for (StringRef note : notes)
    all.push_back(builder.getStringAttr(note));
  module->setAttr("kperf.notes", builder.getArrayAttr(all));
}

SmallVector<Region *> kperf::listWarpRegions(Operation *warpSpecialize) {
  SmallVector<Region *> regions{&warpSpecialize->getRegion(0)};
  // The partitions live in one operation that holds them all.
  for (Operation &holder : warpSpecialize->getRegion(1).front())
    for (Region &partition : holder.getRegions())
      if (!partition.empty())
        regions.push_back(&partition);
  return regions;
}
