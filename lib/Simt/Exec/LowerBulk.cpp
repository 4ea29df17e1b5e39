//===- LowerBulk.cpp - Bulk copies and tensor maps ------------------------===//
//
// cp.async.bulk in all directions, its groups, and tensormap.*. Operands are
// placed as Program.h documents per opcode. Forms that the machine does not
// know are refused here, by name.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Access.h"
#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

constexpr Timing kBulkCopy{Pipe::Async, LatencyClass::BulkCopy};
constexpr Timing kBulkGroup{Pipe::Async, LatencyClass::BulkGroup};
constexpr Timing kTensormap{Pipe::Lsu, LatencyClass::Tensormap};

bool eraseWord(Words &words, std::string_view word) {
  return std::erase(words, word) != 0;
}

} // namespace

/// What the words of a cp.async.bulk or cp.reduce.async.bulk say; false if one
/// is not known.
static bool parseBulkWords(Words parts, BulkCopyShape &shape, bool &multicast,
                           bool &hasPolicy) {
  using Direction = BulkCopyShape::Direction;
  bool reduces = eraseWord(parts, "reduce");
  bool prefetches = eraseWord(parts, "prefetch");
  shape.isTensor = eraseWord(parts, "tensor");
  multicast = eraseWord(parts, "multicast::cluster");
  hasPolicy = eraseWord(parts, "L2::cache_hint");
  bool byGroup = eraseWord(parts, "bulk_group");
  bool byMbarrier = eraseWord(parts, "mbarrier::complete_tx::bytes");
  std::vector<Space> spaces;
  for (size_t i = 3; i < parts.size(); ++i) {
    std::string_view word = parts[i];
    if (auto space = spaceFromName(word))
      spaces.push_back(*space);
    else if (word == "tile::gather4" || word == "tile::scatter4")
      shape.usesRows = true;
    else if (shape.isTensor && word.size() == 2 && word[1] == 'd' &&
             word[0] >= '1' && word[0] <= '5')
      shape.dimensions = static_cast<uint8_t>(word[0] - '0');
    else if (auto operation = atomicFromName(word); operation && reduces)
      shape.reduction = *operation;
    else if (auto type = typeFromName(word); type && reduces && !shape.isTensor)
      shape.type = *type;
    else if (word != "tile" && word != "noftz" && word != "L2")
      return false;
  }
  if (shape.isTensor && shape.dimensions == 0)
    return false;
  if (shape.usesRows && shape.dimensions != 2)
    return false;
  auto isShared = [](Space space) {
    return space == Space::Shared || space == Space::SharedCluster;
  };
  if (prefetches) {
    shape.direction = Direction::Prefetch;
    return !reduces && spaces.size() == 1 && spaces[0] == Space::Global;
  }
  if (spaces.size() != 2)
    return false;
  if (isShared(spaces[0]) && spaces[1] == Space::Global) {
    shape.direction = Direction::Load;
    return byMbarrier && !reduces;
  }
  if (spaces[0] == Space::Global && isShared(spaces[1])) {
    shape.direction = reduces ? Direction::Reduce : Direction::Store;
    return byGroup && !multicast;
  }
  shape.direction = Direction::ToCluster;
  return isShared(spaces[0]) && isShared(spaces[1]) && byMbarrier && !reduces &&
         !shape.isTensor && !multicast;
}

void Lowering::bulkCopy() {
  using Direction = BulkCopyShape::Direction;
  BulkCopyShape shape;
  bool multicast = false, hasPolicy = false;
  if (!parseBulkWords(words(), shape, multicast, hasPolicy))
    unsupported();
  size_t used = operandCount() - std::min<size_t>(hasPolicy, operandCount());
  std::array<std::optional<Value>, kBulkOperands> values;
  size_t next = 0;
  auto take = [&]() -> const ptx::Operand & {
    if (next >= used)
      malformed("an operand is missing");
    return operand(next++);
  };
  auto put = [&](BulkOperand which, const Value &value, int64_t offset) {
    auto index = static_cast<unsigned>(which);
    if (offset != static_cast<int32_t>(offset))
      unsupported("with an address offset beyond 32 bits");
    values[index] = value;
    shape.offset[index] = static_cast<int32_t>(offset);
    if (value.rows == 2)
      shape.wideOperands |= static_cast<uint16_t>(1u << index);
  };
  auto takeAddress = [&](BulkOperand which) {
    const ptx::Operand &address = take();
    put(which, addressBase(address), address.offset);
  };
  auto takeMap = [&] {
    const ptx::Operand &place = take();
    if (!shape.isTensor)
      return put(BulkOperand::Map, addressBase(place), place.offset);
    size_t coordinates = shape.usesRows ? 5 : shape.dimensions;
    if (place.kind != ptx::OperandKind::Address || place.elements.size() != 2)
      malformed("an operand is not a tensor map with coordinates");
    ptx::Operand base = place;
    base.elements.resize(1);
    put(BulkOperand::Map, addressBase(base), place.offset);
    std::vector<Value> list = sources(place.elements[1], 'w');
    if (list.size() != coordinates)
      malformed("found " + std::to_string(list.size()) +
                " coordinates, expected " + std::to_string(coordinates));
    for (size_t i = 0; i < list.size(); ++i)
      put(coordinateOperand(i), list[i], 0);
  };
  auto takeBytes = [&] {
    if (!shape.isTensor)
      put(BulkOperand::Bytes, source(take(), 'w'), 0);
  };
  switch (shape.direction) {
  case Direction::Load:
    takeAddress(BulkOperand::Shared);
    takeMap();
    takeBytes();
    takeAddress(BulkOperand::Mbarrier);
    if (multicast)
      put(BulkOperand::CtaMask, source(take(), 'h'), 0);
    break;
  case Direction::Store:
  case Direction::Reduce:
    takeMap();
    takeAddress(BulkOperand::Shared);
    takeBytes();
    break;
  case Direction::ToCluster:
    takeAddress(BulkOperand::Shared);
    takeAddress(BulkOperand::Source);
    takeBytes();
    takeAddress(BulkOperand::Mbarrier);
    break;
  case Direction::Prefetch:
    takeMap();
    takeBytes();
    break;
  }
  if (next != used)
    malformed("found " + std::to_string(used - next) + " operands too many");

  VirtualOp &op = emit(Opcode::BulkCopy, OpKind::Bulk, kBulkCopy);
  op.op.imm = static_cast<int32_t>(program.bulkCopies.size());
  program.bulkCopies.push_back(shape);
  for (const std::optional<Value> &value : values) {
    if (value)
      readPool(op, *value);
    else
      op.pool.push_back(kNoRow);
  }
}

