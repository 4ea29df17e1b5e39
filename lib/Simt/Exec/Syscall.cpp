//===- Syscall.cpp - vprintf and __assertfail -----------------------------===//

#include "Simt/Exec/Sm.h"
#include "Simt/Exec/Transfer.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace kperfir::simt {

namespace {
constexpr size_t kMaxString = 4096;

/// One conversion of a printf format.
struct Conversion {
  std::string flags; // between % and the length modifier
  unsigned longs = 0;
  char kind = 0;

  bool isWide() const {
    return longs || kind == 's' || kind == 'p' || isFloat();
  }
  bool isFloat() const {
    return std::string_view("fFeEgGaA").find(kind) != std::string_view::npos;
  }
};

/// Reads the conversion at format[i] == '%' and moves i behind it.
Conversion parseConversion(const std::string &format, size_t &i) {
  Conversion conversion;
  ++i;
  while (i < format.size() &&
         std::string_view("-+ #0123456789.").find(format[i]) !=
             std::string_view::npos)
    conversion.flags += format[i++];
  for (; i < format.size() &&
         (format[i] == 'l' || format[i] == 'h' || format[i] == 'z' ||
          format[i] == 'j' || format[i] == 't');
       ++i)
    conversion.longs += format[i] != 'h';
  if (i < format.size())
    conversion.kind = format[i++];
  return conversion;
}

template <typename T>
std::string formatWith(const std::string &specification, T value) {
  char text[512];
  // The specification is built from checked parts by formatArgument.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  std::snprintf(text, sizeof text, specification.c_str(), value);
#pragma GCC diagnostic pop
  return text;
}

std::string formatArgument(const Conversion &conversion, uint64_t bits,
                           const std::string &string) {
  std::string specification = "%" + conversion.flags;
  switch (conversion.kind) {
  case 'd':
  case 'i':
    return formatWith(specification + "lld",
                      conversion.longs
                          ? static_cast<long long>(bits)
                          : static_cast<long long>(static_cast<int32_t>(bits)));
  case 'u':
  case 'x':
  case 'X':
  case 'o':
    return formatWith(specification + "ll" + conversion.kind,
                      conversion.longs ? static_cast<unsigned long long>(bits)
                                       : static_cast<unsigned long long>(
                                             static_cast<uint32_t>(bits)));
  case 'c':
    return formatWith(specification + "c", static_cast<int>(bits));
  case 's':
    return formatWith(specification + "s", string.c_str());
  case 'p':
    return formatWith(specification + "#llx",
                      static_cast<unsigned long long>(bits));
  default:
    if (conversion.isFloat())
      return formatWith(specification + conversion.kind,
                        std::bit_cast<double>(bits));
    return specification + conversion.kind;
  }
}
} // namespace

void Sm::executeSyscall(Warp &warp, const MicroOp &op, LaneMask active) {
  setReady(warp, op, now + launch.costs[warp.pc - 1].latency);
  if (!active)
    return;
  if (op.opcode == Opcode::AssertFail) {
    auto lane = static_cast<unsigned>(std::countr_zero(active));
    std::string message =
        readString(warp, lane, warp.context.src64(op.src[0])[lane]);
    std::string file =
        readString(warp, lane, warp.context.src64(op.src[1])[lane]);
    uint32_t line = warp.context.src(op.src[2])[lane];
    fail(warp, warp.pc - 1,
         {ErrorKind::Assert,
          "device assertion failed: " + message + " (" + file + ":" +
              std::to_string(line) + ")",
          static_cast<int>(lane)});
  }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(std::countr_zero(rest));
    printed.push_back(
        {now, formatPrintf(warp, lane, warp.context.src64(op.src[0])[lane],
                           warp.context.src64(op.src[1])[lane])});
    if (op.dst[0] != kNoRow)
      warp.context.dst(op.dst[0])[lane] = 0;
  }
}

const uint8_t *Sm::resolveBytes(const Warp &warp, unsigned lane,
                                uint64_t address, unsigned bytes) const {
  const Cta &cta = *warp.cta;
  auto offset = static_cast<uint32_t>(address);
  switch (address & kWindowMask) {
  case kSharedWindow:
    return cta.shared.inBounds(offset, bytes) ? cta.shared.data() + offset
                                              : nullptr;
  case kLocalWindow:
    if (offset > cta.localBytes || bytes > cta.localBytes - offset)
      return nullptr;
    return cta.local.data() +
           size_t(warp.index * kWarpSize + lane) * cta.localBytes + offset;
  default: {
    const GlobalRange *range = launch.memory->find(address);
    if (!range || !range->contains(address, bytes))
      return nullptr;
    return reinterpret_cast<const uint8_t *>(address);
  }
  }
}

std::string Sm::readString(const Warp &warp, unsigned lane,
                           uint64_t address) const {
  std::string text;
  for (; text.size() < kMaxString; ++address) {
    const uint8_t *byte = resolveBytes(warp, lane, address, 1);
    if (!byte)
      fail(warp, warp.pc - 1,
           {ErrorKind::OutOfBounds,
            "a string for printf or assert is not mapped",
            static_cast<int>(lane), address});
    if (*byte == 0)
      break;
    text += static_cast<char>(*byte);
  }
  return text;
}

std::string Sm::formatPrintf(const Warp &warp, unsigned lane,
                             uint64_t formatAddress, uint64_t arguments) const {
  std::string format = readString(warp, lane, formatAddress);
  std::string text;
  uint64_t offset = 0;
  for (size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      text += format[i++];
      continue;
    }
    Conversion conversion = parseConversion(format, i);
    if (conversion.kind == '%' || conversion.kind == 0) {
      text += '%';
      continue;
    }
    // Arguments lie at multiples of their size.
    unsigned bytes = conversion.isWide() ? 8 : 4;
    offset = (offset + bytes - 1) / bytes * bytes;
    const uint8_t *from = resolveBytes(warp, lane, arguments + offset, bytes);
    if (!from)
      fail(warp, warp.pc - 1,
           {ErrorKind::OutOfBounds, "an argument of printf is not mapped",
            static_cast<int>(lane), arguments + offset});
    uint64_t bits = 0;
    std::memcpy(&bits, from, bytes);
    offset += bytes;
    text += formatArgument(conversion, bits,
                           conversion.kind == 's' ? readString(warp, lane, bits)
                                                  : std::string());
  }
  return text;
}

} // namespace kperfir::simt
