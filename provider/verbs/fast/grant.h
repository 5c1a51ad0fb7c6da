#pragma once

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "provider/engine/grant_holder.h"
#include "provider/verbs/memory/registration.h"

namespace rnicd::provider {

// Memory that a peer may access under one remote token, created by one request: the body of a fast registration or of a
// window.
//
// Two kinds. The registered kind is a separate registration with the requested rights. Its token must be known when the
// request is posted, and only a registration yields it, so the card honours the token from then on; the queue pair
// considers it in force only when the request is executed. The windowed kind is a type 2 memory window, whose token is
// known beforehand and which the card binds in queue order, over memory that is not remotely accessible by any other
// key.
// Threads: one call at a time; the accessors from any.
class Grant final : public EngineGrant {
 public:
  // Errors: those of Registration::Make.
  static absl::StatusOr<std::unique_ptr<Grant>> Register(std::shared_ptr<VerbsDomain> domain, const Shape& shape);
  // A window over its own registration. Additional errors: those of VerbStatus.
  static absl::StatusOr<std::unique_ptr<Grant>> RegisterForWindow(std::shared_ptr<VerbsDomain> domain,
                                                                  const Shape& shape);
  // A window over a registration that outlives it. Errors: those of VerbStatus.
  static absl::StatusOr<std::unique_ptr<Grant>> OpenWindow(std::shared_ptr<VerbsDomain> domain, ibv_mr* region,
                                                           const Shape& shape);
  ~Grant() override;

  uint32_t token() const { return token_; }
  // lkey of the grant's own registration; 0 for a window over another registration.
  uint32_t lkey() const { return registration_ != nullptr ? registration_->lkey() : 0; }
  VirtualAddress base() const { return base_; }
  uint64_t length() const { return length_; }
  const AccessRights& rights() const { return rights_; }
  bool composed() const { return registration_ != nullptr && registration_->composed(); }

  // True when the card must bind a window, with the request that FillBind fills in.
  bool needs_bind() const override { return window_ != nullptr; }
  void FillBind(ibv_send_wr& request) const;
  // Errors: those of Registration::End.
  absl::Status End() override;

 private:
  Grant(std::shared_ptr<VerbsDomain> domain, const Shape& shape)
      : domain_(std::move(domain)), base_(shape.base), length_(shape.length), rights_(shape.rights) {}

  absl::Status AllocWindow(ibv_mr* region);

  const std::shared_ptr<VerbsDomain> domain_;
  const VirtualAddress base_;
  const uint64_t length_;
  const AccessRights rights_;
  std::unique_ptr<Registration> registration_;
  ibv_mr* region_ = nullptr;
  ibv_mw* window_ = nullptr;
  uint32_t token_ = 0;
};

// A holder whose tokens are keys of the card, known to a domain.
class VerbsGrantHolder : public GrantHolder {
 protected:
  VerbsGrantHolder(std::shared_ptr<VerbsDomain> domain, std::optional<LocalToken> local_token, RemoteToken first)
      : GrantHolder(local_token, first), domain_(std::move(domain)) {}
  void Publish(const EngineGrant& grant, RemoteToken token) override;
  void Withdraw(RemoteToken token) override;

  const std::shared_ptr<VerbsDomain> domain_;
};

}  // namespace rnicd::provider
