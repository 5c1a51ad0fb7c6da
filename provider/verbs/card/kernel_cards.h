#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "provider/verbs/card/card_list.h"

namespace rnicd::provider {

// The cards of this machine.
class KernelCards final : public CardList {
 public:
  // libibverbs keeps the name that a card had at first; this is today's.
  static CardId IdOf(const ibv_device& device);
  // False once the kernel removes the card; a card that is renamed stays.
  static bool HasFile(const CardId& card);

  std::vector<CardId> List() override;
  // Takes no descriptor, so that clients that use up the daemon's make no card vanish.
  bool Has(const CardId& card) override;
  UniqueFd Watch() override;
  bool ReadNews(int watch) override;
  int NumaNode(const std::string& name) override;
  std::vector<IpAddress> AddressesOf(const ibv_gid& mac) override;
};

// True for a message on an RDMA card. Source: kobject_uevent_env of the kernel.
bool IsAboutCards(std::string_view message);

// What ibv_get_device_list(3) returns.
class DeviceList {
 public:
  DeviceList() : devices_(ibv_get_device_list(&count_)) {}
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ~DeviceList() {
    if (devices_ != nullptr) {
      ibv_free_device_list(devices_);
    }
  }
  // Null where the kernel has no RDMA support; that means no cards and is not a failure.
  ibv_device** begin() const { return devices_; }
  ibv_device** end() const { return devices_ != nullptr ? devices_ + count_ : nullptr; }

 private:
  int count_ = 0;
  ibv_device** const devices_;
};

}  // namespace rnicd::provider
