// Connections within the model: by the port of a listener.

#include <algorithm>

#include "tests/networkdirect_model/model.h"

namespace rnicd::provider::model {
namespace {

uint16_t PortOf(const sockaddr* address) { return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port); }

bool IsOfCard(const sockaddr* address, ULONG bytes, UINT64 card) {
  const sockaddr_in expected = AddressOfCard(card, 0);
  return bytes >= sizeof(sockaddr_in) && address->sa_family == AF_INET &&
         reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == expected.sin_addr.s_addr;
}

}  // namespace

// --- connectors ---

Connector::Connector(std::shared_ptr<Model> model, DomainPointer connector_domain, HANDLE file)
    : OverlappedObject(std::move(model), file, connector_domain->card), domain(std::move(connector_domain)) {}

Connector::~Connector() {
  LosePartner(kNdConnectionAborted);
  if (pair != nullptr) {
    pair->Disconnect();
    pair->connector = nullptr;
  }
}

// This side gives up before the connection is made.
void Connector::LosePartner(HRESULT status) {
  for (const auto& [port, listener] : model().listeners) {
    listener->Forget(*this);
  }
  if (Connector* const other = std::exchange(partner, nullptr); other != nullptr) {
    other->partner = nullptr;
    other->calls.End(other->connecting, status);
  }
}

HRESULT Connector::Bind(const sockaddr* address, ULONG bytes) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Connector::Bind", domain->card); NdFailed(result)) {
    return result;
  }
  bound = IsOfCard(address, bytes, domain->card);
  return bound ? kNdSuccess : kNdInvalidAddress;
}

HRESULT Connector::Connect(IUnknown* queue_pair, const sockaddr* address, ULONG /*bytes*/, ULONG /*inbound*/,
                           ULONG /*outbound*/, const void* data, ULONG data_bytes, OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Connector::Connect", domain->card); NdFailed(result)) {
    return result;
  }
  auto* const own = static_cast<QueuePair*>(queue_pair);
  if (!bound || own->domain != domain) {
    return kNdInvalidDeviceState;
  }
  if (own->was_connected || own->in_error) {
    return kNdConnectionActive;
  }
  const auto found = model().listeners.find(PortOf(address));
  if (found == model().listeners.end()) {
    return calls.Finish(call, kNdConnectionRefused);
  }
  pair = own;
  pair->connector = this;
  const auto* const bytes = static_cast<const std::byte*>(data);
  private_data.assign(bytes, bytes + data_bytes);
  connecting = call;
  const HRESULT result = calls.Wait(call);
  found->second->Ask(*this);
  return result;
}

HRESULT Connector::Accept(IUnknown* queue_pair, ULONG /*inbound*/, ULONG /*outbound*/, const void* /*data*/,
                          ULONG /*data_bytes*/, OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Connector::Accept", domain->card); NdFailed(result)) {
    return result;
  }
  auto* const own = static_cast<QueuePair*>(queue_pair);
  if (partner == nullptr) {
    return calls.Finish(call, kNdConnectionAborted);
  }
  if (own->domain != domain || own->was_connected || own->in_error) {
    return kNdConnectionActive;
  }
  pair = own;
  pair->connector = this;
  accepted = true;
  connecting = call;
  const HRESULT result = calls.Wait(call);
  partner->calls.End(partner->connecting, kNdSuccess);
  return result;
}

HRESULT Connector::CompleteConnect(OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Connector::CompleteConnect", domain->card); NdFailed(result)) {
    return result;
  }
  if (partner == nullptr || !partner->accepted || pair == nullptr || partner->pair == nullptr || pair->in_error ||
      partner->pair->in_error) {
    LosePartner(kNdConnectionAborted);
    return calls.Finish(call, kNdConnectionAborted);
  }
  Connector* const other = std::exchange(partner, nullptr);
  other->partner = nullptr;
  pair->peer = other->pair;
  other->pair->peer = pair;
  pair->was_connected = other->pair->was_connected = true;
  other->calls.End(other->connecting, kNdSuccess);
  model().Wake();
  return calls.Finish(call, kNdSuccess);
}

HRESULT Connector::Reject(const void* /*data*/, ULONG /*data_bytes*/) {
  MutexLock lock(model().mutex);
  LosePartner(kNdConnectionRefused);
  return kNdSuccess;
}

