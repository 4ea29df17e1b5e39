//===- trace.cpp - kperfir._native.trace ----------------------------------===//
//
// Hands lib/Trace to Python: the order of nested spans, and slices of a trace.
// Converts and checks, decides nothing.
//
//===----------------------------------------------------------------------===//

#include "Record/Column.h"
#include "Trace/Nesting.h"
#include "Trace/Slices.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace nb = nanobind;
using namespace kperfir::trace;

namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Column =
    nb::ndarray<int64_t, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::numpy, nb::ndim<1>>;

void require(bool fits, const char *what) {
  if (!fits)
    throw std::invalid_argument(what);
}

template <typename T> std::span<const T> view(const Array<T> &array) {
  return {array.data(), array.size()};
}

std::span<int64_t> view(const Column &column) {
  return {column.data(), column.size()};
}

using Memory = kperfir::record::Column<int64_t>;

Column toColumn(std::unique_ptr<Memory> memory) {
  Memory *owner = memory.release();
  nb::capsule free(owner,
                   [](void *p) noexcept { delete static_cast<Memory *>(p); });
  return Column(owner->data(), {owner->size()}, free);
}

/// Not initialised.
Column newColumn(size_t rows) {
  return toColumn(std::make_unique<Memory>(rows));
}

std::tuple<Column, Column> wholeNs(const Array<double> &start,
                                   const Array<double> &duration, size_t room) {
  size_t rows = start.size();
  require(duration.size() == rows, "durations of another length");
  Column starts = newColumn(room + rows), ends = newColumn(room + rows);
  for (size_t row = 0; row < rows; ++row) {
    double begin = start.data()[row];
    starts.data()[room + row] = std::llrint(begin);
    ends.data()[room + row] = std::llrint(begin + duration.data()[row]);
  }
  return {starts, ends};
}

/// For each number below \p count the first row that has it, or -1.
Column firstRows(const Array<int32_t> &numbers, size_t count) {
  Column first = newColumn(count);
  std::fill_n(first.data(), count, -1);
  for (size_t row = numbers.size(); row-- > 0;) {
    int32_t number = numbers.data()[row];
    require(number >= 0 && static_cast<size_t>(number) < count,
            "a number that there is not");
    first.data()[number] = static_cast<int64_t>(row);
  }
  return first;
}

using Runs = std::tuple<Array<int64_t>, Array<int64_t>>;

/// The spans of each root must be there, and of no other root.
void requireRuns(const Forest &forest) {
  size_t roots = forest.firstSpan.size(), spans = forest.parent.size();
  require(forest.endSpan.size() == roots, "ends of another length");
  require(forest.depth.size() == spans && forest.instant.size() == spans,
          "columns of spans differ in length");
  require(forest.start.size() == roots + spans,
          "as many times as roots and spans");
  std::vector<bool> seen(spans);
  size_t found = 0;
  for (size_t root = 0; root < roots; ++root) {
    int64_t first = forest.firstSpan[root], end = forest.endSpan[root];
    require(0 <= first && first <= end && end <= static_cast<int64_t>(spans),
            "a root of spans that there are not");
    found += static_cast<size_t>(end - first);
    for (int64_t span = first; span < end; ++span) {
      require(!seen[static_cast<size_t>(span)], "a span of two roots");
      seen[static_cast<size_t>(span)] = true;
    }
  }
  require(found == spans, "a span of no root");
}

std::optional<std::tuple<Column, int64_t>>
order(const Runs &runs, const Array<int64_t> &parent,
      const Array<int16_t> &depth, const Array<bool> &instant,
      std::tuple<Column, Column> times) {
  auto &[start, end] = times;
  require(start.size() == end.size(), "starts and ends differ in number");
  Forest forest{view(std::get<0>(runs)),
                view(std::get<1>(runs)),
                view(parent),
                view(depth),
                view(instant),
                view(start),
                view(end)};
  requireRuns(forest);
  auto events = std::make_unique<Memory>(2 * start.size());
  int64_t moved = 0;
  int64_t count = orderEvents(forest, *events, moved);
  if (count < 0)
    return std::nullopt;
  events->resize(static_cast<size_t>(count));
  return std::tuple(toColumn(std::move(events)), moved);
}

