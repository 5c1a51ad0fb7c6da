#pragma once

#include <memory>
#include <utility>

#include "provider/api/queue_pair.h"
#include "provider/networkdirect/fast/nd_grant.h"

namespace rnicd::provider {

// A memory window: a part of a region with a token and rights of its own. Where no window of the card can express it, a
// registration of that part, which works on every queue pair of the domain and not only on the one that bound it.
// Threads: safe.
class NdWindow final : public DeviceMemoryWindow, public NdGrantHolder {
 public:
  explicit NdWindow(std::shared_ptr<NdDomain> domain) : NdGrantHolder(std::move(domain), /*has_local_token=*/false) {}

  RemoteToken remote_token() const override { return issued(); }
  void Retire() override { RetireForGood(); }
};

}  // namespace rnicd::provider
