#include <windows.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/files/unique_fd.h"
#include "base/windows_status.h"
#include "daemon/audit/log_file.h"

namespace rnicd::audit {
namespace {

constexpr size_t kBytesOfAWrite = size_t{1} << 30;

absl::Status Failed(const std::string& path, const char* call) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", WindowsDetail(call, GetLastError())));
}

std::optional<BY_HANDLE_FILE_INFORMATION> FactsOf(int file) {
  BY_HANDLE_FILE_INFORMATION facts;
  return GetFileInformationByHandle(LongToHandle(file), &facts) != 0 ? std::optional(facts) : std::nullopt;
}

FileId IdOf(const BY_HANDLE_FILE_INFORMATION& facts) {
  return {.volume = facts.dwVolumeSerialNumber, .number = uint64_t{facts.nFileIndexHigh} << 32 | facts.nFileIndexLow};
}

}  // namespace

absl::StatusOr<FileId> IdOfOpenFile(int file, const std::string& path) {
  const auto facts = FactsOf(file);
  if (!facts.has_value()) {
    return Failed(path, "GetFileInformationByHandle");
  }
  return IdOf(*facts);
}

// Opened without any right to its bytes, so that it does not conflict with other users of the file.
bool PathHasFile(const std::string& path, const FileId& id) {
  const std::u8string utf8(path.begin(), path.end());
  const UniqueFd file(HandleToLong(CreateFileW(std::filesystem::path(utf8).c_str(), FILE_READ_ATTRIBUTES,
                                               FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                               OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, nullptr)));
  const auto facts = file.valid() ? FactsOf(file.get()) : std::nullopt;
  return facts.has_value() && IdOf(*facts) == id;
}

bool HasAName(int file) {
  const auto facts = FactsOf(file);
  return facts.has_value() && facts->nNumberOfLinks > 0;
}

absl::StatusOr<bool> EndsWithinALine(int file, const std::string& path) {
  const auto facts = FactsOf(file);
  if (!facts.has_value()) {
    return Failed(path, "GetFileInformationByHandle");
  }
  const uint64_t size = uint64_t{facts->nFileSizeHigh} << 32 | facts->nFileSizeLow;
  char last = '\n';
  DWORD count = 0;
  OVERLAPPED place = {};
  place.Offset = static_cast<DWORD>(size - 1);
  place.OffsetHigh = static_cast<DWORD>((size - 1) >> 32);
  if (size > 0 && ReadFile(LongToHandle(file), &last, 1, &count, &place) == 0) {
    return Failed(path, "ReadFile");
  }
  return last != '\n';
}

// The handle has no right to write but to append.
absl::Status WriteAtEnd(int file, std::string_view text, const std::string& path, size_t& written) {
  while (!text.empty()) {
    DWORD count = 0;
    const auto bytes = static_cast<DWORD>(std::min(text.size(), kBytesOfAWrite));
    if (WriteFile(LongToHandle(file), text.data(), bytes, &count, nullptr) == 0 || count == 0) {
      return Failed(path, "WriteFile");
    }
    written += count;
    text.remove_prefix(count);
  }
  return absl::OkStatus();
}

// Needs the right to write anywhere in the file, which the handle does not have.
bool CutOffEnd(int /*file*/, size_t /*bytes*/) { return false; }

}  // namespace rnicd::audit
