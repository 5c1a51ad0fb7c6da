#pragma once

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "provider/engine/grant_holder.h"
#include "provider/networkdirect/memory/nd_registration.h"

namespace rnicd::provider {

// Memory that requests may access under a pair of tokens, created by one request: the body of a fast registration or of
// a window.
//
// Three kinds. The registered kind is a registration of its own with the requested rights. The windowed kind is a
// memory window of the card, which it binds in queue order, over memory that no other token makes remotely accessible;
// it works through the queue pair that binds it. The borrowed kind has no remote right and needs nothing of the card
// but the registration it lies in.
// Threads: one call at a time; the accessors from any.
class NdGrant final : public EngineGrant {
 public:
  // The grant of a FastRegisterWork. `connected`: its queue pair is, so that it can bind. Windowed or borrowed if the
  // memory lies together in one run of a logical mapping, unless the options want registrations. Errors: those of
  // NdRegistration::Make and NdStatus.
  static absl::StatusOr<std::unique_ptr<NdGrant>> ForFastRegister(const std::shared_ptr<NdDomain>& domain,
                                                                  const Shape& shape, bool connected);
  // The grant of a BindWork, over a registration that outlives it. Windowed if the memory lies together. Errors: as
  // above.
  static absl::StatusOr<std::unique_ptr<NdGrant>> ForBind(const std::shared_ptr<NdDomain>& domain,
                                                          const NdRegistration& registration, const Shape& shape,
                                                          bool connected);
  ~NdGrant() override;
  NdGrant(const NdGrant&) = delete;
  NdGrant& operator=(const NdGrant&) = delete;

  // Null if the card need not bind anything.
  ComPtr<IND2MemoryWindow> window() const { return window_; }
  bool needs_bind() const override { return window_.get() != nullptr; }
  // True for the registered kind.
  bool owns_registration() const { return own_ != nullptr; }
  // Makes the card bind the window.
  HRESULT Bind(IND2QueuePair& queue_pair, void* context);
  // For requests of this side, and of the peer; the latter once the window is bound.
  std::shared_ptr<const CardRange> local_range() const { return range_; }
  std::shared_ptr<const CardRange> remote_range() const;
  // Errors: those of NdRegistration::End.
  absl::Status End() override;

 private:
  explicit NdGrant(std::shared_ptr<NdDomain> domain) : domain_(std::move(domain)) {}

  static absl::StatusOr<std::unique_ptr<NdGrant>> Register(const std::shared_ptr<NdDomain>& domain, const Shape& shape);
  // Null if no window can express the shape.
  static absl::StatusOr<std::unique_ptr<NdGrant>> OverRegistration(const std::shared_ptr<NdDomain>& domain,
                                                                   const NdRegistration& registration,
                                                                   const Shape& shape, bool connected);

  const std::shared_ptr<NdDomain> domain_;
  std::shared_ptr<const CardRange> range_;
  // Set for the registered kind.
  std::unique_ptr<NdRegistration> own_;
  // Keeps the registration that the others lie in, if they share it.
  std::shared_ptr<const NdRegistration> shared_;
  ComPtr<IND2MemoryRegion> region_;
  ComPtr<IND2MemoryWindow> window_;
};

// A holder whose tokens are numbers of a domain.
class NdGrantHolder : public GrantHolder {
 public:
  // The window of the grant in force, if the queue pair has bound it; otherwise null.
  ComPtr<IND2MemoryWindow> WindowOf(uint64_t queue_pair) const;

 protected:
  // `has_local_token`: it is a fast region's.
  NdGrantHolder(std::shared_ptr<NdDomain> domain, bool has_local_token);
  ~NdGrantHolder() override;

  const std::shared_ptr<NdDomain> domain_;

 private:
  void Publish(const EngineGrant& grant, RemoteToken token) override;
  void Suspend(RemoteToken token) override;
  void Withdraw(RemoteToken token) override { domain_->remote_tokens().Remove(token.value); }

  // What issued() is before the first request; reaches nothing.
  const RemoteToken first_token_;
};

}  // namespace rnicd::provider
