#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/ndk_adapter_info.h"
#include "base/random.h"
#include "provider/soft/soft_key_table.h"

namespace rnicd::provider {

struct SoftOptions;

// One software card: its name, its limits and its keys. Shared by every session's opening of it. Threads: safe.
class SoftNic {
 public:
  SoftNic(std::string name, const SoftOptions& options, RandomSource& random);

  const std::string& name() const { return name_; }
  const NdkAdapterInfo& info() const { return info_; }
  std::chrono::microseconds register_delay() const { return register_delay_; }
  SoftKeyTable& keys() { return keys_; }
  // A number no other protection domain of this card has or had.
  uint64_t NextDomain() { return next_domain_.fetch_add(1); }

 private:
  const std::string name_;
  const NdkAdapterInfo info_;
  const std::chrono::microseconds register_delay_;
  SoftKeyTable keys_;
  std::atomic<uint64_t> next_domain_{1};
};

}  // namespace rnicd::provider
