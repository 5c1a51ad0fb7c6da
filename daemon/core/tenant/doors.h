#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/strong_id.h"
#include "daemon/core/tenant/tenant.h"

namespace rnicd::core {

// The doors of grants: for each a directory with sockets of its own, and who connects there is admitted as the grant.
// Threads: safe. The functions that are given are called once, on another thread, and must not block.
class Doors {
 public:
  using OnOpen = std::function<void(const absl::Status&)>;
  using OnClosed = std::function<void()>;

  virtual ~Doors() = default;

  // Directory of the grant's sockets, whether it exists or not.
  virtual std::string DirectoryOf(GrantId grant) const = 0;
  // Makes the door of this grant, or makes it again after an earlier daemon. Errors: DOOR_UNAVAILABLE.
  virtual void Open(std::shared_ptr<Tenant> tenant, OnOpen done) = 0;
  // Removes the door of a grant that has ended; connections that came through it end with their sessions. Of a grant
  // that is unknown it removes the directory that an earlier daemon left.
  virtual void Close(GrantId grant, OnClosed done) = 0;
};

}  // namespace rnicd::core
