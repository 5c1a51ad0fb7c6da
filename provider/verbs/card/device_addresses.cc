#include "provider/verbs/card/device_addresses.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "absl/functional/function_ref.h"
#include "base/files/unique_fd.h"

namespace rnicd::provider {
namespace {

constexpr size_t kAnswerBytes = size_t{32} << 10;

using LinkAttributes = std::map<int, std::span<const uint8_t>>;

// One message of an answer: what precedes the attributes, and these.
template <typename Header>
struct LinkMessage {
  explicit LinkMessage(const nlmsghdr& message) {
    const auto* const begin = static_cast<const uint8_t*>(NLMSG_DATA(&message));
    std::memcpy(&header, begin, sizeof(header));
    std::span<const uint8_t> rest(begin, message.nlmsg_len - NLMSG_HDRLEN);
    rest = rest.subspan(std::min<size_t>(NLMSG_ALIGN(sizeof(header)), rest.size()));
    rtattr attribute = {};
    while (rest.size() >= sizeof(attribute)) {
      std::memcpy(&attribute, rest.data(), sizeof(attribute));
      if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > rest.size()) {
        return;
      }
      attributes[attribute.rta_type] = rest.first(attribute.rta_len).subspan(RTA_LENGTH(0));
      rest = rest.subspan(std::min<size_t>(RTA_ALIGN(attribute.rta_len), rest.size()));
    }
  }
  Header header = {};
  LinkAttributes attributes;
};

// Calls `take` with each message of the answer to a request for all entries of a table.
void AskForAll(uint16_t table, absl::FunctionRef<void(const nlmsghdr&)> take) {
  const UniqueFd link(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  struct {
    nlmsghdr header;
    rtgenmsg body;
  } question = {};
  question.header.nlmsg_len = NLMSG_LENGTH(sizeof(question.body));
  question.header.nlmsg_type = table;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  ssize_t length = send(link.get(), &question, question.header.nlmsg_len, 0);
  const auto answer = std::make_unique<std::array<nlmsghdr, kAnswerBytes / sizeof(nlmsghdr)>>();
  while (length > 0) {
    length = recv(link.get(), answer->data(), kAnswerBytes, 0);
    auto rest = static_cast<uint32_t>(std::max<ssize_t>(length, 0));
    for (const nlmsghdr* message = answer->data(); NLMSG_OK(message, rest); message = NLMSG_NEXT(message, rest)) {
      if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) {
        return;
      }
      take(*message);
    }
  }
}

std::set<uint32_t> IndexesOf(std::span<const uint8_t> mac) {
  std::set<uint32_t> indexes;
  AskForAll(RTM_GETLINK, [&](const nlmsghdr& raw) {
    LinkMessage<ifinfomsg> message(raw);
    if (std::ranges::equal(message.attributes[IFLA_ADDRESS], mac)) {
      indexes.insert(static_cast<uint32_t>(message.header.ifi_index));
    }
  });
  return indexes;
}

// This end's, where a link has two addresses.
std::span<const uint8_t> OwnAddress(LinkAttributes& attributes) {
  return attributes.contains(IFA_LOCAL) ? attributes[IFA_LOCAL] : attributes[IFA_ADDRESS];
}

}  // namespace

std::vector<IpAddress> DeviceAddresses(std::span<const uint8_t> mac) {
  const std::set<uint32_t> indexes = IndexesOf(mac);
  std::vector<IpAddress> addresses;
  AskForAll(RTM_GETADDR, [&](const nlmsghdr& raw) {
    LinkMessage<ifaddrmsg> message(raw);
    const std::span<const uint8_t> own = OwnAddress(message.attributes);
    // An IPv4 address is mapped.
    std::array<uint8_t, sizeof(in6_addr)> bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (indexes.contains(message.header.ifa_index) && message.header.ifa_scope != RT_SCOPE_LINK &&
        (own.size() == sizeof(in_addr) || own.size() == bytes.size())) {
      std::ranges::copy(own, bytes.end() - static_cast<std::ptrdiff_t>(own.size()));
      addresses.emplace_back(bytes);
    }
  });
  return addresses;
}

}  // namespace rnicd::provider
