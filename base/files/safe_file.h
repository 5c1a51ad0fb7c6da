#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

// Files that a privileged process trusts: a policy, a credential, a log. Such a file is a regular file, owned by root
// or by the process's effective user, and writable by its owner only. On Windows the Administrators and the system take
// root's place, and they may write it, too. The open file is checked and not its name, which may mean another file a
// moment later. The directories above it are not checked.
// Errors: "PATH: CAUSE"; kNotFound if there is no such file, otherwise kFailedPrecondition. Source: open(2), inode(7).
namespace rnicd {

struct SafeFileOptions {
  // Length of the longest file that is accepted.
  size_t bytes_max = 0;
  // Whether the path may name a symbolic link; then the file behind the link is checked. Kubernetes mounts ConfigMaps,
  // Secrets and tokens as links.
  bool follow_link = false;
};

// The content of the file.
absl::StatusOr<std::string> ReadSafeFile(const std::string& path, const SafeFileOptions& options);

// The file, open for reading, and for writing at its end; created for its owner only if there is none. A symbolic link
// is refused.
absl::StatusOr<UniqueFd> OpenSafeFileForAppend(const std::string& path);

}  // namespace rnicd
