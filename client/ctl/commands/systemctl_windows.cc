#include "client/ctl/commands/systemctl.h"

namespace rnicd::ctl {

absl::StatusOr<std::string> Systemctl(std::vector<std::string> /*arguments*/) {
  return absl::UnavailableError("there is no systemd on Windows");
}

}  // namespace rnicd::ctl
