#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rnicd::audit {

// A file that gets whole lines at its end. Its path may be renamed, deleted or made anew at any time: each Append goes
// to the file that has the path then.
// Threads: one at a time.
class AppendFile {
 public:
  // The file is made, for its owner only, when it is not there. Errors: those of base/safe_file.h; a file that another
  // user could have written is refused, and a symbolic link is.
  static absl::StatusOr<AppendFile> Open(std::string path);

  struct Appended {
    // Of the text, from its start; always whole lines.
    size_t bytes = 0;
    // Ok, or what went wrong, even where all was written.
    absl::Status status;
  };
  // `text` is lines, each with its end. Of a line that did not fit nothing stays in the file.
  Appended Append(std::string_view text);

 private:
  explicit AppendFile(std::string path) : path_(std::move(path)) {}

  absl::Status Reopen();
  // Ok when what is open has the path.
  absl::Status FollowPath();
  bool HasAName() const;
  absl::Status WriteAll(std::string_view text, size_t& written) const;
  void CutBack(size_t bytes);

  std::string path_;
  UniqueFd file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  // The file ends in the middle of a line.
  bool torn_ = false;
};

}  // namespace rnicd::audit
