//===- LowerSm90.cpp - wgmma, bulk copies and tensor maps -----------------===//
//
// Statements of the asynchronous units that sm_90 adds. Operands are placed as
// Program.h documents per opcode. Forms that the machine does not know are
// refused here, by name.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Access.h"
#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

constexpr Timing kWgmma{Pipe::Tensor, LatencyClass::Wgmma};
constexpr Timing kBulkCopy{Pipe::Async, LatencyClass::BulkCopy};
constexpr Timing kBulkGroup{Pipe::Async, LatencyClass::BulkGroup};
constexpr Timing kTensormap{Pipe::Lsu, LatencyClass::Tensormap};

bool eraseWord(Words &words, std::string_view word) {
  return std::erase(words, word) != 0;
}

/// A small constant; nothing if `operand` is another thing.
std::optional<uint32_t> smallConstant(const ptx::Operand &operand) {
  if (operand.kind != ptx::OperandKind::Immediate || operand.bits > 0x7FFFFFFF)
    return std::nullopt;
  return static_cast<uint32_t>(operand.bits);
}

} // namespace

// --- wgmma -------------------------------------------------------------------

/// "m64n128k16" to n and k.
static bool parseWgmmaShape(std::string_view word, WgmmaShape &shape) {
  if (!word.starts_with("m64n"))
    return false;
  uint16_t *const fields[] = {&shape.n, &shape.k};
  size_t at = 3;
  for (unsigned i = 0; i < 2; ++i) {
    if (at >= word.size() || word[at] != "nk"[i])
      return false;
    unsigned value = 0;
    for (++at; at < word.size() && word[at] >= '0' && word[at] <= '9'; ++at)
      value =
          std::min(value * 10 + static_cast<unsigned>(word[at] - '0'), 65535u);
    *fields[i] = static_cast<uint16_t>(value);
  }
  return at == word.size() && shape.n >= 8 && shape.n <= 256 &&
         shape.n % 8 == 0;
}

/// Whether wgmma has these types; k is always 32 bytes of A and B.
static bool isWgmmaType(const WgmmaShape &shape) {
  unsigned bits = typeBits(shape.typeA == Type::TF32 ? Type::F32 : shape.typeA);
  if (bits == 0 || shape.k * bits != 256)
    return false;
  bool halfOrFloat = shape.typeD == Type::F16 || shape.typeD == Type::F32;
  auto isFloat8 = [](Type type) {
    return type == Type::E4M3 || type == Type::E5M2;
  };
  auto isInt8 = [](Type type) { return type == Type::S8 || type == Type::U8; };
  switch (shape.typeA) {
  case Type::F16:
    return shape.typeB == Type::F16 && halfOrFloat;
  case Type::BF16:
  case Type::TF32:
    return shape.typeB == shape.typeA && shape.typeD == Type::F32;
  default:
    return (isFloat8(shape.typeA) && isFloat8(shape.typeB) && halfOrFloat) ||
           (isInt8(shape.typeA) && isInt8(shape.typeB) &&
            shape.typeD == Type::S32);
  }
}

