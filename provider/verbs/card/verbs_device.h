#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/adapter_info.h"
#include "base/secrets/random.h"
#include "base/status.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"
#include "provider/engine/engine_fabric.h"
#include "provider/verbs/card/event_loop.h"
#include "provider/verbs/card/verbs_api.h"
#include "provider/verbs/card/verbs_options.h"
#include "provider/verbs/card/verbs_status.h"

namespace rnicd::provider {

// What all cards have done, also those that are gone.
struct CardCounts {
  std::atomic<uint64_t> regions = 0;
  // Indexed by FastEngineUsed.
  std::array<std::atomic<uint64_t>, 4> fast_registrations = {};
};

// Method of one fast registration.
enum class FastEngineUsed : uint8_t { kDirect, kComposed, kWindowed, kKernel };

// State shared by all cards of the daemon.
struct VerbsNode {
  void CountFastRegistration(FastEngineUsed engine) {
    counts.fast_registrations[static_cast<size_t>(engine)].fetch_add(1, std::memory_order_relaxed);
  }
  void Report(const std::string& adapter, AdapterEventKind kind) {
    MutexLock lock(reporting);
    on_event({.adapter = adapter, .kind = kind});
  }

  VerbsApi& api;
  const VerbsOptions options;
  const AdapterEventListener on_event;
  RandomSource& random;
  // Identifies this daemon in addresses; never 0.
  const uint32_t origin;
  EngineFabric fabric;
  EventLoop loop;
  CardCounts counts;
  // Held while the listener is called.
  Mutex reporting;
  // Held while memory of a client is mapped at the client's address: clients may have the same ones.
  Mutex placing;
};

// Current address of a port.
struct PortAddress {
  ibv_gid gid = {};
  uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  bool ethernet = true;
};

// The engines of a card.
struct FastEngines {
  // Binds use memory windows of the card.
  bool windows = false;
  // Fast registrations are requests of the kernel, where they have few enough pages.
  bool kernel = false;
  // The reason for `kernel`, for people.
  std::string kernel_reason;
};

// What an iWARP card has besides.
struct IwarpCard {
  // The kernel's card in software.
  bool is_siw = false;
};

// One port of one card: its name, its limits, and whether it has been removed. Shared by every session that opens it.
// Threads: safe.
class VerbsDevice {
 public:
  // Queries a port. Errors: DEVICE_NOT_CAPABLE when it does not support reliable connections; those of VerbStatus.
  static absl::StatusOr<std::shared_ptr<VerbsDevice>> Inspect(VerbsNode& node, ibv_context* context, const CardId& card,
                                                              uint8_t port, std::string name);

  const std::string& name() const { return name_; }
  // The card the port belongs to.
  const CardId& card() const { return card_; }
  uint8_t port() const { return port_; }
  const NdkAdapterInfo& info() const { return info_; }
  // Null for any other card.
  const std::unique_ptr<IwarpCard>& iwarp() const { return iwarp_; }
  // Chosen once, before the port is offered.
  const FastEngines& engines() const { return engines_; }
  FastEngines& engines() { return engines_; }
  bool can_bind_type2() const { return can_bind_type2_; }

  // Errors: DEVICE_FAILED when no address of the port satisfies the rule.
  absl::StatusOr<PortAddress> CurrentAddress(VerbsNode& node, ibv_context* context) const;
  // Current index of an address in the GID table. Errors: QP_NOT_CONNECTABLE when the address was removed, or when its
  // index is above 255, which a queue pair cannot name.
  absl::StatusOr<uint8_t> FindGid(VerbsNode& node, ibv_context* context, const ibv_gid& gid) const;

  // False also when the query fails.
  bool PortIsActive(VerbsNode& node, ibv_context* context) const;
  // Handles an asynchronous event and reports it to the listener. A card that no longer responds is marked removed.
  void OnAsyncEvent(VerbsNode& node, ibv_context* context, const ibv_async_event& event);
  bool removed() const { return removed_.load(std::memory_order_relaxed); }
  // Errors: DEVICE_REMOVED. A software card works on after its removal, for as long as it is open.
  absl::Status CheckThere() const { return removed() ? MakeError(ErrorReason::DEVICE_REMOVED) : absl::OkStatus(); }
  // Marks the card removed, and reports it, once.
  void Remove(VerbsNode& node);

  // Counts a registration against the limit. Errors: DEVICE_OUT_OF_RESOURCES.
  absl::Status AddRegion(VerbsNode& node);
  void RemoveRegion(VerbsNode& node);

 private:
  VerbsDevice(CardId card, uint8_t port, std::string name, NdkAdapterInfo info, bool can_bind_type2,
              uint64_t max_regions);

  const CardId card_;
  const uint8_t port_;
  const std::string name_;
  const NdkAdapterInfo info_;
  const bool can_bind_type2_;
  const uint64_t max_regions_;
  FastEngines engines_;
  const std::unique_ptr<IwarpCard> iwarp_;
  std::atomic<bool> removed_ = false;
  std::atomic<uint64_t> regions_ = 0;
};

}  // namespace rnicd::provider
