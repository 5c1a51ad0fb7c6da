#include "daemon/sandbox/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/files/unique_fd.h"
#include "base/status.h"
#include "daemon/sandbox/failed_step.h"
#include "daemon/sandbox/system_calls.h"

namespace rnicd::sandbox {
namespace {

// Debian 12's headers are older than these two. Source: linux/landlock.h of Linux 6.10.
constexpr uint64_t kTruncate = uint64_t{1} << 14;
constexpr uint64_t kDeviceCommands = uint64_t{1} << 15;

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                            LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                            LANDLOCK_ACCESS_FS_MAKE_SOCK | kTruncate;
constexpr uint64_t kDevice = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kDeviceCommands;
// The only ones that a rule for a file may have.
constexpr uint64_t kRightsOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                    LANDLOCK_ACCESS_FS_READ_FILE | kTruncate | kDeviceCommands;

// Libraries, also of vendors, and drivers of cards with their settings; the settings of the library of digests; the
// time zone of log lines; the kernel's information on this process, its clients, the machine and its cards.
constexpr const char* kSystemPaths[] = {
    "/usr",     "/lib",           "/lib32", "/lib64", "/opt", "/etc/ld.so.cache", "/etc/libibverbs.d",
    "/etc/ssl", "/etc/localtime", "/proc",  "/sys"};
constexpr const char* kNullDevice = "/dev/null";

// The rights that this version controls: each of them is refused unless a rule grants it.
uint64_t RightsOf(int version) {
  uint64_t rights = LANDLOCK_ACCESS_FS_MAKE_SYM | (LANDLOCK_ACCESS_FS_MAKE_SYM - 1);
  if (version >= 2) {
    rights |= LANDLOCK_ACCESS_FS_REFER;
  }
  if (version >= 3) {
    rights |= kTruncate;
  }
  if (version >= 5) {
    rights |= kDeviceCommands;
  }
  return rights;
}

class Ruleset {
 public:
  explicit Ruleset(uint64_t rights) : rights_(rights) {
    const landlock_ruleset_attr attributes = {.handled_access_fs = rights};
    fd_ = UniqueFd(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0)));
  }

  bool valid() const { return fd_.valid(); }

  absl::Status Allow(const std::string& path, uint64_t rights) const {
    const UniqueFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat facts = {};
    // What this process cannot open now it could not open later.
    if (!file.valid() || fstat(file.get(), &facts) != 0) {
      return absl::OkStatus();
    }
    landlock_path_beneath_attr rule = {};
    rule.parent_fd = file.get();
    rule.allowed_access = rights & rights_ & (S_ISDIR(facts.st_mode) ? ~uint64_t{0} : kRightsOfFiles);
    return syscall(SYS_landlock_add_rule, fd_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0
               ? absl::OkStatus()
               : FailedStep(absl::StrCat("cannot allow ", path), errno);
  }

  absl::Status Enforce() const {
    return syscall(SYS_landlock_restrict_self, fd_.get(), 0) == 0 ? absl::OkStatus()
                                                                  : FailedStep("cannot restrict paths", errno);
  }

 private:
  const uint64_t rights_;
  UniqueFd fd_;
};

absl::Status AllowAll(const Ruleset& ruleset, const PathRules& rules) {
  for (const char* const path : kSystemPaths) {
    RNICD_RETURN_IF_ERROR(ruleset.Allow(path, kRead));
  }
  RNICD_RETURN_IF_ERROR(ruleset.Allow(kNullDevice, kDevice));
  for (const std::string& path : rules.read) {
    RNICD_RETURN_IF_ERROR(ruleset.Allow(path, kRead));
  }
  for (const std::string& path : rules.write) {
    RNICD_RETURN_IF_ERROR(ruleset.Allow(path, kWrite));
  }
  for (const std::string& path : rules.devices) {
    RNICD_RETURN_IF_ERROR(ruleset.Allow(path, kDevice));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RestrictPaths(const PathRules& rules) {
  // Fails where the kernel was built without it, or started without it, or where a container's filter forbids it.
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1 || BuiltWithSanitizer()) {
    return 0;
  }
  const Ruleset ruleset(RightsOf(static_cast<int>(version)));
  if (!ruleset.valid()) {
    return FailedStep("cannot make a set of paths", errno);
  }
  RNICD_RETURN_IF_ERROR(AllowAll(ruleset, rules));
  RNICD_RETURN_IF_ERROR(ruleset.Enforce());
  return static_cast<int>(version);
}

}  // namespace rnicd::sandbox