Column sumOutermostOf(const Array<int64_t> &parent,
                      const Array<int64_t> &values,
                      const Array<bool> &counted) {
  size_t rows = parent.size();
  require(values.size() == rows && counted.size() == rows,
          "columns differ in length");
  Column sums = newColumn(rows);
  require(sumOutermost(view(parent), view(values), view(counted), view(sums)),
          "a parent that comes after its child");
  return sums;
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

template <typename T> Array<T> take(const nb::dict &table, const char *name) {
  return nb::cast<Array<T>>(table[name]);
}

/// Rows of \p table by number, as \p make makes them.
template <typename T, typename Make>
std::vector<T> rowsOf(size_t count, Make make) {
  std::vector<T> rows;
  rows.reserve(count);
  for (size_t row = 0; row < count; ++row)
    rows.push_back(make(row));
  return rows;
}

std::vector<RegionIds> toRegions(const nb::dict &table) {
  auto kind = take<int64_t>(table, "kind"), name = take<int64_t>(table, "name"),
       source = take<int64_t>(table, "source");
  auto isWait = take<bool>(table, "is_wait"),
       isInstant = take<bool>(table, "is_instant");
  size_t count = kind.size();
  require(name.size() == count && source.size() == count &&
              isWait.size() == count && isInstant.size() == count,
          "columns of regions differ in length");
  return rowsOf<RegionIds>(count, [&](size_t i) {
    return RegionIds{static_cast<uint64_t>(kind.data()[i]),
                     static_cast<uint64_t>(name.data()[i]),
                     static_cast<uint64_t>(source.data()[i]), isWait.data()[i],
                     isInstant.data()[i]};
  });
}

std::vector<Root> toRoots(const nb::dict &table) {
  auto numbers = take<int64_t>(table, "numbers"),
       role = take<int64_t>(table, "role"), name = take<int64_t>(table, "name"),
       track = take<int64_t>(table, "track");
  size_t count = role.size();
  require(numbers.size() == count * kRootNumbers && name.size() == count &&
              track.size() == count,
          "columns of roots differ in length");
  return rowsOf<Root>(count, [&](size_t i) {
    Root root{{},
              static_cast<uint64_t>(role.data()[i]),
              static_cast<uint64_t>(name.data()[i]),
              static_cast<uint64_t>(track.data()[i])};
    std::copy_n(numbers.data() + i * kRootNumbers, kRootNumbers,
                root.numbers.begin());
    return root;
  });
}

std::vector<Arrow> toArrows(const nb::dict &table, const char *rows) {
  auto row = take<int64_t>(table, rows);
  auto id = take<int64_t>(table, "id");
  require(id.size() == row.size(), "columns of arrows differ in length");
  auto arrows = rowsOf<Arrow>(row.size(), [&](size_t i) {
    return Arrow{row.data()[i], static_cast<uint64_t>(id.data()[i])};
  });
  std::ranges::stable_sort(arrows, {}, &Arrow::row);
  return arrows;
}

std::vector<Value> toValues(const nb::dict &table) {
  auto row = take<int64_t>(table, "row");
  auto kind = take<int64_t>(table, "kind");
  auto bits = take<uint64_t>(table, "bits");
  require(kind.size() == row.size() && bits.size() == row.size(),
          "columns of values differ in length");
  auto values = rowsOf<Value>(row.size(), [&](size_t i) {
    require(kind.data()[i] >= 0 && kind.data()[i] <= int(ValueKind::Double),
            "no such kind of value");
    return Value{row.data()[i], static_cast<ValueKind>(kind.data()[i]),
                 bits.data()[i]};
  });
  std::ranges::stable_sort(values, {}, &Value::row);
  return values;
}

void requireRows(const Drawing &drawing) {
  size_t rows = drawing.start.size(), spans = drawing.region.size();
  require(drawing.end.size() == rows && drawing.roots.size() + spans == rows,
          "as many times as roots and spans");
  require(drawing.iteration.size() == spans &&
              drawing.startCycles.size() == spans &&
              drawing.durationCycles.size() == spans &&
              drawing.waitCycles.size() == spans &&
              drawing.complete.size() == spans,
          "columns of spans differ in length");
  auto below = [](auto value, size_t limit) {
    return value >= 0 && static_cast<size_t>(value) < limit;
  };
  auto isRow = [&](const auto &entry) { return below(entry.row, rows); };
  require(std::ranges::all_of(
              drawing.region,
              [&](int32_t r) { return below(r, drawing.regions.size()); }),
          "no such region");
  require(std::ranges::all_of(drawing.events,
                              [&](int64_t e) { return below(e, 2 * rows); }),
          "no such event");
  require(std::ranges::all_of(drawing.values, isRow) &&
              std::ranges::all_of(drawing.leaving, isRow) &&
              std::ranges::all_of(drawing.reaching, isRow),
          "no such row");
}

/// A writer and the arrays that it reads.
class PySliceWriter {
public:
  PySliceWriter(const nb::dict &rows, const nb::dict &regions,
                const nb::dict &roots, const nb::dict &sequence)
      : events(take<int64_t>(rows, "events")),
        start(take<int64_t>(rows, "start")), end(take<int64_t>(rows, "end")),
        region(take<int32_t>(rows, "region")),
        iteration(take<int64_t>(rows, "iteration")),
        startCycles(take<int64_t>(rows, "start_cycles")),
        durationCycles(take<int64_t>(rows, "duration_cycles")),
        waitCycles(take<int64_t>(rows, "wait_cycles")),
        complete(take<bool>(rows, "complete")) {
    auto flows = nb::cast<nb::dict>(rows["flows"]);
    Drawing drawing{view(events),
                    view(start),
                    view(end),
                    view(region),
                    view(iteration),
                    view(startCycles),
                    view(durationCycles),
                    view(waitCycles),
                    view(complete),
                    toRegions(regions),
                    toRoots(roots),
                    toValues(nb::cast<nb::dict>(rows["values"])),
                    toArrows(flows, "from_row"),
                    toArrows(flows, "to_row")};
    requireRows(drawing);
    writer =
        std::make_unique<SliceWriter>(std::move(drawing), toSequence(sequence));
  }

  Bytes write(size_t first, size_t last) {
    require(first <= last && last <= writer->events(), "no such events");
    std::span<const uint8_t> bytes = writer->write(first, last);
    return Bytes(bytes.data(), {bytes.size()}, nb::find(this));
  }

private:
  static Sequence toSequence(const nb::dict &table) {
    Sequence sequence;
    sequence.id = nb::cast<uint64_t>(table["id"]);
    sequence.ctaCategory = nb::cast<uint64_t>(table["cta_category"]);
    sequence.offset = nb::cast<int64_t>(table["offset"]);
    auto names = nb::cast<std::vector<uint32_t>>(table["arguments"]);
    require(names.size() == kArguments, "as many names as arguments");
    for (size_t i = 0; i < kArguments; ++i) {
      require(names[i] < 128, "the name of an argument that takes two bytes");
      sequence.argumentNames[i] = static_cast<uint8_t>(names[i]);
    }
    return sequence;
  }

  Array<int64_t> events, start, end;
  Array<int32_t> region;
  Array<int64_t> iteration, startCycles, durationCycles, waitCycles;
  Array<bool> complete;
  std::unique_ptr<SliceWriter> writer;
};

} // namespace

