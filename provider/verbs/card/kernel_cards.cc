#include "provider/verbs/card/kernel_cards.h"

#include <linux/netlink.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "provider/verbs/card/device_addresses.h"

namespace rnicd::provider {
namespace {

// The group of messages that the kernel itself sends.
constexpr uint32_t kKernelsGroup = 1;
constexpr size_t kMessageBytes = 8192;
constexpr char kClass[] = "/sys/class/infiniband_verbs/";
constexpr size_t kMacBytes = 6;

// The kernel numbers the entries of sysfs anew each time. 0 when there is none.
uint64_t EntryNumber(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

uint64_t InstanceOf(const std::string& file) { return EntryNumber(kClass + file); }

}  // namespace

CardId KernelCards::IdOf(const ibv_device& device) {
  std::ifstream file(kClass + std::string(device.dev_name) + "/ibdev");
  std::string name;
  return {.name = file >> name ? name : device.name, .file = device.dev_name, .instance = InstanceOf(device.dev_name)};
}

bool KernelCards::HasFile(const CardId& card) { return card.instance == 0 || InstanceOf(card.file) == card.instance; }

std::vector<CardId> KernelCards::List() {
  std::vector<CardId> cards;
  // One that has just gone has no entry any more.
  const bool has_entries = EntryNumber(kClass) != 0;
  for (const ibv_device* device : DeviceList()) {
    const CardId card = IdOf(*device);
    if (card.instance != 0 || !has_entries) {
      cards.push_back(card);
    }
  }
  return cards;
}

bool KernelCards::Has(const CardId& card) {
  return card.instance == 0 || (HasFile(card) && EntryNumber("/sys/class/infiniband/" + card.name) != 0);
}

UniqueFd KernelCards::Watch() {
  UniqueFd receiver(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelsGroup;
  if (!receiver.valid() || bind(receiver.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
  return receiver;
}

// After ENOBUFS messages are missing, and any may have been about cards.
bool KernelCards::ReadNews(int watch) {
  std::array<char, kMessageBytes> message;
  bool about_cards = false;
  while (true) {
    const ssize_t length = recv(watch, message.data(), message.size(), 0);
    if (length < 0 && errno != ENOBUFS) {
      return about_cards;
    }
    about_cards = about_cards || length < 0 || IsAboutCards({message.data(), static_cast<size_t>(length)});
  }
}

int KernelCards::NumaNode(const std::string& name) {
  std::ifstream file("/sys/class/infiniband/" + name + "/device/numa_node");
  int node = -1;
  return file >> node && node >= 0 ? node : -1;
}

std::vector<IpAddress> KernelCards::AddressesOf(const ibv_gid& mac) { return DeviceAddresses({mac.raw, kMacBytes}); }

bool IsAboutCards(std::string_view message) {
  constexpr std::string_view kSubsystem = "SUBSYSTEM=";
  while (!message.empty()) {
    const size_t end = std::min(message.find('\0'), message.size());
    const std::string_view field = message.substr(0, end);
    if (field.starts_with(kSubsystem)) {
      return field.substr(kSubsystem.size()).starts_with("infiniband");
    }
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return false;
}

}  // namespace rnicd::provider
