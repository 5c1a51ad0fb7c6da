#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The file operations of AppendFile, on an open file or a path.
namespace rnicd::audit {

// Identifies a file as long as it exists.
struct FileId {
  uint64_t volume = 0;
  uint64_t number = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};

// `path` is for errors.
absl::StatusOr<FileId> IdOfOpenFile(int file, const std::string& path);
// True when the path is that of this file, and not a link.
bool PathHasFile(const std::string& path, const FileId& id);
// False for a file that has been deleted.
bool HasAName(int file);
// True when the last byte is no line end.
absl::StatusOr<bool> EndsWithinALine(int file, const std::string& path);
// Writes at the end. `written` grows by the bytes that were written, also where an error ended that.
absl::Status WriteAtEnd(int file, std::string_view text, const std::string& path, size_t& written);
// Takes away the last bytes. False where that is not possible.
bool CutOffEnd(int file, size_t bytes);

}  // namespace rnicd::audit
