#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "daemon/audit/log_file.h"

namespace rnicd::audit {

// A file to which whole lines are appended. Its path may be renamed, deleted or recreated at any time: each Append goes
// to the file that has the path at that moment.
// Threads: one at a time.
class AppendFile {
 public:
  // Creates the file, for its owner only, when it does not exist. Errors: those of base/files/safe_file.h; a file that
  // another user could have written is refused, and so is a symbolic link. A line without an end that the file has
  // already stays, and ends where the next one begins.
  static absl::StatusOr<AppendFile> Open(std::string path);

  struct Appended {
    // Bytes of the text that were written, from its start; always whole lines.
    size_t bytes = 0;
    // OK, or the error, even where everything was written.
    absl::Status status;
  };
  // `text` consists of lines, each with its end. A line that did not fit leaves nothing in the file.
  Appended Append(std::string_view text);

 private:
  explicit AppendFile(std::string path) : path_(std::move(path)) {}

  absl::Status Reopen();
  // Opens the file that has the path, unless it is open already. OK when it is open.
  absl::Status FollowPath();

  std::string path_;
  UniqueFd file_;
  FileId id_;
  // True when the file ends in the middle of a line.
  bool torn_ = false;
};

}  // namespace rnicd::audit
