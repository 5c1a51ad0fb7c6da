#include "provider/verbs/fake/rdma_cm_fake.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "provider/verbs/fake/verbs_fake.h"

namespace rnicd::provider {
namespace {

constexpr size_t kCallerBytes = 56;
constexpr size_t kCalleeBytes = 196;
constexpr size_t kRejectionBytes = 148;
// IB_CM_REJ_INVALID_SERVICE_ID and _CONSUMER_DEFINED.
constexpr int kNobodyListens = 8;
constexpr int kRejected = 28;

bool IsOfCard(const IpAddress& ip) {
  return std::ranges::any_of(FakeGids(), [&](const GidEntry& entry) {
    return std::memcmp(entry.gid.raw, ip.bytes().data(), sizeof(entry.gid.raw)) == 0;
  });
}

}  // namespace

struct FakeRdmaCm::Id {
  enum class State : uint8_t { kNew, kListening, kAsking, kRequested, kAccepting, kAnswered, kMade, kLeft, kOver };

  // The first member, so that the library's id leads to this one.
  rdma_cm_id raw = {};
  State state = State::kNew;
  NetworkAddress local;
  NetworkAddress peer;
  bool shares = false;
  uint32_t qp_num = 0;
  Id* other = nullptr;
};

FakeRdmaCm::FakeRdmaCm(bool is_iwarp)
    : is_iwarp_(is_iwarp), signal_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), channel_{signal_.get()} {}

FakeRdmaCm::~FakeRdmaCm() {
  MutexLock lock(mutex_);
  if (!ids_.empty()) {
    std::abort();
  }
}

FakeRdmaCm::Id& FakeRdmaCm::Find(rdma_cm_id* id) const {
  const auto found = std::ranges::find_if(ids_, [id](const auto& each) { return &each->raw == id; });
  if (found == ids_.end()) {
    std::abort();
  }
  return **found;
}

FakeRdmaCm::Id& FakeRdmaCm::Make(void* context) {
  Id& id = **ids_.insert(std::make_unique<Id>()).first;
  id.raw.context = context;
  return id;
}

void FakeRdmaCm::Signal() {
  const uint64_t one = 1;
  (void)!write(signal_.get(), &one, sizeof(one));
}

void FakeRdmaCm::Push(Id& id, rdma_cm_event_type type, int status) {
  Event event;
  event.raw.id = &id.raw;
  event.raw.event = type;
  event.raw.status = status;
  events_.push_back(std::move(event));
  Signal();
}

void FakeRdmaCm::Push(Id& id, rdma_cm_event_type type, const rdma_conn_param& from, size_t padded) {
  Push(id, type);
  Event& event = events_.back();
  event.data.assign(static_cast<const char*>(from.private_data), from.private_data_len);
  event.data.resize(is_iwarp_ ? event.data.size() : padded);
  event.raw.param.conn.responder_resources = from.initiator_depth;
  event.raw.param.conn.initiator_depth = from.responder_resources;
}

void FakeRdmaCm::PushRejection(Id& id, int status, std::string_view data) {
  rdma_conn_param from = {};
  from.private_data = data.data();
  from.private_data_len = static_cast<uint8_t>(data.size());
  Push(id, RDMA_CM_EVENT_REJECTED, from, kRejectionBytes);
  events_.back().raw.status = status;
}

int FakeRdmaCm::NextEvent(rdma_event_channel* /*channel*/, absl::FunctionRef<void(const rdma_cm_event&)> take) {
  Event event;
  {
    MutexLock lock(mutex_);
    uint64_t count = 0;
    (void)!read(signal_.get(), &count, sizeof(count));
    if (events_.empty()) {
      return EAGAIN;
    }
    event = std::move(events_.front());
    events_.pop_front();
    taken_ = event.raw.id;
    Signal();
  }
  event.raw.param.conn.private_data = event.data.data();
  event.raw.param.conn.private_data_len = static_cast<uint8_t>(event.data.size());
  take(event.raw);
  MutexLock lock(mutex_);
  taken_ = nullptr;
  acknowledged_.NotifyAll();
  return 0;
}

rdma_cm_id* FakeRdmaCm::CreateId(rdma_event_channel* /*channel*/, void* context) {
  MutexLock lock(mutex_);
  return &Make(context).raw;
}

int FakeRdmaCm::DestroyId(rdma_cm_id* id) {
  MutexLock lock(mutex_);
  while (taken_ == id) {
    acknowledged_.Wait(mutex_);
  }
  Id& found = Find(id);
  std::erase_if(events_, [id](const Event& event) { return event.raw.id == id; });
  if (found.other != nullptr) {
    Id& other = *std::exchange(found.other, nullptr);
    other.other = nullptr;
    if (found.state == Id::State::kMade || other.state == Id::State::kMade || other.state == Id::State::kLeft) {
      Push(other, RDMA_CM_EVENT_DISCONNECTED);
    } else {
      PushRejection(other, kRejected, {});
    }
  }
  std::erase_if(ids_, [id](const auto& each) { return &each->raw == id; });
  return 0;
}

int FakeRdmaCm::ShareAddress(rdma_cm_id* id) {
  MutexLock lock(mutex_);
  Find(id).shares = true;
  return 0;
}

int FakeRdmaCm::Bind(rdma_cm_id* id, const NetworkAddress& address) {
  MutexLock lock(mutex_);
  if (!IsOfCard(address.ip)) {
    return EADDRNOTAVAIL;
  }
  Id& found = Find(id);
  const bool taken = std::ranges::any_of(ids_, [&](const auto& each) {
    return each->local == address && each->state != Id::State::kRequested && !(each->shares && found.shares);
  });
  if (taken) {
    return EADDRINUSE;
  }
  found.local = address;
  return 0;
}

