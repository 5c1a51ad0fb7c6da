#include "provider/verbs/fast/grant.h"

#include <cerrno>
#include <utility>

#include "base/status.h"
#include "provider/verbs/card/verbs_status.h"

namespace rnicd::provider {

absl::StatusOr<std::unique_ptr<Grant>> Grant::Register(std::shared_ptr<VerbsDomain> domain, const Shape& shape) {
  std::unique_ptr<Grant> grant(new Grant(domain, shape));
  RNICD_ASSIGN_OR_RETURN(grant->registration_,
                         Registration::Make(std::move(domain), shape.base, shape.runs, AccessFlags(shape.rights)));
  grant->token_ = grant->registration_->rkey();
  return grant;
}

absl::StatusOr<std::unique_ptr<Grant>> Grant::RegisterForWindow(std::shared_ptr<VerbsDomain> domain,
                                                                const Shape& shape) {
  std::unique_ptr<Grant> grant(new Grant(domain, shape));
  // No remote right: peers get access through the window only. Remote writes through a window need the local write
  // right.
  const AccessRights local{.local_write = shape.rights.local_write || shape.rights.remote_write};
  RNICD_ASSIGN_OR_RETURN(grant->registration_, Registration::Make(std::move(domain), shape.base, shape.runs,
                                                                  AccessFlags(local) | IBV_ACCESS_MW_BIND));
  if (!shape.is_remote()) {
    // No remote right was requested, so there is no window to bind; the token is one that no peer can use.
    grant->token_ = grant->registration_->lkey();
    return grant;
  }
  RNICD_RETURN_IF_ERROR(grant->AllocWindow(grant->registration_->mr()));
  return grant;
}

absl::StatusOr<std::unique_ptr<Grant>> Grant::OpenWindow(std::shared_ptr<VerbsDomain> domain, ibv_mr* region,
                                                         const Shape& shape) {
  std::unique_ptr<Grant> grant(new Grant(std::move(domain), shape));
  RNICD_RETURN_IF_ERROR(grant->AllocWindow(region));
  return grant;
}

// A new window for every use, so that it is younger than the queue pair that binds it: when a process exits, the kernel
// destroys the youngest objects first, and some cards cannot destroy a queue pair with a window bound to it.
absl::Status Grant::AllocWindow(ibv_mr* region) {
  region_ = region;
  window_ = domain_->api().AllocMw(domain_->pd());
  if (window_ == nullptr) {
    return VerbStatus(errno, "ibv_alloc_mw");
  }
  token_ = ibv_inc_rkey(window_->rkey);
  return absl::OkStatus();
}

Grant::~Grant() { End().IgnoreError(); }

void Grant::FillBind(ibv_send_wr& request) const {
  request.opcode = IBV_WR_BIND_MW;
  request.bind_mw.mw = window_;
  request.bind_mw.rkey = token_;
  request.bind_mw.bind_info.mr = region_;
  request.bind_mw.bind_info.addr = base_.value;
  request.bind_mw.bind_info.length = length_;
  request.bind_mw.bind_info.mw_access_flags = static_cast<unsigned>(AccessFlags(rights_) & ~IBV_ACCESS_LOCAL_WRITE);
}

absl::Status Grant::End() {
  if (window_ != nullptr) {
    const int error = domain_->api().DeallocMw(window_);
    if (error != 0 && !MeansRemoved(error)) {
      return VerbStatus(error, "ibv_dealloc_mw");
    }
    window_ = nullptr;
  }
  return registration_ != nullptr ? registration_->End() : absl::OkStatus();
}

void VerbsGrantHolder::Publish(const EngineGrant& grant, RemoteToken token) {
  const auto& own = static_cast<const Grant&>(grant);
  if (local_token_.has_value()) {
    domain_->SetLocal(local_token_->value, {.lkey = own.lkey(),
                                            .base = own.base(),
                                            .length = own.length(),
                                            .rights = own.rights(),
                                            .owner = weak_from_this()});
  }
  domain_->SetRemote(token.value, weak_from_this());
}

void VerbsGrantHolder::Withdraw(RemoteToken token) {
  if (local_token_.has_value()) {
    domain_->RemoveLocal(local_token_->value);
  }
  domain_->RemoveRemote(token.value);
}

}  // namespace rnicd::provider
