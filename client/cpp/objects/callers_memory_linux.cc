#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/checked_range.h"
#include "base/errno_status.h"
#include "base/status.h"
#include "base/system/os.h"
#include "client/cpp/objects/callers_memory.h"

namespace rnicd::inline client {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
// Readable, writable and not now; accounted or not; soft-dirty; advice on huge pages, which has no effect on contents.
constexpr std::array<std::string_view, 10> kOrdinaryFlags = {"rd", "wr", "mr", "mw", "me",
                                                             "ac", "nr", "sd", "hg", "nh"};

// One mapping of the process, as /proc/self/maps has it, and what smaps adds.
struct Area {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string access;
  uint64_t offset = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  std::string name;
  std::string flags;
  int protection_key = 0;
};

absl::Status Refusal(const char* field, std::string_view why) {
  return MakeErrorWithDetail({.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = field}, why);
}

uint64_t AddressOf(std::span<const std::byte> bytes) { return reinterpret_cast<uintptr_t>(bytes.data()); }

std::optional<Area> ParseArea(const std::string& line) {
  Area area;
  std::array<char, 5> access{};
  unsigned major = 0;
  unsigned minor = 0;
  int name = 0;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &area.begin, &area.end,
                  access.data(), &area.offset, &major, &minor, &area.inode, &name) != 7) {
    return std::nullopt;
  }
  area.access = access.data();
  area.device = makedev(major, minor);
  area.name = line.substr(static_cast<size_t>(name));
  return area;
}

void AddDetail(const std::string& line, Area& area) {
  static constexpr std::string_view kFlags = "VmFlags:";
  if (line.starts_with(kFlags)) {
    area.flags = line.substr(kFlags.size());
  }
  std::sscanf(line.c_str(), "ProtectionKey: %d", &area.protection_key);
}

// A text of the kernel's, and its lines. Not a stream of C++: librnicd.so would have all of its locales inside.
using Text = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
Text OpenText(const char* path) { return {std::fopen(path, "re"), &std::fclose}; }

bool ReadLine(std::FILE* text, std::string& line) {
  line.clear();
  int byte = text == nullptr ? EOF : std::getc(text);
  const bool any = byte != EOF;
  for (; byte != EOF && byte != '\n'; byte = std::getc(text)) {
    line.push_back(static_cast<char>(byte));
  }
  return any;
}

// The mappings that the range touches, in order; nothing where a part of it is not mapped. Reads no further than that:
// the kernel walks the page tables for each line of smaps. A mapping that grows while the text is read is listed again.
std::optional<std::vector<Area>> AreasUnder(std::FILE* text, std::span<const std::byte> range) {
  const std::optional<CheckedRange> checked = CheckedRange::Make(AddressOf(range), range.size());
  if (!checked.has_value() || range.empty()) {
    return std::nullopt;
  }
  std::vector<Area> areas;
  uint64_t mapped = 0;
  bool inside = false;
  for (std::string line; ReadLine(text, line);) {
    const std::optional<Area> area = ParseArea(line);
    if (!area.has_value()) {
      if (inside) {
        AddDetail(line, areas.back());
      }
      continue;
    }
    const uint64_t from = std::max(area->begin, areas.empty() ? checked->start() : areas.back().end);
    if (from > checked->last()) {
      break;
    }
    inside = area->end > from;
    if (inside) {
      areas.push_back(*area);
      mapped += std::min(area->end - 1, checked->last()) - from + 1;
    }
  }
  return mapped == range.size() ? std::optional(std::move(areas)) : std::nullopt;
}

// The flags that MoveOver would lose, or could not move.
std::string ExtraordinaryFlags(const Area& area) {
  std::string extraordinary;
  const std::vector<std::string> flags = absl::StrSplit(area.flags, ' ', absl::SkipEmpty());
  for (const std::string& flag : flags) {
    if (std::find(kOrdinaryFlags.begin(), kOrdinaryFlags.end(), flag) == kOrdinaryFlags.end()) {
      absl::StrAppend(&extraordinary, " ", flag);
    }
  }
  return extraordinary;
}

// Empty for ordinary private memory.
std::string ObjectionTo(const Area& area) {
  if (area.access.ends_with("s")) {
    return "it is shared memory";
  }
  if (area.inode != 0) {
    return "a file is mapped there, or its pages are huge";
  }
  if (area.name.starts_with("[") && !area.name.starts_with("[anon:")) {
    return absl::StrCat("it is ", area.name, " of the process");
  }
  if (area.access != "rw-p") {
    return absl::StrCat("its access is ", area.access, ", not rw-p");
  }
  const std::string flags = ExtraordinaryFlags(area);
  if (!flags.empty() || area.protection_key != 0) {
    return absl::StrCat("it has properties that would be lost; VmFlags:", flags,
                        ", ProtectionKey: ", area.protection_key);
  }
  return area.flags.empty() ? "the kernel does not report its VmFlags" : "";
}

