#include "provider/verbs/card/domain_numbers.h"

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <span>

#include "base/files/unique_fd.h"

namespace rnicd::provider {
namespace {

constexpr size_t kReplyBytes = 65536;

struct Question {
  nlmsghdr header;
  nlattr attribute;
  uint32_t device_index;
};

template <typename T>
T Read(std::span<const char> bytes) {
  T value = {};
  std::memcpy(&value, bytes.data(), std::min(sizeof(value), bytes.size()));
  return value;
}

std::span<const char> Skip(std::span<const char> bytes, size_t count) {
  return bytes.subspan(std::min(bytes.size(), count));
}

// Calls visit(type, payload) for each attribute.
template <typename Visit>
void ForEachAttribute(std::span<const char> bytes, const Visit& visit) {
  while (bytes.size() >= NLA_HDRLEN) {
    const auto attribute = Read<nlattr>(bytes);
    if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > bytes.size()) {
      return;
    }
    visit(attribute.nla_type & NLA_TYPE_MASK, bytes.first(attribute.nla_len).subspan(NLA_HDRLEN));
    bytes = Skip(bytes, NLA_ALIGN(attribute.nla_len));
  }
}

void AddDomain(std::span<const char> entry, std::vector<uint32_t>& numbers) {
  // The kernel's own have a name instead.
  bool of_a_process = false;
  std::optional<uint32_t> number;
  ForEachAttribute(entry, [&](int type, std::span<const char> payload) {
    of_a_process = of_a_process || type == RDMA_NLDEV_ATTR_RES_PID;
    if (type == RDMA_NLDEV_ATTR_RES_PDN) {
      number = Read<uint32_t>(payload);
    }
  });
  if (number.has_value() && of_a_process) {
    numbers.push_back(*number);
  }
}

// True if another reply follows.
bool AddDomains(std::span<const char> reply, std::vector<uint32_t>& numbers) {
  while (reply.size() >= sizeof(nlmsghdr)) {
    const auto header = Read<nlmsghdr>(reply);
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > reply.size() || header.nlmsg_type == NLMSG_DONE ||
        header.nlmsg_type == NLMSG_ERROR) {
      return false;
    }
    ForEachAttribute(reply.first(header.nlmsg_len).subspan(NLMSG_HDRLEN), [&](int type, std::span<const char> table) {
      if (type == RDMA_NLDEV_ATTR_RES_PD) {
        ForEachAttribute(table, [&](int, std::span<const char> entry) { AddDomain(entry, numbers); });
      }
    });
    reply = Skip(reply, NLMSG_ALIGN(header.nlmsg_len));
  }
  return true;
}

}  // namespace

std::vector<uint32_t> DomainNumbers(uint32_t device_index) {
  std::vector<uint32_t> numbers;
  const UniqueFd link(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
  Question question = {};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_PD_GET);
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP;
  question.attribute = {.nla_len = NLA_HDRLEN + sizeof(uint32_t), .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX};
  question.device_index = device_index;
  if (send(link.get(), &question, sizeof(question), 0) != static_cast<ssize_t>(sizeof(question))) {
    return numbers;
  }
  std::vector<char> reply(kReplyBytes);
  bool more = true;
  while (more) {
    const ssize_t length = recv(link.get(), reply.data(), reply.size(), 0);
    more = length > 0 && AddDomains(std::span(reply).first(static_cast<size_t>(length)), numbers);
  }
  std::ranges::sort(numbers, std::greater<>());
  return numbers;
}

}  // namespace rnicd::provider