void Lowering::bulkGroup() {
  const std::string &name = current->mnemonic;
  if (name == "cp.async.bulk.commit_group") {
    expectOperands(0, 0);
    emit(Opcode::BulkCommitGroup, OpKind::Bulk, kBulkGroup);
    return;
  }
  bool isRead = name == "cp.async.bulk.wait_group.read";
  if (!isRead && name != "cp.async.bulk.wait_group")
    unsupported();
  expectOperands(1, 1);
  auto groups = smallConstant(operand(0));
  if (!groups)
    malformed("the number of groups is not a constant");
  VirtualOp &op = emit(Opcode::BulkWaitGroup, OpKind::Bulk, kBulkGroup);
  op.op.imm = static_cast<int32_t>(*groups);
  op.op.sub = isRead ? 1 : 0;
}

// --- tensor maps -------------------------------------------------------------

void Lowering::tensormapReplace() {
  // tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [address], dim, value
  struct Field {
    std::string_view name;
    TensormapField field;
    bool hasDimension;
    char letter;
  };
  static constexpr Field kFields[] = {
      {"global_address", TensormapField::GlobalAddress, false, 'd'},
      {"rank", TensormapField::Rank, false, 'w'},
      {"box_dim", TensormapField::BoxDim, true, 'w'},
      {"global_dim", TensormapField::GlobalDim, true, 'w'},
      {"global_stride", TensormapField::GlobalStride, true, 'd'},
      {"element_stride", TensormapField::ElementStride, true, 'w'},
      {"elemtype", TensormapField::ElementType, false, 'w'},
      {"interleave_layout", TensormapField::Interleave, false, 'w'},
      {"swizzle_mode", TensormapField::Swizzle, false, 'w'},
      {"fill_mode", TensormapField::Fill, false, 'w'},
  };
  Words parts = words();
  const Field *field = nullptr;
  if (parts.size() == 7 && parts[2] == "tile" && parts[5] == "b1024" &&
      (parts[4] == "shared::cta" || parts[4] == "shared"))
    for (const Field &candidate : kFields)
      if (parts[3] == candidate.name &&
          parts[6] == (candidate.letter == 'd' ? "b64" : "b32"))
        field = &candidate;
  if (!field)
    unsupported();
  size_t count = field->hasDimension ? 3 : 2;
  expectOperands(count, count);
  Value base = addressBase(operand(0));
  uint32_t dimension = 0;
  if (field->hasDimension) {
    auto constant = smallConstant(operand(1));
    if (!constant || *constant > 4)
      malformed("the dimension is not a constant from 0 to 4");
    dimension = *constant;
  }
  Value value = source(operand(count - 1), field->letter);
  VirtualOp &op = emit(Opcode::TensormapReplace, OpKind::Bulk, kTensormap);
  op.op.space = Space::Shared;
  op.op.sub = static_cast<uint8_t>(field->field);
  op.op.width = static_cast<uint8_t>(dimension);
  setAddress(op, base, operand(0));
  read(op, Slot::Src1, value);
}

void Lowering::tensormapCopy() {
  // tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu
  //   .sync.aligned [global], [shared], 128
  Words parts = words();
  if (parts.size() != 9 || parts[2] != "global" || parts[3] != "shared::cta" ||
      parts[4] != "tensormap::generic" || parts[5] != "release")
    unsupported();
  expectOperands(3, 3);
  if (smallConstant(operand(2)) != 128u)
    malformed("the size is not 128");
  Value to = addressBase(operand(0)), from = addressBase(operand(1));
  if (operand(1).offset)
    unsupported("with an offset of the source");
  VirtualOp &op = emit(Opcode::TensormapCopy, OpKind::Bulk, kTensormap);
  op.op.space = Space::Global;
  setAddress(op, to, operand(0));
  read(op, Slot::Src1, from);
  if (from.rows == 1)
    op.op.flags |= kSource32;
}

} // namespace kperfir::simt