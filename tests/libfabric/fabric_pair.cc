#include "tests/libfabric/fabric_pair.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

namespace rnicd::fi {
namespace {

const int kWaitMs = static_cast<int>(test::kTimeout.count());

// A reference, because the call that makes the object is an argument, too.
template <typename Fid>
Owned<Fid> Checked(int result, Fid* const& made) {
  EXPECT_EQ(result, 0) << fi_strerror(-result);
  return Owned<Fid>(result == 0 ? made : nullptr);
}

Info Offered(const fi_info* hints) {
  fi_info* info = nullptr;
  const int result = Provider().getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info);
  EXPECT_EQ(result, 0) << fi_strerror(-result);
  return Info(info);
}

}  // namespace

Pages::Pages(size_t bytes, unsigned char seed) : size_((bytes + 4095) / 4096 * 4096) {
  data_ = static_cast<unsigned char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::iota(data_, data_ + size_, seed);
}

Pages::~Pages() { munmap(data_, size_); }

bool Pages::Equals(const Pages& other, size_t bytes) const { return std::memcmp(data_, other.data_, bytes) == 0; }

Info Hints() {
  Info hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_MSG;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_RX_CQ_DATA | FI_CONTEXT;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->tx_attr->size = 64;
  hints->rx_attr->size = 64;
  return hints;
}

LibfabricTest::LibfabricTest(const std::vector<std::string>& flags) : DaemonTest(flags) {
  setenv("RNICD_SOCKET_DIR", daemon().socket_dir().c_str(), 1);
  setenv("FI_RNICD_INTERFACE", "lo", 1);
}

Program::Program(const fi_info* hints, fi_wait_obj wait) : info(Offered(hints != nullptr ? hints : Hints().get())) {
  fid_fabric* made_fabric = nullptr;
  fabric = Checked(Provider().fabric(info->fabric_attr, &made_fabric, nullptr), made_fabric);
  fid_domain* made_domain = nullptr;
  domain = Checked(fi_domain(fabric.get(), info.get(), &made_domain, nullptr), made_domain);
  fi_eq_attr events_wanted = {};
  events_wanted.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* made_events = nullptr;
  events = Checked(fi_eq_open(fabric.get(), &events_wanted, &made_events, nullptr), made_events);
  fi_cq_attr completions_wanted = {};
  completions_wanted.format = FI_CQ_FORMAT_DATA;
  completions_wanted.wait_obj = wait;
  fid_cq* made_completions = nullptr;
  completions = Checked(fi_cq_open(domain.get(), &completions_wanted, &made_completions, nullptr), made_completions);
}

Owned<fid_mr> Program::Register(const void* buffer, size_t bytes, uint64_t access) const {
  fid_mr* region = nullptr;
  const int result = fi_mr_reg(domain.get(), buffer, bytes, access, 0, 0, 0, &region, nullptr);
  return Checked(result, region);
}

uint32_t Program::NextEvent(std::vector<std::byte>* entry) const {
  std::vector<std::byte> room(4096);
  uint32_t event = ~0U;
  const ssize_t read = fi_eq_sread(events.get(), &event, room.data(), room.size(), kWaitMs, 0);
  EXPECT_GT(read, 0) << fi_strerror(static_cast<int>(-read));
  if (entry != nullptr && read > 0) {
    room.resize(read);
    *entry = room;
  }
  return event;
}

fi_eq_err_entry Program::NextEventError() const {
  uint32_t event = 0;
  std::vector<std::byte> room(4096);
  EXPECT_EQ(fi_eq_sread(events.get(), &event, room.data(), room.size(), kWaitMs, 0), -FI_EAVAIL);
  fi_eq_err_entry error = {};
  EXPECT_GT(fi_eq_readerr(events.get(), &error, 0), 0);
  return error;
}

fi_cq_data_entry Program::NextCompletion() const {
  fi_cq_data_entry entry = {};
  const ssize_t read = fi_cq_sread(completions.get(), &entry, 1, nullptr, kWaitMs);
  EXPECT_EQ(read, 1) << fi_strerror(static_cast<int>(-read));
  return entry;
}

fi_cq_err_entry Program::NextError() const {
  fi_cq_data_entry entry = {};
  const ssize_t read = fi_cq_sread(completions.get(), &entry, 1, nullptr, kWaitMs);
  EXPECT_EQ(read, -FI_EAVAIL);
  fi_cq_err_entry error = {};
  EXPECT_EQ(fi_cq_readerr(completions.get(), &error, 0), 1);
  return error;
}

Owned<fid_ep> Program::MakeEndpoint(fi_info* of, uint64_t completion_flags) const {
  fid_ep* made = nullptr;
  Owned<fid_ep> endpoint = Checked(fi_endpoint(domain.get(), of, &made, nullptr), made);
  EXPECT_EQ(fi_ep_bind(endpoint.get(), &events->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(endpoint.get(), &completions->fid, FI_TRANSMIT | FI_RECV | completion_flags), 0);
  EXPECT_EQ(fi_enable(endpoint.get()), 0);
  return endpoint;
}

Pair::Pair(const fi_info* hints, uint64_t completion_flags) : server(hints), client(hints) {
  fid_pep* made = nullptr;
  const Owned<fid_pep> listener = Checked(fi_passive_ep(server.fabric.get(), server.info.get(), &made, nullptr), made);
  EXPECT_EQ(fi_pep_bind(listener.get(), &server.events->fid, 0), 0);
  EXPECT_EQ(fi_listen(listener.get()), 0);
  std::vector<std::byte> address(64);
  size_t bytes = address.size();
  EXPECT_EQ(fi_getname(&listener->fid, address.data(), &bytes), 0);
  client_endpoint = client.MakeEndpoint(client.info.get(), completion_flags);
  EXPECT_EQ(fi_connect(client_endpoint.get(), address.data(), "hello", 5), 0);
  std::vector<std::byte> entry;
  EXPECT_EQ(server.NextEvent(&entry), static_cast<uint32_t>(FI_CONNREQ));
  auto* const request = reinterpret_cast<fi_eq_cm_entry*>(entry.data());
  EXPECT_EQ(std::string(reinterpret_cast<char*>(request->data), entry.size() - sizeof(*request)), "hello");
  const Info asked(request->info);
  server_endpoint = server.MakeEndpoint(asked.get(), completion_flags);
  EXPECT_EQ(fi_accept(server_endpoint.get(), "welcome", 7), 0);
  EXPECT_EQ(server.NextEvent(), static_cast<uint32_t>(FI_CONNECTED));
  EXPECT_EQ(client.NextEvent(&entry), static_cast<uint32_t>(FI_CONNECTED));
  const auto* const connected = reinterpret_cast<fi_eq_cm_entry*>(entry.data());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(connected->data), entry.size() - sizeof(*connected)), "welcome");
}

}  // namespace rnicd::fi