// After a move that failed. The kernel refuses before it changes anything, except where it runs out of memory of its
// own in between: then nothing is mapped at `pages` any more.
void Restore(std::span<const std::byte> mapping, std::span<std::byte> pages) {
  if (mprotect(pages.data(), pages.size(), kReadWrite) != 0 &&
      mmap(pages.data(), pages.size(), kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
    std::memcpy(pages.data(), mapping.data(), pages.size());
  }
}

}  // namespace

absl::StatusOr<std::span<std::byte>> MapAt(VirtualAddress address, int fd, uint64_t size) {
  void* const wanted = reinterpret_cast<void*>(address.value);
  void* const mapping = mmap(wanted, size, kReadWrite, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
  if (mapping == MAP_FAILED) {
    return errno == ENOMEM   ? ErrnoStatus("mmap", ENOMEM)
           : errno == EEXIST ? Refusal("address", "something is mapped there")
                             : Refusal("address", ErrnoDetail("mmap", errno));
  }
  // As Os::Map.
  if (madvise(mapping, size, MADV_DONTDUMP) != 0) {
    const int error = errno;
    munmap(mapping, size);
    return ErrnoStatus("madvise(MADV_DONTDUMP)", error);
  }
  return std::span(static_cast<std::byte*>(mapping), size);
}

absl::Status CheckMapping(std::span<const std::byte> mapping, int fd) {
  RNICD_ASSIGN_OR_RETURN(const MemoryFileFacts file, SystemOs().Inspect(fd));
  const Text maps = OpenText("/proc/self/maps");
  const std::optional<std::vector<Area>> areas = AreasUnder(maps.get(), mapping);
  if (!areas.has_value()) {
    return Refusal("mapping", "not all of it is mapped");
  }
  for (const Area& area : *areas) {
    if (!area.access.starts_with("rw") || !area.access.ends_with("s")) {
      return Refusal("mapping", absl::StrCat("its access is ", area.access, ", not rw-s"));
    }
    if (area.inode != file.inode || area.device != file.device || area.begin - area.offset != AddressOf(mapping)) {
      return Refusal("mapping", "it is not of the first bytes of the file");
    }
  }
  return absl::OkStatus();
}

std::optional<uint64_t> FileUnder(std::span<const std::byte> mapping) {
  const Text maps = OpenText("/proc/self/maps");
  const std::optional<std::vector<Area>> areas = AreasUnder(maps.get(), mapping);
  const auto is_of_the_first = [&](const Area& area) {
    return area.access.ends_with("s") && area.inode == areas->front().inode && area.device == areas->front().device &&
           area.begin - area.offset == AddressOf(mapping);
  };
  return areas.has_value() && std::all_of(areas->begin(), areas->end(), is_of_the_first)
             ? std::optional(areas->front().inode)
             : std::nullopt;
}

absl::Status CheckPrivatePages(std::FILE* smaps, std::span<const std::byte> pages) {
  const uint64_t page_bytes = SystemOs().page_bytes();
  if (pages.empty() || AddressOf(pages) % page_bytes != 0 || pages.size() % page_bytes != 0) {
    return Refusal("pages", "they are not whole pages");
  }
  const std::optional<std::vector<Area>> areas = AreasUnder(smaps, pages);
  if (!areas.has_value()) {
    return Refusal("pages", "not all of them are mapped");
  }
  for (const Area& area : *areas) {
    if (const std::string objection = ObjectionTo(area); !objection.empty()) {
      return Refusal("pages", objection);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<std::byte>> MapSpare(std::span<const std::byte> pages) {
  RNICD_RETURN_IF_ERROR(CheckPrivatePages(OpenText("/proc/self/smaps").get(), pages));
  // For the kernel the stack of a thread is ordinary memory.
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - AddressOf(pages) < pages.size()) {
    return Refusal("pages", "they are the caller's stack");
  }
  void* const spare = mmap(nullptr, pages.size(), kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (spare == MAP_FAILED) {
    return ErrnoStatus("mmap", errno);
  }
  return std::span(static_cast<std::byte*>(spare), pages.size());
}

absl::Status MoveOver(std::span<std::byte> mapping, std::span<std::byte> pages) {
  // Pages that cannot be had, or not be read, are found here, and not by a signal in the copy.
  RNICD_RETURN_IF_ERROR(SystemOs().Populate(mapping));
  RNICD_RETURN_IF_ERROR(SystemOs().MapPages(pages));
  // No use of the heap from here to the move: its pages may be among these.
  if (mprotect(pages.data(), pages.size(), PROT_READ) != 0) {
    const int error = errno;
    mprotect(pages.data(), pages.size(), kReadWrite);
    return ErrnoStatus("mprotect", error);
  }
  std::memcpy(mapping.data(), pages.data(), pages.size());
  if (mremap(mapping.data(), mapping.size(), pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, pages.data()) == MAP_FAILED) {
    const int error = errno;
    Restore(mapping, pages);
    return ErrnoStatus("mremap", error);
  }
  return absl::OkStatus();
}

}  // namespace rnicd::inline client
