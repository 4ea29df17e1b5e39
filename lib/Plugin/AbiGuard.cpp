//===- AbiGuard.cpp - Is the loaded libtriton one that was audited? -------===//
//
// Reads the build-id from the notes of the running process's libraries. Touches
// no class of libtriton: it must work in exactly the builds that differ.
//
//===----------------------------------------------------------------------===//

#include "Plugin/AbiGuard.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <link.h>

namespace kperfir::abi {
namespace {

struct AuditedBuild {
  std::string_view wheel;
  std::string_view buildId;
};

#include "Plugin/AuditedLibtriton.inc"

struct Search {
  std::string_view fileName;
  std::optional<std::string> buildId;
};

constexpr std::size_t alignNote(std::size_t size) { return (size + 3) & ~3u; }

std::string toHex(const unsigned char *bytes, std::size_t size) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

std::optional<std::string> readBuildId(const char *notes, std::size_t size) {
  std::size_t offset = 0;
  while (offset + sizeof(ElfW(Nhdr)) <= size) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + offset, sizeof note);
    std::size_t name = offset + sizeof note;
    std::size_t description = name + alignNote(note.n_namesz);
    std::size_t next = description + alignNote(note.n_descsz);
    if (next > size)
      return std::nullopt;
    std::string_view owner(notes + name, note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && owner == std::string_view("GNU\0", 4))
      return toHex(reinterpret_cast<const unsigned char *>(notes + description),
                   note.n_descsz);
    offset = next;
  }
  return std::nullopt;
}

int visitLibrary(dl_phdr_info *info, std::size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  std::string_view path = info->dlpi_name;
  if (path.substr(path.rfind('/') + 1) != search.fileName)
    return 0;
  for (ElfW(Half) i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    auto *notes =
        reinterpret_cast<const char *>(info->dlpi_addr) + segment.p_vaddr;
    search.buildId = readBuildId(notes, segment.p_memsz);
    if (search.buildId)
      return 1;
  }
  return 0;
}

} // namespace

std::optional<std::string> findBuildId(std::string_view fileName) {
  Search search{fileName, std::nullopt};
  dl_iterate_phdr(visitLibrary, &search);
  return search.buildId;
}

bool isAudited(std::string_view buildId) {
  return std::any_of(
      auditedBuilds.begin(), auditedBuilds.end(),
      [&](const AuditedBuild &build) { return build.buildId == buildId; });
}

std::string checkHost() {
  std::optional<std::string> found = findBuildId("libtriton.so");
  if (found && isAudited(*found))
    return {};
  std::string text =
      "kperfir was not audited against this libtriton.so: found build-id ";
  text += found.value_or("none");
  text += ", expected one of triton ";
  text += auditedTritonVersion;
  for (const AuditedBuild &build : auditedBuilds)
    text.append(" ")
        .append(build.buildId)
        .append(" (")
        .append(build.wheel)
        .append(")");
  text.append("; install triton==").append(auditedTritonVersion);
  return text;
}

} // namespace kperfir::abi