int FakeRdmaCm::Listen(rdma_cm_id* id) {
  MutexLock lock(mutex_);
  Find(id).state = Id::State::kListening;
  return 0;
}

int FakeRdmaCm::ResolveAddress(rdma_cm_id* id, const NetworkAddress& peer) {
  MutexLock lock(mutex_);
  Id& found = Find(id);
  found.peer = peer;
  const bool is_there = IsOfCard(peer.ip);
  Push(found, is_there ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR, is_there ? 0 : -ETIMEDOUT);
  return 0;
}

int FakeRdmaCm::ResolveRoute(rdma_cm_id* id) {
  MutexLock lock(mutex_);
  Push(Find(id), RDMA_CM_EVENT_ROUTE_RESOLVED);
  return 0;
}

int FakeRdmaCm::Connect(rdma_cm_id* id, rdma_conn_param& parameters) {
  MutexLock lock(mutex_);
  Id& caller = Find(id);
  caller.qp_num = parameters.qp_num;
  caller.state = Id::State::kAsking;
  const auto listener = std::ranges::find_if(
      ids_, [&](const auto& each) { return each->state == Id::State::kListening && each->local == caller.peer; });
  if (listener == ids_.end() && is_iwarp_) {
    return ECONNREFUSED;
  }
  if (listener == ids_.end()) {
    PushRejection(caller, kNobodyListens, {});
    return 0;
  }
  Id& request = Make((*listener)->raw.context);
  request.state = Id::State::kRequested;
  request.local = caller.peer;
  request.peer = caller.local;
  request.other = &caller;
  caller.other = &request;
  Push(request, RDMA_CM_EVENT_CONNECT_REQUEST, parameters, kCallerBytes);
  return 0;
}

int FakeRdmaCm::Accept(rdma_cm_id* id, rdma_conn_param& parameters) {
  MutexLock lock(mutex_);
  Id& request = Find(id);
  if (request.other == nullptr) {
    return EINVAL;
  }
  request.qp_num = parameters.qp_num;
  if (is_iwarp_) {
    request.state = request.other->state = Id::State::kMade;
    Push(*request.other, RDMA_CM_EVENT_ESTABLISHED, parameters, kCalleeBytes);
    Push(request, RDMA_CM_EVENT_ESTABLISHED);
    return 0;
  }
  request.state = Id::State::kAccepting;
  request.other->state = Id::State::kAnswered;
  Push(*request.other, RDMA_CM_EVENT_CONNECT_RESPONSE, parameters, kCalleeBytes);
  return 0;
}

int FakeRdmaCm::Reject(rdma_cm_id* id, std::string_view private_data) {
  MutexLock lock(mutex_);
  Id& found = Find(id);
  if (found.other == nullptr || found.state == Id::State::kMade) {
    return EINVAL;
  }
  Id& other = *std::exchange(found.other, nullptr);
  other.other = nullptr;
  PushRejection(other, kRejected, private_data);
  return 0;
}

int FakeRdmaCm::Establish(rdma_cm_id* id) {
  MutexLock lock(mutex_);
  Id& caller = Find(id);
  if (caller.other == nullptr || caller.state != Id::State::kAnswered) {
    return EINVAL;
  }
  caller.state = caller.other->state = Id::State::kMade;
  Push(*caller.other, RDMA_CM_EVENT_ESTABLISHED);
  return 0;
}

// The side that disconnects hears of it only when the other does, too; on iWARP both hear at once.
int FakeRdmaCm::Disconnect(rdma_cm_id* id) {
  MutexLock lock(mutex_);
  Id& found = Find(id);
  if (found.other == nullptr || (found.state != Id::State::kMade && found.state != Id::State::kLeft)) {
    return EINVAL;
  }
  Id& other = *found.other;
  if (is_iwarp_) {
    found.other = other.other = nullptr;
    Push(found, RDMA_CM_EVENT_DISCONNECTED);
    Push(other, RDMA_CM_EVENT_DISCONNECTED);
    return 0;
  }
  const bool answers = found.state == Id::State::kLeft;
  found.state = Id::State::kOver;
  if (!answers) {
    other.state = Id::State::kLeft;
  } else {
    found.other = other.other = nullptr;
  }
  Push(other, RDMA_CM_EVENT_DISCONNECTED);
  return 0;
}

int FakeRdmaCm::InitQpAttributes(rdma_cm_id* id, ibv_qp_attr& attributes) {
  MutexLock lock(mutex_);
  const Id& found = Find(id);
  if (found.other == nullptr) {
    return EINVAL;
  }
  const ibv_qp_state state = attributes.qp_state;
  attributes = {};
  attributes.qp_state = state;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = found.other->qp_num;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.sgid_index = 1;
  std::ranges::copy(found.peer.ip.bytes(), attributes.ah_attr.grh.dgid.raw);
  return 0;
}

CmCard FakeRdmaCm::CardOf(rdma_cm_id* /*id*/) { return {.card = FakeDevice().name, .port = 1}; }

NetworkAddress FakeRdmaCm::LocalAddress(rdma_cm_id* id) {
  MutexLock lock(mutex_);
  return Find(id).local;
}

NetworkAddress FakeRdmaCm::PeerAddress(rdma_cm_id* id) {
  MutexLock lock(mutex_);
  return Find(id).peer;
}

}  // namespace rnicd::provider
