#pragma once

#include <memory>
#include <utility>

#include "provider/api/queue_pair.h"
#include "provider/networkdirect/fast/nd_grant.h"

namespace rnicd::provider {

// A pair of tokens under which requests register pages.
// Threads: safe.
class NdFastRegion final : public DeviceFastRegion, public NdGrantHolder {
 public:
  explicit NdFastRegion(std::shared_ptr<NdDomain> domain)
      : NdGrantHolder(std::move(domain), /*has_local_token=*/true) {}

  LocalToken local_token() const override { return *local_token_; }
  RemoteToken remote_token() const override { return issued(); }
  bool registered() const override { return in_force(); }
  void Retire() override { RetireForGood(); }

 private:
  void Count(const EngineGrant& grant) override {
    const bool direct = static_cast<const NdGrant&>(grant).owns_registration();
    domain_->device().CountFastRegistration(direct ? NdFastEngineUsed::kDirect : NdFastEngineUsed::kWindowed);
  }
};

}  // namespace rnicd::provider
