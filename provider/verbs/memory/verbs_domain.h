#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "provider/engine/invalidatable.h"
#include "provider/verbs/card/kernel_engine.h"
#include "provider/verbs/card/verbs_context.h"

namespace rnicd::provider {

// Memory that requests of this daemon may name by a local token.
struct LocalKey {
  // The card's key behind the token.
  uint32_t lkey = 0;
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  // Owner of a registration made by a request; otherwise empty.
  std::weak_ptr<Invalidatable> owner;
};

// A protection domain and the tokens in force in it. Local tokens of fast regions are constant, while the card's key
// behind them changes with each registration; the domain maps one to the other.
// Lifetime: shared by the objects created in it.
// Threads: safe.
class VerbsDomain {
 public:
  // Errors: those of VerbStatus.
  static absl::StatusOr<std::shared_ptr<VerbsDomain>> Create(std::shared_ptr<VerbsContext> context);
  ~VerbsDomain();

  VerbsContext& context() { return *context_; }
  VerbsApi& api() { return context_->api(); }
  VerbsDevice& device() const { return context_->device(); }
  ibv_pd* pd() { return pd_; }
  uint64_t kernel_page_bytes() const { return context_->node().options.kernel_page_bytes; }
  // True when fast registrations are windows. Not the default, even if the card's windows check bounds: a window works
  // only through the queue pair that bound it, a fast registration through every queue pair of its domain.
  bool registers_over_windows() const {
    return device().engines().windows && context_->node().options.fast_engine == FastEngine::kWindow;
  }
  // Takes the domain for fast registrations by the kernel, once. Errors: those of KernelEngine::Take.
  absl::Status TakeForKernel();
  // Null before that.
  std::shared_ptr<KernelEngine> kernel_engine() const;
  // A key of the card that reaches nothing, so no other token can equal it.
  uint32_t privileged_token() const { return placeholder_->lkey; }

  // Takes over a registration that the card refused to end and that has no owner; the domain's destructor retries.
  void Orphan(ibv_mr* mr);

  void SetLocal(uint32_t token, LocalKey key);
  void RemoveLocal(uint32_t token);
  std::optional<LocalKey> FindLocal(uint32_t token) const;

  void SetRemote(uint32_t token, std::weak_ptr<Invalidatable> owner);
  void RemoveRemote(uint32_t token);
  // True if something is in force under the remote token.
  bool HasRemote(uint32_t token) const;
  // Invalidates a remote token, as InvalidateToken.
  bool InvalidateRemote(uint32_t token, std::optional<uint64_t> arrived_at);

 private:
  VerbsDomain(std::shared_ptr<VerbsContext> context, ibv_pd* pd) : context_(std::move(context)), pd_(pd) {}

  const std::shared_ptr<VerbsContext> context_;
  ibv_pd* const pd_;
  ibv_mr* placeholder_ = nullptr;

  // Held while the domain is taken.
  Mutex taking_;

  mutable Mutex mutex_;
  std::shared_ptr<KernelEngine> kernel_engine_ RNICD_GUARDED_BY(mutex_);
  std::vector<ibv_mr*> orphans_ RNICD_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, LocalKey> local_ RNICD_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, std::weak_ptr<Invalidatable>> remote_ RNICD_GUARDED_BY(mutex_);
};

// The page registered under keys that grant no access; shared by all domains.
std::span<std::byte> PlaceholderPage();

}  // namespace rnicd::provider