void Lowering::wgmma() {
  // wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 d, a, b, scale-d,
  //   imm-scale-a, imm-scale-b[, imm-trans-a], imm-trans-b
  Words parts = words();
  WgmmaShape shape;
  shape.satfinite = eraseWord(parts, "satfinite");
  if (parts.size() != 8 || parts[2] != "sync" || parts[3] != "aligned" ||
      !parseWgmmaShape(parts[4], shape))
    unsupported();
  shape.typeD = typeFromName(parts[5]).value_or(Type::None);
  shape.typeA = typeFromName(parts[6]).value_or(Type::None);
  shape.typeB = typeFromName(parts[7]).value_or(Type::None);
  if (!isWgmmaType(shape))
    unsupported();

  expectOperands(4, 8);
  if (operand(0).kind != ptx::OperandKind::Vector)
    malformed("matrix D is not a vector of registers");
  std::vector<std::optional<uint32_t>> accumulators;
  for (const ptx::Operand &element : operand(0).elements)
    accumulators.push_back(target(element, 'w'));
  bool aInRegisters = operand(1).kind == ptx::OperandKind::Vector;
  std::vector<Value> a = aInRegisters ? sources(operand(1), 'w')
                                      : std::vector{source(operand(1), 'd')};
  Value b = source(operand(2), 'd');
  shape.numD = static_cast<uint8_t>(accumulators.size());
  shape.numA = static_cast<uint8_t>(aInRegisters ? a.size() : 0);
  size_t expected = shape.n / (shape.typeD == Type::F16 ? 4u : 2u);
  if (accumulators.size() != expected)
    malformed("matrix D has " + std::to_string(accumulators.size()) +
              " registers, expected " + std::to_string(expected));
  if (aInRegisters && a.size() != 4)
    malformed("matrix A has " + std::to_string(a.size()) +
              " registers, expected 4");

  std::optional<Value> scaleD;
  if (auto constant = smallConstant(operand(3)))
    shape.scaleD = *constant != 0;
  else
    scaleD = source(operand(3), 'p');
  wgmmaScales(shape);

  VirtualOp &op = emit(Opcode::Wgmma, OpKind::Bulk, kWgmma);
  op.op.type = shape.typeD;
  op.op.imm = static_cast<int32_t>(program.wgmmas.size());
  program.wgmmas.push_back(shape);
  for (auto &reg : accumulators) {
    if (!reg)
      reg = temporary(1);
    writePool(op, reg);
  }
  // The old sum is read as well, but not waited for: the unit keeps it.
  if (shape.scaleD)
    for (const auto &reg : accumulators)
      op.references.push_back({*reg, Slot::Src2, false, 0, true});
  if (aInRegisters)
    for (const Value &value : a)
      readPool(op, value);
  else
    read(op, Slot::Src0, a[0]);
  read(op, Slot::Src1, b);
  if (scaleD)
    read(op, Slot::Src3, *scaleD);
}

/// The constants after scale-d: signs and, for 16-bit elements, transpositions.
void Lowering::wgmmaScales(WgmmaShape &shape) {
  bool isInteger = shape.typeD == Type::S32;
  bool canTranspose = shape.typeA == Type::F16 || shape.typeA == Type::BF16;
  bool aInRegisters = shape.numA != 0;
  size_t count =
      4 + (isInteger ? 0 : 2) + (canTranspose ? (aInRegisters ? 1u : 2u) : 0u);
  expectOperands(count, count);
  if (isInteger)
    return;
  auto flag = [&](size_t index, uint64_t yes, uint64_t no) {
    const ptx::Operand &value = operand(index);
    if (value.kind != ptx::OperandKind::Immediate ||
        (value.bits != yes && value.bits != no))
      malformed("operand " + std::to_string(index) +
                " is not one of its two constants");
    return value.bits == yes;
  };
  shape.negateA = flag(4, ~uint64_t(0), 1);
  shape.negateB = flag(5, ~uint64_t(0), 1);
  if (!canTranspose)
    return;
  if (!aInRegisters)
    shape.transposeA = flag(6, 1, 0);
  shape.transposeB = flag(count - 1, 1, 0);
}

void Lowering::setMaxRegisters() {
  expectOperands(1, 1);
  auto count = smallConstant(operand(0));
  constexpr uint64_t kLeast = 24, kMost = 256, kUnit = 8;
  if (!count || *count < kLeast || *count > kMost || *count % kUnit)
    malformed("the number of registers is not a multiple of 8 from 24 to 256");
  movesRegisters = true;
  nothing();
}

void Lowering::wgmmaGroup() {
  const std::string &name = current->mnemonic;
  if (name == "wgmma.wait_group.sync.aligned") {
    expectOperands(1, 1);
    auto groups = smallConstant(operand(0));
    if (!groups)
      malformed("the number of groups is not a constant");
    VirtualOp &op = emit(Opcode::WgmmaWaitGroup, OpKind::Bulk, kWgmma);
    op.op.imm = static_cast<int32_t>(*groups);
    return;
  }
  expectOperands(0, 0);
  if (name == "wgmma.fence.sync.aligned")
    emit(Opcode::WgmmaFence, OpKind::Bulk, kWgmma);
  else if (name == "wgmma.commit_group.sync.aligned")
    emit(Opcode::WgmmaCommitGroup, OpKind::Bulk, kWgmma);
  else
    unsupported();
}

// --- bulk copies -------------------------------------------------------------

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
