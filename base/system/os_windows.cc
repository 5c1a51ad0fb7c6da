#include <windows.h>
// Behind windows.h, whose types it uses.
#include <winternl.h>

#include <atomic>
#include <optional>

#include "base/status.h"
#include "base/system/os.h"
#include "base/units.h"
#include "base/windows_status.h"

// In ntdll.dll since Windows NT 4, and in no header of a user's program. Source: the Windows Driver Kit,
// ZwQuerySection.
extern "C" NTSTATUS NTAPI NtQuerySection(HANDLE section, int kind, void* facts, SIZE_T facts_bytes, SIZE_T* returned);

namespace rnicd {
namespace {

constexpr int kSectionBasicInformation = 0;
// SECTION_BASIC_INFORMATION.
struct SectionFacts {
  void* base;
  ULONG attributes;
  LARGE_INTEGER size;
};
// Attributes of a section that is no memory file: its bytes are a file's or a program's, or its pages need not come.
constexpr ULONG kNotMemory = SEC_FILE | SEC_IMAGE | SEC_RESERVE;

// The rights of a handle; none for one that is not open.
std::optional<ACCESS_MASK> AccessOf(HANDLE handle) {
  OBJECT_BASIC_INFORMATION facts;
  return NT_SUCCESS(NtQueryObject(handle, ObjectBasicInformation, &facts, sizeof(facts), nullptr))
             ? std::optional(facts.GrantedAccess)
             : std::nullopt;
}

bool MayReadAndWrite(HANDLE section) {
  constexpr ACCESS_MASK kBoth = SECTION_MAP_READ | SECTION_MAP_WRITE;
  return (AccessOf(section).value_or(0) & kBoth) == kBoth;
}

// A number for each call. No call of Windows gives one section the same number each time; so the pages of a section
// that was imported twice are charged twice.
uint64_t NextFileNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

// A section of committed pages backed by the paging file is to Windows what a memfd is to Linux. Its size is fixed, its
// pages are charged to the system when it is made, and no call takes them away while it is mapped.
class WindowsOsImplementation final : public Os {
 public:
  uint64_t page_bytes() const override { return kNdkPageBytes; }

  absl::StatusOr<UniqueFd> CreateMemoryFile(uint64_t size, uint64_t page_bytes) override {
    if (page_bytes != kNdkPageBytes) {
      // Large pages need a privilege that the daemon does not have.
      return MakeErrorWithDetail(ErrorReason::MEMORY_PAGES_UNAVAILABLE, "no large pages on Windows");
    }
    HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE | SEC_COMMIT,
                                        static_cast<DWORD>(size >> 32), static_cast<DWORD>(size), nullptr);
    if (section == nullptr) {
      return LastErrorStatus("CreateFileMapping");
    }
    return UniqueFd(HandleToLong(section));
  }

  absl::StatusOr<MemoryFileFacts> Inspect(int fd) override {
    HANDLE handle = LongToHandle(fd);
    MemoryFileFacts facts;
    DWORD flags = 0;
    if (GetHandleInformation(handle, &flags) == 0) {
      return LastErrorStatus("GetHandleInformation");
    }
    SectionFacts section = {};
    if (!NT_SUCCESS(NtQuerySection(handle, kSectionBasicInformation, &section, sizeof(section), nullptr))) {
      return facts;
    }
    facts.is_memory_file = (section.attributes & SEC_COMMIT) != 0 && (section.attributes & kNotMemory) == 0;
    facts.is_read_write = MayReadAndWrite(handle);
    facts.size = static_cast<uint64_t>(section.size.QuadPart);
    facts.populated_bytes = facts.size;
    facts.page_bytes = kNdkPageBytes;
    facts.seals = {.shrink = true, .grow = true};
    facts.inode = NextFileNumber();
    return facts;
  }

  // The size of a section is always fixed. The rights of the handles that clients get prevent other writable mappings.
  absl::Status AddSeals(int fd, const Seals& seals) override {
    DWORD flags = 0;
    if (GetHandleInformation(LongToHandle(fd), &flags) == 0) {
      return LastErrorStatus("GetHandleInformation");
    }
    return seals.write ? MakeError(ErrorReason::MEMORY_SEAL_REFUSED) : absl::OkStatus();
  }

  absl::StatusOr<UniqueFd> Duplicate(int fd) override {
    HANDLE duplicate = nullptr;
    if (DuplicateHandle(GetCurrentProcess(), LongToHandle(fd), GetCurrentProcess(), &duplicate, 0, FALSE,
                        DUPLICATE_SAME_ACCESS) == 0) {
      return LastErrorStatus("DuplicateHandle");
    }
    return UniqueFd(HandleToLong(duplicate));
  }

  absl::StatusOr<std::span<std::byte>> Map(int fd, uint64_t size) override {
    void* address = MapViewOfFile(LongToHandle(fd), FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, size);
    if (address == nullptr) {
      return LastErrorStatus("MapViewOfFile");
    }
    return std::span(static_cast<std::byte*>(address), size);
  }

  absl::Status Unmap(std::span<std::byte> mapping) override {
    return UnmapViewOfFile(mapping.data()) != 0 ? absl::OkStatus() : LastErrorStatus("UnmapViewOfFile");
  }

  // A view is given its node when it is made, not later. Where there is one node, every page is on it.
  absl::Status BindToNumaNode(std::span<std::byte> /*mapping*/, uint32_t numa_node) override {
    ULONG highest = 0;
    if (GetNumaHighestNodeNumber(&highest) != 0 && highest == 0 && numa_node == 0) {
      return absl::OkStatus();
    }
    return MakeError(ErrorReason::NUMA_NODE_UNKNOWN, "numa_node");
  }

  // Touches every page, as nothing else makes one. The bytes stay as they are, also those that a client writes
  // meanwhile.
  absl::Status Populate(std::span<std::byte> mapping) override {
    for (size_t offset = 0; offset < mapping.size(); offset += kNdkPageBytes) {
      std::atomic_ref(reinterpret_cast<uint8_t&>(mapping[offset])).fetch_or(0, std::memory_order_relaxed);
    }
    return absl::OkStatus();
  }

  absl::Status Resize(int /*fd*/, uint64_t /*size*/) override { return FixedSize(); }
  absl::StatusOr<std::span<std::byte>> Remap(std::span<std::byte> /*mapping*/, uint64_t /*size*/) override {
    return FixedSize();
  }

  // The pages are committed when the section is made.
  absl::Status Reserve(int /*fd*/, uint64_t /*offset*/, uint64_t /*bytes*/) override { return absl::OkStatus(); }
  absl::Status MakePages(int /*fd*/, uint64_t /*offset*/, uint64_t /*bytes*/, uint64_t /*page_bytes*/) override {
    return absl::OkStatus();
  }
  absl::Status MapPages(std::span<std::byte> mapping) override { return Populate(mapping); }
  bool AdviseHugePages(std::span<std::byte> /*mapping*/) override { return false; }

 private:
  static absl::Status FixedSize() {
    return MakeErrorWithDetail(ErrorReason::MEMORY_PAGES_UNAVAILABLE, "the size of a section of Windows is fixed");
  }
};

}  // namespace

Os& SystemOs() {
  static WindowsOsImplementation os;
  return os;
}

}  // namespace rnicd