namespace kperfir::python {

void bindTrace(nb::module_ &module) {
  module.attr("UNSIGNED") = int(ValueKind::Unsigned);
  module.attr("SIGNED") = int(ValueKind::Signed);
  module.attr("DOUBLE") = int(ValueKind::Double);
  module.def("whole_ns", &wholeNs, nb::arg("start"), nb::arg("duration"),
             nb::arg("room"),
             "Start and end of each span in whole nanoseconds, behind `room` "
             "entries that the caller fills.");
  module.def("first_rows", &firstRows, nb::arg("numbers"), nb::arg("count"),
             "For each number below `count`, the first row that has it, or "
             "-1.");
  module.def(
      "order", &order, nb::arg("runs"), nb::arg("parent"), nb::arg("depth"),
      nb::arg("instant"), nb::arg("times"),
      "Begins and ends in the order of a walk over nested spans, and by how "
      "much times were moved; None if parents do not come first, or depths "
      "contradict them.\n\n`runs`: per root, the first of its spans and the "
      "end "
      "of them. `times`: starts and ends, roots first; they are corrected.");
  module.def("sum_outermost", &sumOutermostOf, nb::arg("parent"),
             nb::arg("values"), nb::arg("counted"),
             "Per row, the sum of the values of the outermost counted rows "
             "that lie in it; of a counted row, its own.");
  nb::class_<PySliceWriter>(
      module, "SliceWriter",
      "Writes the events of a drawing as packets of a Perfetto trace; "
      "kperfir.export.pftrace says what the tables hold.")
      .def(nb::init<const nb::dict &, const nb::dict &, const nb::dict &,
                    const nb::dict &>(),
           nb::arg("rows"), nb::arg("regions"), nb::arg("roots"),
           nb::arg("sequence"))
      .def("write", &PySliceWriter::write, nb::arg("first"), nb::arg("last"),
           "The packets of these events, valid until the next call. Calls must "
           "go through the events in order.");
}

} // namespace kperfir::python
