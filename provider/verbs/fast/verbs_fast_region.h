#pragma once

#include <memory>
#include <utility>

#include "provider/api/queue_pair.h"
#include "provider/verbs/fast/grant.h"

namespace rnicd::provider {

struct PreparedRequest;

// A fast region of a card, of either kind.
class VerbsFastRegion : public DeviceFastRegion {
 public:
  // The first half of a registration, when its request is posted: every step that can fail. Errors: those of Grant, and
  // of ModuleStatus.
  virtual absl::Status Prepare(const FastRegisterWork& work, PreparedRequest& prepared) = 0;
  // Records the token of a request that was accepted.
  virtual void Issue(RemoteToken token) = 0;
  // Returns when transfers no longer reach the pages. False when there was no registration or the card refused.
  virtual bool Invalidate() = 0;
  // True for a KernelFastRegion.
  virtual bool is_kernel() const { return false; }
};

// A page under a key without rights, so that no other token can equal its local key. Errors: those of
// Registration::Make.
absl::StatusOr<std::unique_ptr<Registration>> RegisterPlaceholder(const std::shared_ptr<VerbsDomain>& domain);

// A pair of tokens under which requests register pages. The local token is a key of the card that reaches nothing
// itself; the domain maps requests that name it to the key of the registration in force.
// Threads: safe. Executions on different queue pairs are serialized.
class GrantFastRegion final : public VerbsFastRegion, public VerbsGrantHolder {
 public:
  // Errors: those of Registration::Make.
  static absl::StatusOr<std::shared_ptr<GrantFastRegion>> Create(std::shared_ptr<VerbsDomain> domain);
  ~GrantFastRegion() override { RetireForGood(); }

  LocalToken local_token() const override { return *local_token_; }
  RemoteToken remote_token() const override { return issued(); }
  bool registered() const override { return in_force(); }
  void Retire() override { RetireForGood(); }

  absl::Status Prepare(const FastRegisterWork& work, PreparedRequest& prepared) override;
  void Issue(RemoteToken token) override { GrantHolder::Issue(token); }
  bool Invalidate() override { return GrantHolder::Invalidate(); }

 private:
  GrantFastRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> placeholder)
      : VerbsGrantHolder(std::move(domain), LocalToken{placeholder->lkey()}, RemoteToken{placeholder->lkey()}),
        placeholder_(std::move(placeholder)) {}
  void Count(const EngineGrant& grant) override;

  const std::unique_ptr<Registration> placeholder_;
};

}  // namespace rnicd::provider
