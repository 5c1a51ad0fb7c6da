#include "client/libfabric/connection/connection_fixture.h"

#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/waiting_fixture.h"
#include "client/libfabric/connection/passive_endpoint.h"
#include "client/libfabric/connection/rendezvous.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

constexpr int kTimeoutMs = 20'000;  // only a failing test waits this long

}  // namespace

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

sockaddr_storage Loopback(uint16_t port) {
  sockaddr_storage address = {};
  auto& in = reinterpret_cast<sockaddr_in&>(address);
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in.sin_port = htons(port);
  return address;
}

Queue::Queue(fi_wait_obj wait, uint64_t flags) {
  fid_fabric fabric = {};
  fabric.api_version = FI_VERSION(1, 17);
  fi_eq_attr attr = {};
  attr.wait_obj = wait;
  attr.flags = flags;
  EXPECT_EQ(EventQueue::Open(&fabric, &attr, &eq, this), 0);
}

Queue::~Queue() { EXPECT_EQ(fi_close(&eq->fid), 0); }

Seen Queue::Next() {
  std::array<std::byte, 1024> buffer;
  Seen seen;
  seen.result = fi_eq_sread(eq, &seen.event, buffer.data(), buffer.size(), kTimeoutMs, 0);
  return Finish(std::move(seen), buffer);
}

Seen Queue::Read() {
  std::array<std::byte, 1024> buffer;
  Seen seen;
  seen.result = fi_eq_read(eq, &seen.event, buffer.data(), buffer.size(), 0);
  return Finish(std::move(seen), buffer);
}

Seen Queue::Finish(Seen seen, std::span<const std::byte> buffer) const {
  if (seen.result == -FI_EAVAIL) {
    fi_eq_err_entry error = {};
    EXPECT_EQ(fi_eq_readerr(eq, &error, 0), static_cast<ssize_t>(sizeof(error)));
    seen.error = error.err;
    seen.of = error.fid;
    seen.data = TextOf({static_cast<const std::byte*>(error.err_data), error.err_data_size});
  } else if (seen.result >= static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) {
    const auto& entry = *reinterpret_cast<const fi_eq_cm_entry*>(buffer.data());
    seen.of = entry.fid;
    seen.info.reset(entry.info);
    seen.data = TextOf(buffer.subspan(sizeof(entry), static_cast<size_t>(seen.result) - sizeof(entry)));
  }
  return seen;
}

bool Queue::Readable() const {
  pollfd descriptor = {.fd = -1, .events = POLLIN, .revents = 0};
  EXPECT_EQ(fi_control(&eq->fid, FI_GETWAIT, &descriptor.fd), 0);
  return poll(&descriptor, 1, 0) == 1;
}

Seen Next(Queue& queue, const std::vector<Queue*>& others) {
  Seen seen;
  EXPECT_TRUE(Eventually([&] {
    for (Queue* other : others) {
      (**other).Progress();
    }
    seen = queue.Read();
    return seen.result != -FI_EAGAIN;
  }));
  return seen;
}

Listening::Listening(Queue& queue) {
  fi_info* info = fi_allocinfo();
  info->addr_format = FI_SOCKADDR_IN;
  info->ep_attr->type = FI_EP_MSG;
  const sockaddr_storage any_port = Loopback(0);
  info->src_addrlen = AddressBytes(any_port);
  info->src_addr = std::malloc(info->src_addrlen);
  std::memcpy(info->src_addr, &any_port, info->src_addrlen);
  EXPECT_EQ(OpenPassiveEndpoint(nullptr, info, &pep, this), 0);
  fi_freeinfo(info);
  EXPECT_EQ(fi_pep_bind(pep, &queue.eq->fid, 0), 0);
  EXPECT_EQ(fi_listen(pep), 0);
  size_t bytes = sizeof(address_);
  EXPECT_EQ(fi_getname(&pep->fid, &address_, &bytes), 0);
  EXPECT_NE(PortOf(address_), 0);
}

Listening::~Listening() { Close(); }

void Listening::Close() {
  if (pep != nullptr) {
    EXPECT_EQ(fi_close(&pep->fid), 0);
    pep = nullptr;
  }
}

FolderOfSockets::FolderOfSockets() {
  std::string path = std::filesystem::temp_directory_path() / "rnicd-fi-XXXXXX";
  path_ = mkdtemp(path.data());
  setenv("FI_RNICD_SOCKET_DIR", path_.c_str(), 1);
}

FolderOfSockets::~FolderOfSockets() {
  unsetenv("FI_RNICD_SOCKET_DIR");
  std::filesystem::remove_all(path_);
}

UniqueFd RawPeer(const sockaddr_storage& address) {
  Stream stream;
  EXPECT_EQ(BeginConnect(address, {}, &stream), 0);
  pollfd descriptor = {.fd = stream.socket.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(poll(&descriptor, 1, kTimeoutMs), 1);
  return std::move(stream.socket);
}

bool ClosedByPeer(const UniqueFd& socket, Queue& progress) {
  return Eventually([&] {
    (*progress).Progress();
    char byte = 0;
    const ssize_t result = recv(socket.get(), &byte, 1, MSG_DONTWAIT);
    return result == 0 || (result < 0 && errno != EAGAIN);
  });
}

}  // namespace rnicd::fi
