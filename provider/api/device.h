#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/access_rights.h"
#include "base/ndk/adapter_info.h"
#include "base/ndk/network_address.h"
#include "base/status.h"
#include "base/units.h"
#include "provider/api/connection.h"
#include "provider/api/queue_pair.h"

namespace rnicd::provider {

// Request to register memory: `runs`, laid end to end, become the addresses [base, base + length).
// Core has done NDK's checks: the runs add up to length, base is congruent to the first run modulo the page, and every
// seam between runs is a page boundary.
struct DeviceRegistration {
  VirtualAddress base;
  uint64_t length = 0;
  // Populated memory of this process; stays mapped until Deregister returns.
  std::span<const std::span<std::byte>> runs;
  AccessRights rights;
};

// Request to register a part of a dma-buf: its bytes [offset, offset + length) become the addresses
// [base, base + length). Core has checked that base is congruent to offset modulo the page, that `file` is a dma-buf
// for reading and writing, and that the part lies inside it. Nothing of this process maps the dma-buf.
struct DeviceDmabufRegistration {
  VirtualAddress base;
  uint64_t length = 0;
  // Open until Deregister returns.
  int file = -1;
  uint64_t offset = 0;
  AccessRights rights;
};

// A registration in the card.
// Lifetime: outlived by its protection domain. The destructor deregisters what is still registered.
// Threads:  one call at a time; token reads may race with anything.
// Source:   ibv_reg_mr(3).
class DeviceMemoryRegion {
 public:
  virtual ~DeviceMemoryRegion() = default;
  virtual LocalToken local_token() const = 0;
  // Token for peers; useless to them when no remote right was granted.
  virtual RemoteToken remote_token() const = 0;
  // When it returns ok, transfers no longer reach the memory and both tokens are dead. A failure leaves the region
  // unchanged. A second call does nothing. Errors: REGION_HAS_WINDOWS while a window is bound; DEVICE_FAILED.
  virtual absl::Status Deregister() = 0;
};

// Isolation boundary between owners: a token works only on queue pairs of its own domain.
// Lifetime: outlived by its adapter, outlives every object created in it.
// Threads: safe.
// Errors:   DEVICE_OUT_OF_RESOURCES, DEVICE_NOT_CAPABLE, DEVICE_MEMLOCK_LIMIT, MEMORY_NOT_PINNABLE, DEVICE_REMOVED,
//           DEVICE_FAILED. A failure leaves no object behind.
// Source:   ibv_alloc_pd(3).
class DeviceProtectionDomain {
 public:
  virtual ~DeviceProtectionDomain() = default;
  virtual absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(
      const DeviceRegistration& registration) = 0;
  // DEVICE_NOT_CAPABLE where the card, its driver or the kernel has no such operation; MEMORY_NOT_PINNABLE where the
  // dma-buf's exporter refuses the card. Source: ibv_reg_dmabuf_mr(3).
  virtual absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterDmabuf(
      const DeviceDmabufRegistration& /*registration*/) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  // Token that marks an SGE as bytes of this process. It never works for a peer.
  virtual LocalToken privileged_token() const = 0;
  // A region for at most `max_pages` pages of 4 KiB at a time. Additional errors: PAGE_COUNT_UNSUPPORTED.
  virtual absl::StatusOr<std::shared_ptr<DeviceFastRegion>> CreateFastRegion(uint32_t max_pages,
                                                                             bool remote_access) = 0;
  virtual absl::StatusOr<std::shared_ptr<DeviceMemoryWindow>> CreateMemoryWindow() = 0;
  // `limits` are within the adapter's. The queues and the listener outlive the queue pair.
  virtual absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                           DeviceCompletionQueue& receive_queue,
                                                                           DeviceCompletionQueue& initiator_queue,
                                                                           QueuePairListener& listener) = 0;
};

// Pages that fast registrations may name, prepared for them; NDK's logical address mapping.
// Lifetime: may outlive its adapter. The pages stay mapped until the destructor has returned.
class DeviceMapping {
 public:
  virtual ~DeviceMapping() = default;
};

