#include "base/files/folder_linux.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/paths.h"
#include "base/files/safe_file_linux.h"
#include "base/files/unique_fd.h"
#include "base/status.h"

namespace rnicd {
namespace {

// A folder at one place of the tree: the same folder has another mount where it is mounted a second time.
struct Folder {
  UniqueFd file;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t mount = 0;

  bool Is(const Folder& other) const { return device == other.device && inode == other.inode; }
};

absl::StatusOr<Folder> OpenFolder(int parent, const char* name, const std::string& path) {
  Folder folder{.file = UniqueFd(openat(parent, name, O_PATH | O_DIRECTORY | O_CLOEXEC))};
  if (!folder.file.valid()) {
    return errno == ENOENT ? absl::NotFoundError(path) : FileError(path, "open", errno);
  }
  struct statx facts = {};
  if (statx(folder.file.get(), "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &facts) != 0) {
    return FileError(path, "statx", errno);
  }
  folder.device = makedev(facts.stx_dev_major, facts.stx_dev_minor);
  folder.inode = facts.stx_ino;
  folder.mount = facts.stx_mnt_id;
  return folder;
}

// Climbs from the folder to the root.
absl::StatusOr<bool> Passes(const Folder& target, const std::string& path) {
  RNICD_ASSIGN_OR_RETURN(Folder here, OpenFolder(AT_FDCWD, path.c_str(), path));
  while (!here.Is(target)) {
    RNICD_ASSIGN_OR_RETURN(Folder above, OpenFolder(here.file.get(), "..", path));
    if (above.Is(here) && above.mount == here.mount) {
      return false;
    }
    here = std::move(above);
  }
  return true;
}

struct Mount {
  // The mounted folder's path in its file system.
  std::string root;
  // Its path here.
  std::string point;
};

std::optional<Mount> MountWithId(uint64_t id) {
  std::ifstream mounts("/proc/thread-self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // Its number, that of its parent, the device, root and mount point.
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 5));
    uint64_t number = 0;
    Mount mount;
    if (fields.size() > 5 && absl::SimpleAtoi(fields[0], &number) && number == id &&
        absl::CUnescape(fields[3], &mount.root) && absl::CUnescape(fields[4], &mount.point)) {
      return mount;
    }
  }
  return std::nullopt;
}

// The folder's path in its file system, which is the same through every mount.
absl::StatusOr<std::string> PlaceOf(const Folder& folder, const std::string& path) {
  std::error_code error;
  const std::string real =
      std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", folder.file.get()), error).string();
  const std::optional<Mount> mount = MountWithId(folder.mount);
  if (error || !mount.has_value() || !NamesPartOf(mount->point, real)) {
    return FileError(path, "mountinfo", error ? error.value() : ENOENT);
  }
  return CleanPath(absl::StrCat(mount->root, "/", real.substr(mount->point.size())));
}

absl::StatusOr<bool> IsBelowInFileSystem(const Folder& target, const std::string& folder, const std::string& path) {
  RNICD_ASSIGN_OR_RETURN(const Folder other, OpenFolder(AT_FDCWD, path.c_str(), path));
  if (other.device != target.device) {
    return false;
  }
  RNICD_ASSIGN_OR_RETURN(const std::string place, PlaceOf(other, path));
  RNICD_ASSIGN_OR_RETURN(const std::string target_place, PlaceOf(target, folder));
  return NamesPartOf(target_place, place);
}

absl::StatusOr<bool> FindPart(const std::string& folder, const std::string& path) {
  RNICD_ASSIGN_OR_RETURN(const Folder target, OpenFolder(AT_FDCWD, folder.c_str(), folder));
  RNICD_ASSIGN_OR_RETURN(const bool passes, Passes(target, path));
  return passes ? absl::StatusOr<bool>(true) : IsBelowInFileSystem(target, folder, path);
}

}  // namespace

absl::StatusOr<bool> IsPartOf(const std::string& folder, const std::string& path) {
  absl::StatusOr<bool> found = FindPart(folder, path);
  return absl::IsNotFound(found.status()) ? false : found;
}

}  // namespace rnicd
