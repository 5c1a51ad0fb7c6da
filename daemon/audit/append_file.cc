#include "daemon/audit/append_file.h"

#include <utility>

#include "base/files/safe_file.h"
#include "base/status.h"

namespace rnicd::audit {

absl::StatusOr<AppendFile> AppendFile::Open(std::string path) {
  AppendFile file(std::move(path));
  RNICD_RETURN_IF_ERROR(file.Reopen());
  return file;
}

absl::Status AppendFile::Reopen() {
  RNICD_ASSIGN_OR_RETURN(UniqueFd file, OpenSafeFileForAppend(path_));
  RNICD_ASSIGN_OR_RETURN(id_, IdOfOpenFile(file.get(), path_));
  // Left by a process that was killed in the middle of a line, or by a power failure.
  RNICD_ASSIGN_OR_RETURN(torn_, EndsWithinALine(file.get(), path_));
  file_ = std::move(file);
  return absl::OkStatus();
}

absl::Status AppendFile::FollowPath() { return PathHasFile(path_, id_) ? absl::OkStatus() : Reopen(); }

AppendFile::Appended AppendFile::Append(std::string_view text) {
  Appended outcome;
  outcome.status = FollowPath();
  if (!outcome.status.ok() && !HasAName(file_.get())) {
    return outcome;
  }
  size_t written = 0;
  if (torn_) {
    if (absl::Status status = WriteAtEnd(file_.get(), "\n", path_, written); !status.ok()) {
      outcome.status = status;
      return outcome;
    }
    torn_ = false;
    written = 0;
  }
  if (absl::Status status = WriteAtEnd(file_.get(), text, path_, written); !status.ok()) {
    outcome.status = status;
  }
  outcome.bytes = text.substr(0, written).rfind('\n') + 1;
  // An append-only file keeps a line that is partly written, and the next line begins after it.
  const size_t torn_bytes = written - outcome.bytes;
  torn_ = torn_bytes != 0 && !CutOffEnd(file_.get(), torn_bytes);
  return outcome;
}

}  // namespace rnicd::audit
