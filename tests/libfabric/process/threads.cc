// Four threads that share one domain, its queues and a connection; each connects, transfers and closes endpoints.

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/libfabric/process/process.h"

namespace rnicd::fi {
namespace {

constexpr int kThreads = 4;
// Messages in one connection; receives that wait in each end.
constexpr int kMessages = 16;
constexpr size_t kMessageBytes = 8;
constexpr size_t kPage = 4096;

// One connection, of which the program has both ends.
struct Link {
  fid_ep* client = nullptr;
  std::atomic<fid_ep*> server = nullptr;
  std::atomic<int> connected = 0;
  std::atomic<int> sent = 0;
  std::atomic<int> received = 0;
};

// Context of a request. fi_context is the provider's to write to.
struct Posted {
  fi_context room = {};
  std::atomic<int>* counter = nullptr;
};

class Shared {
 public:
  Shared() {
    fi_eq_attr events = {};
    events.wait_obj = FI_WAIT_UNSPEC;
    Expect(fi_eq_open(opened_.fabric, &events, &events_, nullptr) == 0, "no event queue");
    fi_cq_attr completions = {};
    completions.format = FI_CQ_FORMAT_DATA;
    completions.wait_obj = FI_WAIT_FD;
    Expect(fi_cq_open(opened_.domain, &completions, &completions_, nullptr) == 0, "no completion queue");
    Expect(fi_passive_ep(opened_.fabric, opened_.info, &listener_, nullptr) == 0, "no passive endpoint");
    Expect(fi_pep_bind(listener_, &events_->fid, 0) == 0 && fi_listen(listener_) == 0, "nobody listens");
    size_t bytes = address_.size();
    Expect(fi_getname(&listener_->fid, address_.data(), &bytes) == 0, "no address");
    page_ = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Expect(fi_mr_reg(opened_.domain, page_, kPage, FI_SEND | FI_RECV, 0, 0, 0, &region_, nullptr) == 0, "no region");
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    for (fid* const object : {&region_->fid, &listener_->fid, &completions_->fid, &events_->fid}) {
      Expect(fi_close(object) == 0, "an object is in use");
    }
    munmap(page_, kPage);
  }

  void Connect(Link& link) {
    link.client = MakeEndpoint(opened_.info, link);
    Link* const named = &link;
    Expect(fi_connect(link.client, address_.data(), static_cast<const void*>(&named), sizeof(void*)) == 0,
           "fi_connect");
    while (link.connected != 2) {
      Progress();
    }
  }
  void Transfer(Link& link, int messages) {
    std::vector<Posted> posted(2 * static_cast<size_t>(messages));
    link.sent = 0;
    link.received = 0;
    for (int index = 0; index < messages; ++index) {
      Posted& receive = posted[2 * static_cast<size_t>(index)];
      Posted& send = posted[2 * static_cast<size_t>(index) + 1];
      receive.counter = &link.received;
      send.counter = &link.sent;
      Repeat([&] { return fi_recv(link.server, page_, kMessageBytes, fi_mr_desc(region_), 0, &receive); });
      Repeat([&] { return fi_send(link.client, page_, kMessageBytes, fi_mr_desc(region_), 0, &send); });
    }
    while (link.sent != messages || link.received != messages) {
      Progress();
    }
  }
  // From any thread, beside others at the same connection.
  void Inject(Link& link) {
    Posted receive;
    std::atomic<int> received = 0;
    receive.counter = &received;
    Repeat([&] { return fi_recv(link.server, page_, kMessageBytes, fi_mr_desc(region_), 0, &receive); });
    Repeat([&] { return fi_inject(link.client, "message", kMessageBytes, 0); });
    while (received == 0) {
      Progress();
    }
  }
  void RegisterAPage() const {
    void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fid_mr* region = nullptr;
    Expect(fi_mr_reg(opened_.domain, page, kPage, FI_REMOTE_READ, 0, 0, 0, &region, nullptr) == 0, "fi_mr_reg");
    Expect(fi_close(&region->fid) == 0, "fi_close of a region");
    munmap(page, kPage);
  }
  static void Close(Link& link) {
    Expect(fi_close(&link.client->fid) == 0 && fi_close(&link.server.load()->fid) == 0, "fi_close of an endpoint");
  }
  // Takes what one thread gets of the queues that all share.
  void Progress() {
    std::array<fi_cq_data_entry, 4> entries;
    const ssize_t count = fi_cq_read(completions_, entries.data(), entries.size());
    Expect(count > 0 || count == -FI_EAGAIN, "fi_cq_read", static_cast<size_t>(-count));
    for (ssize_t index = 0; index < count; ++index) {
      ++*static_cast<Posted*>(entries[static_cast<size_t>(index)].op_context)->counter;
    }
    ReadEvent();
    sched_yield();
  }

 private:
  template <typename Call>
  void Repeat(const Call& call) {
    ssize_t result = 0;
    while ((result = call()) == -FI_EAGAIN) {
      Progress();
    }
    Expect(result == 0, "posting", static_cast<size_t>(-result));
  }

  fid_ep* MakeEndpoint(fi_info* info, Link& link) {
    fid_ep* endpoint = nullptr;
    Expect(fi_endpoint(opened_.domain, info, &endpoint, &link) == 0, "fi_endpoint");
    Expect(fi_ep_bind(endpoint, &events_->fid, 0) == 0, "binding the event queue");
    Expect(fi_ep_bind(endpoint, &completions_->fid, FI_TRANSMIT | FI_RECV) == 0, "binding the completion queue");
    Expect(fi_enable(endpoint) == 0, "fi_enable");
    return endpoint;
  }

  void ReadEvent() {
    union {
      fi_eq_cm_entry entry;
      std::array<std::byte, 512> room;
    };
    uint32_t event = 0;
    const ssize_t bytes = fi_eq_read(events_, &event, &room, sizeof(room), 0);
    if (bytes == -FI_EAGAIN) {
      return;
    }
    Expect(bytes > 0, "fi_eq_read", static_cast<size_t>(-bytes));
    if (event == FI_CONNREQ) {
      Link* link = nullptr;
      std::memcpy(static_cast<void*>(&link), entry.data, sizeof(void*));
      link->server = MakeEndpoint(entry.info, *link);
      fi_freeinfo(entry.info);
      Expect(fi_accept(link->server, nullptr, 0) == 0, "fi_accept");
    } else if (event == FI_CONNECTED) {
      ++static_cast<Link*>(entry.fid->context)->connected;
    }
  }

  const Opened opened_;
  fid_eq* events_ = nullptr;
  fid_cq* completions_ = nullptr;
  fid_pep* listener_ = nullptr;
  std::array<std::byte, 64> address_ = {};
  void* page_ = nullptr;
  fid_mr* region_ = nullptr;
};

}  // namespace

void StressThreads(int connections) {
  Shared shared;
  Link common;
  shared.Connect(common);
  std::atomic<int> left = connections;
  {
    std::vector<std::jthread> threads;
    for (int index = 0; index < kThreads; ++index) {
      threads.emplace_back([&] {
        while (left.fetch_sub(1) > 0) {
          Link link;
          shared.Connect(link);
          shared.Transfer(link, kMessages);
          shared.Inject(common);
          shared.RegisterAPage();
          Shared::Close(link);
        }
      });
    }
  }
  Shared::Close(common);
}

}  // namespace rnicd::fi
