#include "client/admin/own_container.h"

namespace rnicd::inline client {

bool IsDaemonInThisContainer(int /*socket*/, const std::string& /*proc*/) { return false; }

}  // namespace rnicd::inline client