// One opening of a card; each session has its own, so that a card's handles are never shared between owners.
// Lifetime: outlived by its provider, outlives its domains.
// Threads: safe.
// Source:   ibv_open_device(3).
class DeviceAdapter {
 public:
  virtual ~DeviceAdapter() = default;
  virtual const NdkAdapterInfo& info() const = 0;
  // True once the card under this opening is gone: every call that needs the card is refused with DEVICE_REMOVED or
  // fails; the kernel's removal waits until this opening and all that was made in it is destroyed. An adapter of the
  // same name opened later is another card.
  virtual bool removed() const { return false; }
  // Errors: DEVICE_OUT_OF_RESOURCES, DEVICE_MEMLOCK_LIMIT, DEVICE_REMOVED, DEVICE_FAILED.
  virtual absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() = 0;
  // Errors: DEVICE_OUT_OF_RESOURCES, DEVICE_REMOVED, DEVICE_FAILED.
  virtual absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t depth) = 0;
  // Announces populated memory to the card, whose pages fast registrations will name; all runs but the first and last
  // are whole pages. Null for a card that does not need this.
  virtual std::unique_ptr<DeviceMapping> AddMapping(std::span<const std::span<std::byte>> /*runs*/) { return nullptr; }

  // Connections by address. A card that has none of it keeps these.

  // Where it may listen, and what its peers see; empty for a card that has no connections by address.
  virtual std::vector<IpAddress> addresses() const { return {}; }
  // Takes requests for one of its addresses and a port that is not 0. Errors: ADDRESS_IN_USE, where another program has
  // the port; ADDRESS_INVALID; DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED, DEVICE_NOT_CAPABLE.
  virtual absl::StatusOr<std::unique_ptr<DeviceListener>> Listen(const NetworkAddress& /*address*/,
                                                                 std::weak_ptr<RequestListener> /*listener*/) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  // For the active side. Errors: DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED, DEVICE_NOT_CAPABLE.
  virtual absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateConnector(
      std::weak_ptr<ConnectorListener> /*listener*/) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  // The network address of the queue pair that DeviceQueuePair::Connect would find by this one. Errors:
  // QP_ADDRESS_UNKNOWN; DEVICE_NOT_CAPABLE.
  virtual absl::StatusOr<IpAddress> LocateQueuePair(std::string_view /*peer_address*/) const {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE, "peer_address");
  }
};

struct AdapterDescription {
  // Stable across restarts, unique within the node.
  std::string name;
  // NUMA node the card is attached to; -1 if none.
  int numa_node = -1;
  // sysfs directory of the port, "/sys/class/infiniband/rxe0/ports/1"; empty for a card unknown to the kernel.
  std::string port_folder;
  // How fast registrations are made, "kernel", and why so; both empty if there is one way only.
  std::string fast_engine;
  std::string fast_engine_reason;
  NdkAdapterInfo info;
};

// Fast registrations since start, by method: executed by the card itself (native), by the kernel's request for it
// (kernel), as one registration of contiguous memory (direct), as one registration of memory first mapped contiguously
// (composed), or through memory windows of the card (windowed).
struct FastRegistrationCounts {
  uint64_t native = 0;
  uint64_t kernel = 0;
  uint64_t direct = 0;
  uint64_t composed = 0;
  uint64_t windowed = 0;
};

// One kind of hardware and all cards of that kind. Layers above this interface do not depend on the kind.
// Threads: safe.
class Provider {
 public:
  virtual ~Provider() = default;
  // "soft", "verbs" or "networkdirect".
  virtual std::string_view name() const = 0;
  virtual std::vector<AdapterDescription> ListAdapters() const = 0;
  // Errors: ADAPTER_NOT_FOUND, DEVICE_OUT_OF_RESOURCES, DEVICE_REMOVED, DEVICE_FAILED.
  virtual absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) = 0;
  // Regions registered now on all cards, as the hardware itself would list them.
  virtual uint64_t live_regions() const = 0;
  virtual FastRegistrationCounts fast_registrations() const = 0;
  // True if several threads register and deregister more regions in the same time than one.
  virtual bool registers_in_parallel() const { return false; }
};

}  // namespace rnicd::provider
