#pragma once

#include <memory>

#include "provider/api/queue_pair.h"
#include "provider/verbs/fast/grant.h"

namespace rnicd::provider {

// A memory window: a part of a region with its own token and rights. If the card's windows are not used, it is a
// registration of that part, which works on every queue pair of the domain and not only on the one that bound it.
// Threads: safe.
class VerbsWindow final : public DeviceMemoryWindow, public VerbsGrantHolder {
 public:
  explicit VerbsWindow(const std::shared_ptr<VerbsDomain>& domain)
      : VerbsGrantHolder(domain, std::nullopt, RemoteToken{domain->privileged_token()}) {}
  ~VerbsWindow() override { RetireForGood(); }

  RemoteToken remote_token() const override { return issued(); }
  void Retire() override { RetireForGood(); }
};

}  // namespace rnicd::provider
