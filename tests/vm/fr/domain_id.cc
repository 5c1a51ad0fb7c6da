#include "tests/vm/fr/domain_id.h"

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>

namespace {

constexpr size_t kReplyBytes = 65536;

struct Request {
  nlmsghdr header;
  nlattr attribute;
  uint32_t device_index;
};

// Calls visit(type, payload, length) for each attribute in the range.
template <typename Visit>
void ForEachAttribute(const char* at, size_t length, const Visit& visit) {
  while (length >= NLA_HDRLEN) {
    nlattr attribute;
    std::memcpy(&attribute, at, sizeof(attribute));
    if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > length) return;
    visit(attribute.nla_type & NLA_TYPE_MASK, at + NLA_HDRLEN, attribute.nla_len - NLA_HDRLEN);
    const size_t step = std::min<size_t>(length, NLA_ALIGN(attribute.nla_len));
    at += step;
    length -= step;
  }
}

uint32_t Number(const char* payload) {
  uint32_t number = 0;
  std::memcpy(&number, payload, sizeof(number));
  return number;
}

void AddDomain(const char* entry, size_t length, std::vector<uint32_t>& domains) {
  std::optional<uint32_t> pid;
  std::optional<uint32_t> number;
  ForEachAttribute(entry, length, [&](int type, const char* payload, size_t) {
    if (type == RDMA_NLDEV_ATTR_RES_PID) pid = Number(payload);
    if (type == RDMA_NLDEV_ATTR_RES_PDN) number = Number(payload);
  });
  if (number && pid == static_cast<uint32_t>(getpid())) domains.push_back(*number);
}

// Whether another reply follows.
bool AddDomains(const char* reply, size_t length, std::vector<uint32_t>& domains) {
  while (length >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, reply, sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > length) return false;
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) return false;
    ForEachAttribute(
        reply + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN, [&](int type, const char* table, size_t all) {
          if (type != RDMA_NLDEV_ATTR_RES_PD) return;
          ForEachAttribute(table, all, [&](int, const char* entry, size_t bytes) { AddDomain(entry, bytes, domains); });
        });
    const size_t step = std::min<size_t>(length, NLMSG_ALIGN(header.nlmsg_len));
    reply += step;
    length -= step;
  }
  return true;
}

}  // namespace

std::vector<uint32_t> DomainsOfThisProcess(uint32_t device_index) {
  std::vector<uint32_t> domains;
  const int link = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  Request request = {};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_PD_GET);
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP;
  request.attribute = {.nla_len = NLA_HDRLEN + sizeof(uint32_t), .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX};
  request.device_index = device_index;
  if (send(link, &request, sizeof(request), 0) == static_cast<ssize_t>(sizeof(request))) {
    std::vector<char> reply(kReplyBytes);
    ssize_t length = recv(link, reply.data(), reply.size(), 0);
    while (length > 0 && AddDomains(reply.data(), static_cast<size_t>(length), domains)) {
      length = recv(link, reply.data(), reply.size(), 0);
    }
  }
  close(link);
  return domains;
}
