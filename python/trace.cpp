//===- trace.cpp - kperfir._native.trace ----------------------------------===//
//
// Hands lib/Trace to Python: messages of columns, and their order. Converts and
// checks, decides nothing.
//
//===----------------------------------------------------------------------===//

#include "Trace/Messages.h"
#include "Trace/Walk.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace nb = nanobind;
using namespace kperfir::trace;

namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FieldTuple = std::tuple<int, nb::bytes, std::optional<Array<uint64_t>>,
                              std::optional<Array<bool>>, uint32_t>;
using BatchTuple = std::tuple<std::vector<FieldTuple>, Array<int64_t>>;

void require(bool fits, const char *what) {
  if (!fits)
    throw std::invalid_argument(what);
}

Field toField(const FieldTuple &tuple, size_t rows) {
  const auto &[kind, literal, values, present, inside] = tuple;
  require(kind >= 0 && kind <= int(FieldKind::Message),
          "no such kind of field");
  require(literal.size() <= Field::kLiteral, "a literal is too long");
  require(!values || values->size() == rows, "values of another length");
  require(!present || present->size() == rows, "presence of another length");
  Field field;
  field.kind = static_cast<FieldKind>(kind);
  bool takesValues =
      field.kind == FieldKind::Varint || field.kind == FieldKind::Fixed64;
  require(takesValues == values.has_value(), "values do not fit the field");
  require(field.kind == FieldKind::Message || inside == 0,
          "fields inside of what is no message");
  std::memcpy(field.literal.data(), literal.data(), literal.size());
  field.literalBytes = static_cast<uint32_t>(literal.size());
  field.values = values ? values->data() : nullptr;
  field.present = present ? present->data() : nullptr;
  field.inside = inside;
  return field;
}

/// A message's fields must end where those of the message around it do, or
/// before.
void requireNesting(const std::vector<Field> &fields, size_t begin,
                    size_t end) {
  while (begin != end) {
    size_t next = begin + 1 + fields[begin].inside;
    require(next <= end, "a message of more fields than there are");
    requireNesting(fields, begin + 1, next);
    begin = next;
  }
}

MessageBatch toBatch(const BatchTuple &tuple) {
  const auto &[fields, positions] = tuple;
  MessageBatch batch;
  batch.rows = positions.size();
  for (const FieldTuple &field : fields)
    batch.fields.push_back(toField(field, batch.rows));
  requireNesting(batch.fields, 0, batch.fields.size());
  return batch;
}

/// Messages by position; positions must be a permutation.
std::vector<Source> toOrder(const std::vector<BatchTuple> &batches) {
  constexpr uint32_t kNone = UINT32_MAX;
  size_t rows = 0;
  for (const auto &[fields, positions] : batches)
    rows += positions.size();
  std::vector<Source> order(rows, {kNone, 0});
  for (uint32_t batch = 0; batch < batches.size(); ++batch) {
    const Array<int64_t> &positions = std::get<1>(batches[batch]);
    for (uint32_t row = 0; row < positions.size(); ++row) {
      int64_t position = positions.data()[row];
      require(position >= 0 && static_cast<size_t>(position) < rows &&
                  order[static_cast<size_t>(position)].batch == kNone,
              "positions are not a permutation");
      order[static_cast<size_t>(position)] = {batch, row};
    }
  }
  return order;
}

nb::bytes interleave(const std::vector<BatchTuple> &tuples) {
  std::vector<MessageBatch> batches(tuples.size());
  std::transform(tuples.begin(), tuples.end(), batches.begin(), toBatch);
  std::vector<Source> order = toOrder(tuples);
  std::vector<uint8_t> bytes;
  {
    nb::gil_scoped_release release;
    bytes = writeMessages(batches, order);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

using Column =
    nb::ndarray<int64_t, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Column newColumn(size_t rows) {
  auto *memory = new int64_t[rows];
  nb::capsule free(
      memory, [](void *p) noexcept { delete[] static_cast<int64_t *>(p); });
  return Column(memory, {rows}, free);
}

std::optional<std::tuple<Column, Column>> walk(const Array<int64_t> &parents,
                                               const Array<int64_t> &depths) {
  size_t rows = parents.size();
  require(depths.size() == rows, "depths of another length");
  Column begins = newColumn(rows), ends = newColumn(rows);
  if (!walkForest({parents.data(), rows}, {depths.data(), rows},
                  {begins.data(), rows}, {ends.data(), rows}))
    return std::nullopt;
  return std::tuple(begins, ends);
}

} // namespace

namespace kperfir::python {

void bindTrace(nb::module_ &module) {
  module.attr("LITERAL_BYTES") = Field::kLiteral;
  module.attr("CONSTANT") = int(FieldKind::Constant);
  module.attr("VARINT") = int(FieldKind::Varint);
  module.attr("FIXED64") = int(FieldKind::Fixed64);
  module.attr("MESSAGE") = int(FieldKind::Message);
  module.def("walk", &walk, nb::arg("parents"), nb::arg("depths"),
             "Positions of the begin and the end of each row in a walk over a "
             "forest; None if parents do not come first, or depths contradict "
             "them. Columns of int64.");
  module.def(
      "interleave", &interleave, nb::arg("batches"),
      "The messages of several batches in one order, as bytes.\n\nA batch is "
      "its fields and the position of each of its rows among all messages. A "
      "field is its kind, the bytes in front of its value, its values "
      "(uint64) and its presence (bool), one per row or None, and how many of "
      "the fields behind it are inside of it.");
}

} // namespace kperfir::python
