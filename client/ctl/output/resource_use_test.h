#pragma once

#include <cstdint>
#include <string>

#include "rnicd/v1/session_service.pb.h"

namespace rnicd::ctl {

inline v1::ResourceUse Use(const std::string& name, uint64_t used, uint64_t limit) {
  v1::ResourceUse use;
  use.set_name(name);
  use.set_used(used);
  use.set_limit(limit);
  return use;
}

}  // namespace rnicd::ctl
