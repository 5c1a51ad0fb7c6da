#include "daemon/handover/contents_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_status.h"

namespace rnicd::handover {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
constexpr off_t kMaxBytes = off_t{256} << 20;

absl::Status Failed(const char* call) { return absl::UnavailableError(ErrnoDetail(call, errno)); }

}  // namespace

absl::StatusOr<UniqueFd> ContentsFile(std::string_view bytes) {
  UniqueFd file(memfd_create("rnicd-handover", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) {
    return Failed("memfd_create");
  }
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return Failed("write");
    }
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return Failed("fcntl");
  }
  return file;
}

absl::StatusOr<std::string> ReadContentsFile(const UniqueFd& file) {
  struct stat facts = {};
  if (fcntl(file.get(), F_GET_SEALS) != kSeals || fstat(file.get(), &facts) != 0 || facts.st_size > kMaxBytes) {
    return absl::InvalidArgumentError("not the contents of a generation");
  }
  std::string bytes(static_cast<size_t>(facts.st_size), '\0');
  size_t read = 0;
  while (read < bytes.size()) {
    const ssize_t got = pread(file.get(), bytes.data() + read, bytes.size() - read, static_cast<off_t>(read));
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return Failed("pread");
    }
    read += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  return bytes;
}

}  // namespace rnicd::handover
