#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/ndk/access_rights.h"
#include "base/ndk/adapter_info.h"
#include "base/ndk/network_address.h"
#include "base/secrets/random.h"
#include "provider/soft/soft_fabric.h"
#include "provider/soft/soft_key_table.h"

namespace rnicd::provider {

struct SoftOptions;

// One software card: its name, address, limits and keys. Shared by every session that opens it.
// Threads: safe.
class SoftNic {
 public:
  SoftNic(std::string name, const IpAddress& address, const SoftOptions& options, RandomSource& random,
          std::shared_ptr<SoftFabric> fabric);

  const std::string& name() const { return name_; }
  const IpAddress& address() const { return address_; }
  const NdkAdapterInfo& info() const { return info_; }
  std::chrono::microseconds read_delay() const { return read_delay_; }
  // Null if reads are not held. See SoftOptions.
  const std::function<bool()>& hold_reads() const { return hold_reads_; }
  uint32_t max_fast_register_pages() const { return max_fast_register_pages_; }
  SoftKeyTable& keys() { return keys_; }
  SoftFabric& fabric() { return *fabric_; }
  // A number never used by another protection domain of this card.
  uint64_t NextDomain() { return next_domain_.fetch_add(1); }
  void CountFastRegistration() { fast_registrations_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t fast_registrations() const { return fast_registrations_.load(std::memory_order_relaxed); }
  // The rights as this card applies them: a card that does not require the read sink right grants it to every region.
  AccessRights Resolve(AccessRights rights) const;

 private:
  const std::string name_;
  const IpAddress address_;
  const NdkAdapterInfo info_;
  const std::chrono::microseconds read_delay_;
  const std::function<bool()> hold_reads_;
  const uint32_t max_fast_register_pages_;
  const std::shared_ptr<SoftFabric> fabric_;
  SoftKeyTable keys_;
  std::atomic<uint64_t> next_domain_{1};
  std::atomic<uint64_t> fast_registrations_{0};
};

}  // namespace rnicd::provider