// Pads, as cards do.
HRESULT Connector::GetPrivateData(void* data, ULONG* bytes) {
  constexpr ULONG kPadded = 56;
  MutexLock lock(model().mutex);
  if (*bytes < kPadded) {
    *bytes = kPadded;
    return kNdBufferOverflow;
  }
  std::memset(data, 0, kPadded);
  std::copy_n(private_data.begin(), std::min<size_t>(private_data.size(), kPadded), static_cast<std::byte*>(data));
  *bytes = kPadded;
  return kNdSuccess;
}

HRESULT Connector::NotifyDisconnect(OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Connector::NotifyDisconnect", domain->card); NdFailed(result)) {
    return result;
  }
  if (pair == nullptr || pair->peer == nullptr) {
    return calls.Finish(call, kNdSuccess);
  }
  disconnect = call;
  return calls.Wait(call);
}

HRESULT Connector::Disconnect(OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Connector::Disconnect", domain->card); NdFailed(result)) {
    return result;
  }
  if (pair == nullptr || pair->peer == nullptr) {
    return calls.Finish(call, kNdConnectionInvalid);
  }
  pair->Disconnect();
  return calls.Finish(call, kNdSuccess);
}

HRESULT Connector::CancelOverlappedRequests() {
  MutexLock lock(model().mutex);
  LosePartner(kNdConnectionAborted);
  calls.EndAll(kNdCanceled);
  return kNdSuccess;
}

void Connector::OnDisconnected() {
  if (disconnect != nullptr) {
    calls.End(std::exchange(disconnect, nullptr), kNdSuccess);
  }
}

// --- listeners ---

Listener::Listener(std::shared_ptr<Model> model, DomainPointer listener_domain, HANDLE file)
    : OverlappedObject(std::move(model), file, listener_domain->card), domain(std::move(listener_domain)) {}

Listener::~Listener() {
  model().listeners.erase(port_);
  for (Connector* const active : std::exchange(asking_, {})) {
    active->calls.End(active->connecting, kNdConnectionRefused);
  }
}

HRESULT Listener::Bind(const sockaddr* address, ULONG bytes) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Listener::Bind", domain->card); NdFailed(result)) {
    return result;
  }
  if (!IsOfCard(address, bytes, domain->card)) {
    return kNdInvalidAddress;
  }
  port_ = PortOf(address);
  while (port_ == 0 || model().listeners.contains(port_)) {
    port_ = model().next_port = model().next_port == UINT16_MAX ? 49152 : model().next_port + 1;
  }
  return kNdSuccess;
}

HRESULT Listener::Listen(ULONG /*backlog*/) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Listener::Listen", domain->card); NdFailed(result)) {
    return result;
  }
  model().listeners[port_] = this;
  return kNdSuccess;
}

HRESULT Listener::GetLocalAddress(sockaddr* address, ULONG* bytes) {
  MutexLock lock(model().mutex);
  const sockaddr_in own = AddressOfCard(domain->card, port_);
  if (*bytes < sizeof(own)) {
    *bytes = sizeof(own);
    return kNdBufferOverflow;
  }
  std::memcpy(address, &own, sizeof(own));
  *bytes = sizeof(own);
  return kNdSuccess;
}

void Listener::Give(Connector& active, Connector& passive) {
  active.partner = &passive;
  passive.partner = &active;
  passive.private_data = active.private_data;
}

HRESULT Listener::GetConnectionRequest(IUnknown* connector, OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2Listener::GetConnectionRequest", domain->card); NdFailed(result)) {
    return result;
  }
  auto* const passive = static_cast<Connector*>(connector);
  if (!asking_.empty()) {
    Give(*asking_.front(), *passive);
    asking_.pop_front();
    return calls.Finish(call, kNdSuccess);
  }
  takers_.push_back({.connector = passive, .call = call});
  return calls.Wait(call);
}

void Listener::Ask(Connector& active) {
  while (!takers_.empty()) {
    const Taker taker = takers_.front();
    takers_.pop_front();
    if (calls.IsWaiting(taker.call)) {
      Give(active, *taker.connector);
      calls.End(taker.call, kNdSuccess);
      return;
    }
  }
  asking_.push_back(&active);
}

}  // namespace rnicd::provider::model
