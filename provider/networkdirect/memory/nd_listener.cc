#include "provider/networkdirect/memory/nd_listener.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "provider/networkdirect/card/nd_status.h"
#include "provider/networkdirect/memory/nd_domain.h"

namespace rnicd::provider {
namespace {

constexpr ULONG kBacklog = 128;
// More than any card carries with a request.
constexpr size_t kPrivateBytes = 512;

// A request of a client that gave up, or was not for this listener.
bool ConcernsOneRequest(HRESULT result) {
  return result == kNdConnectionAborted || result == kNdConnectionInvalid || result == kNdConnectionRefused ||
         result == kNdIoTimeout;
}

}  // namespace

absl::StatusOr<std::shared_ptr<NdListener>> NdListener::Open(CompletionLoop& loop, std::shared_ptr<NdOpening> opening,
                                                             const NdAddress& address) {
  std::shared_ptr<NdListener> listener(new NdListener(loop, std::move(opening)));
  RNICD_RETURN_IF_ERROR(listener->Listen(address));
  RNICD_ASSIGN_OR_RETURN(const ComPtr<IND2Connector> connector, listener->NewConnector());
  listener->AwaitRequest(connector);
  return listener;
}

absl::Status NdListener::Listen(const NdAddress& address) {
  HRESULT result = opening_->adapter().CreateListener(kIidNd2Listener, opening_->events(), listener_.out());
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Adapter::CreateListener");
  }
  const NdAddress any_port = address.WithoutPort();
  result = listener_->Bind(any_port.get(), any_port.bytes());
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Listener::Bind");
  }
  result = listener_->Listen(kBacklog);
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Listener::Listen");
  }
  result = listener_->GetLocalAddress(address_.out(), address_.out_bytes());
  return NdFailed(result) ? NdStatus(result, "IND2Listener::GetLocalAddress") : absl::OkStatus();
}

absl::StatusOr<ComPtr<IND2Connector>> NdListener::NewConnector() {
  ComPtr<IND2Connector> connector;
  const HRESULT result = opening_->adapter().CreateConnector(kIidNd2Connector, opening_->events(), connector.out());
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Adapter::CreateConnector");
  }
  return connector;
}

void NdListener::Close() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) {
      return;
    }
  }
  listener_->CancelOverlappedRequests();
}

bool NdListener::broken() const {
  MutexLock lock(mutex_);
  return closed_;
}

void NdListener::Expect(uint64_t ticket, OnRequest on_request) {
  MutexLock lock(mutex_);
  expected_[ticket] = std::move(on_request);
}

void NdListener::Forget(uint64_t ticket) {
  MutexLock lock(mutex_);
  expected_.erase(ticket);
}

void NdListener::AwaitRequest(const ComPtr<IND2Connector>& connector) {
  loop_.Start(
      listener_, opening_,
      [this, &connector](OVERLAPPED* call) { return listener_->GetConnectionRequest(connector.get(), call); },
      [self = shared_from_this(), connector](HRESULT result) { self->OnCompleted(result, connector); });
}

void NdListener::OnCompleted(HRESULT result, const ComPtr<IND2Connector>& connector) {
  if (!NdFailed(result)) {
    Admit(connector);
  }
  {
    MutexLock lock(mutex_);
    closed_ = closed_ || (NdFailed(result) && !ConcernsOneRequest(result));
    if (closed_) {
      return;
    }
  }
  const absl::StatusOr<ComPtr<IND2Connector>> next = NewConnector();
  MutexLock lock(mutex_);
  closed_ = closed_ || !next.ok();
  if (!closed_) {
    // With the lock, so that Close cancels either this call or the next.
    AwaitRequest(*next);
  }
}

void NdListener::Admit(const ComPtr<IND2Connector>& connector) {
  // Some cards pad what the peer sent.
  std::array<std::byte, kPrivateBytes> data = {};
  auto bytes = static_cast<ULONG>(data.size());
  const HRESULT result = connector->GetPrivateData(data.data(), &bytes);
  OnRequest on_request;
  if (!NdFailed(result) && bytes >= sizeof(uint64_t)) {
    uint64_t ticket = 0;
    std::memcpy(&ticket, data.data(), sizeof(ticket));
    MutexLock lock(mutex_);
    const auto found = expected_.find(ticket);
    if (found != expected_.end()) {
      on_request = std::move(found->second);
      expected_.erase(found);
    }
  }
  if (on_request) {
    on_request(connector);
  } else {
    connector->Reject(nullptr, 0);
  }
}

}  // namespace rnicd::provider
