//===- TensorMap.cpp ------------------------------------------------------===//

#include "Simt/Exec/TensorMap.h"

#include <algorithm>

namespace kperfir::simt {

namespace {
struct ElementInfo {
  unsigned bytes;
  Type type;
};
constexpr ElementInfo kElements[] = {
    {1, Type::U8},  {2, Type::U16}, {4, Type::U32},  {4, Type::S32},
    {8, Type::U64}, {8, Type::S64}, {2, Type::F16},  {4, Type::F32},
    {4, Type::F32}, {8, Type::F64}, {2, Type::BF16}, {4, Type::F32},
    {4, Type::F32},
};
static_assert(std::size(kElements) ==
              static_cast<size_t>(TensorElement::TF32Ftz) + 1);

constexpr unsigned kMaxBox = 256;
constexpr unsigned kUnitBytes = 16;

std::string number(uint64_t value) { return std::to_string(value); }
} // namespace

unsigned TensorMap::elementBytes() const { return kElements[element].bytes; }
Type TensorMap::elementType() const { return kElements[element].type; }

unsigned TensorMap::boxBytes() const {
  unsigned bytes = elementBytes();
  for (unsigned i = 0; i < rank(); ++i)
    bytes *= box[i];
  return bytes;
}

std::string TensorMap::problem() const {
  if (tag != kTag)
    return "it is no tensor map";
  if (lastDimension >= kMaxTensorRank)
    return "its rank is " + number(rank()) + "; at most 5";
  if (element >= std::size(kElements))
    return "its elements are of type " + number(element) +
           ", which the SIMT device does not support";
  if (swizzle > static_cast<uint8_t>(TensorSwizzle::Bytes128))
    return "its swizzle mode is " + number(swizzle) +
           ", which the SIMT device does not support";
  if (interleave)
    return "it is interleaved, which the SIMT device does not support";
  if (address % kUnitBytes)
    return "its address is not aligned to 16 bytes";
  for (unsigned i = 0; i < rank(); ++i) {
    std::string dimension = " of dimension " + number(i);
    if (box[i] == 0 || box[i] > kMaxBox)
      return "the box" + dimension + " is " + number(box[i]) +
             "; need 1 to 256";
    if (elementStride[i] != 1)
      return "the element stride" + dimension + " is " +
             number(elementStride[i]) +
             ", which the SIMT device does not support; need 1";
    if (i > 0 && stride[i - 1] % kUnitBytes)
      return "the stride" + dimension + " is " + number(stride[i - 1]) +
             " bytes; need a multiple of 16";
  }
  unsigned row = box[0] * elementBytes();
  if (row % kUnitBytes)
    return "a row of its box has " + number(row) +
           " bytes; need a multiple of 16";
  if (swizzle && row > 16u << swizzle)
    return "a row of its box has " + number(row) +
           " bytes, more than the swizzle takes";
  return "";
}

bool TensorMap::replace(TensormapField field, unsigned dimension,
                        uint64_t value) {
  tag = kTag;
  auto word = static_cast<uint32_t>(value);
  switch (field) {
  case TensormapField::GlobalAddress:
    address = value;
    return true;
  case TensormapField::Rank:
    lastDimension = static_cast<uint8_t>(std::min(word, 255u));
    return word < kMaxTensorRank;
  case TensormapField::BoxDim:
    box[dimension] = word;
    return true;
  case TensormapField::GlobalDim:
    extent[dimension] = word;
    return true;
  case TensormapField::GlobalStride:
    if (dimension >= std::size(stride))
      return false;
    stride[dimension] = value;
    return true;
  case TensormapField::ElementStride:
    elementStride[dimension] = word;
    return true;
  case TensormapField::ElementType:
    element = static_cast<uint8_t>(std::min(word, 255u));
    return word < std::size(kElements);
  case TensormapField::Interleave:
    interleave = static_cast<uint8_t>(std::min(word, 255u));
    return word <= 2;
  case TensormapField::Swizzle:
    swizzle = static_cast<uint8_t>(std::min(word, 255u));
    return word <= 4;
  case TensormapField::Fill:
    fill = static_cast<uint8_t>(std::min(word, 255u));
    return word <= 1;
  }
  return false;
}

} // namespace kperfir::simt
