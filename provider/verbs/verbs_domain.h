#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/access_rights.h"
#include "base/mutex.h"
#include "base/units.h"
#include "provider/verbs/verbs_context.h"

namespace rnicd::provider {

// What a peer, or a read, can take back by naming its token.
class Invalidatable {
 public:
  virtual ~Invalidatable() = default;
  // True when `token` was in force here and is not any more.
  virtual bool InvalidateToken(uint32_t token) = 0;
};

// Memory that requests of this daemon may name by a local token.
struct LocalKey {
  // The card's key behind the token.
  uint32_t lkey = 0;
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  // Whose registration it is, when requests made it.
  std::weak_ptr<Invalidatable> owner;
};

// A protection domain and the tokens that are in force in it. Local tokens that requests register under stay the same
// for life while the card's key behind them changes; this is where one becomes the other.
// Lifetime: shared by what is made in it. Threads: safe.
class VerbsDomain {
 public:
  // Errors: those of VerbStatus.
  static absl::StatusOr<std::shared_ptr<VerbsDomain>> Create(std::shared_ptr<VerbsContext> context);
  ~VerbsDomain();

  VerbsContext& context() { return *context_; }
  VerbsApi& api() { return context_->api(); }
  VerbsDevice& device() const { return context_->device(); }
  ibv_pd* pd() { return pd_; }
  // Fast registrations are windows here. Not by default, even where windows can be trusted: a window works through the
  // queue pair that bound it, and a fast registration through every one of its domain.
  bool registers_over_windows() const {
    return device().uses_windows() && context_->node().options.fast_engine == FastEngine::kWindow;
  }
  // A key of the card that reaches nothing, so that no other token is like it.
  uint32_t privileged_token() const { return placeholder_->lkey; }

  // A registration that the card refused to end and that nobody is left to end: it is told again when the domain goes.
  void Orphan(ibv_mr* mr);

  void SetLocal(uint32_t token, LocalKey key);
  void RemoveLocal(uint32_t token);
  std::optional<LocalKey> FindLocal(uint32_t token) const;

  void SetRemote(uint32_t token, std::weak_ptr<Invalidatable> owner);
  void RemoveRemote(uint32_t token);
  // Takes back what is in force under a remote token. False when nothing is.
  bool InvalidateRemote(uint32_t token);

 private:
  VerbsDomain(std::shared_ptr<VerbsContext> context, ibv_pd* pd) : context_(std::move(context)), pd_(pd) {}

  const std::shared_ptr<VerbsContext> context_;
  ibv_pd* const pd_;
  ibv_mr* placeholder_ = nullptr;

  mutable Mutex mutex_;
  std::vector<ibv_mr*> orphans_ RNICD_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, LocalKey> local_ RNICD_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, std::weak_ptr<Invalidatable>> remote_ RNICD_GUARDED_BY(mutex_);
};

// A page that keys which reach nothing stand for; the same for all.
std::span<std::byte> PlaceholderPage();

}  // namespace rnicd::provider
