#include "provider/networkdirect/queue/nd_link.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "provider/networkdirect/card/nd_status.h"

namespace rnicd::provider {
namespace {

// An entry of a client becomes several where its memory lies in several pieces.
constexpr uint32_t kEntriesWanted = 16;

uint32_t AtLeastOne(uint32_t value) { return std::max(value, 1U); }

// Entries of a queue pair, for a card that takes so many and an owner that wants so many.
uint32_t MostEntries(uint32_t card, uint32_t owner) {
  return std::min(AtLeastOne(card), std::max(owner, kEntriesWanted));
}

}  // namespace

absl::StatusOr<std::shared_ptr<NdLink>> NdLink::Open(std::shared_ptr<NdDomain> domain, const QueuePairLimits& limits) {
  const NdkAdapterInfo& info = domain->device().info();
  const uint32_t max_entries = MostEntries(info.max_initiator_request_sge, limits.initiator_entries);
  const uint32_t max_receive_entries = MostEntries(info.max_receive_request_sge, limits.receive_entries);
  std::shared_ptr<NdLink> link(new NdLink(std::move(domain), max_entries, max_receive_entries));
  RNICD_RETURN_IF_ERROR(link->Create(limits));
  return link;
}

absl::Status NdLink::Create(const QueuePairLimits& limits) {
  NdOpening& opening = *domain_->opening();
  NdDevice& device = domain_->device();
  const uint32_t receives = AtLeastOne(limits.receive_depth);
  const uint32_t initiators = AtLeastOne(limits.initiator_depth);
  MutexLock lock(mutex_);
  HRESULT result = device.Observe(opening.adapter().CreateCompletionQueue(
      kIidNd2CompletionQueue, opening.events(), receives + initiators, /*group=*/0, /*affinity=*/0, results_.out()));
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Adapter::CreateCompletionQueue");
  }
  result =
      device.Observe(opening.adapter().CreateQueuePair(kIidNd2QueuePair, results_.get(), results_.get(),
                                                       /*context=*/nullptr, receives, initiators, max_receive_entries_,
                                                       max_entries_, limits.inline_bytes, queue_pair_.out()));
  return NdFailed(result) ? NdStatus(result, "IND2Adapter::CreateQueuePair") : absl::OkStatus();
}

void NdLink::ListenTo(const std::weak_ptr<Sink>& sink) {
  {
    MutexLock lock(mutex_);
    sink_ = sink;
  }
  Arm();
}

std::shared_ptr<NdLink::Sink> NdLink::LockSink() const {
  MutexLock lock(mutex_);
  return sink_.lock();
}

ComPtr<IND2QueuePair> NdLink::queue_pair() const {
  MutexLock lock(mutex_);
  return queue_pair_;
}

NdLink::State NdLink::state() const {
  MutexLock lock(mutex_);
  return state_;
}

// --- results ---

size_t NdLink::Poll(std::span<ND2_RESULT> results) {
  ComPtr<IND2CompletionQueue> queue;
  {
    MutexLock lock(mutex_);
    queue = results_;
  }
  return queue ? queue->GetResults(results.data(), static_cast<ULONG>(results.size())) : 0;
}

void NdLink::Arm() {
  MutexLock lock(mutex_);
  if (closed_) {
    return;
  }
  // With the lock, so that Close finds the call.
  const ComPtr<IND2CompletionQueue> queue = results_;
  domain_->node().events.Start(
      queue, domain_->opening(), [&queue](OVERLAPPED* call) { return queue->Notify(kNdNotifyAny, call); },
      [weak = weak_from_this()](HRESULT result) {
        if (const std::shared_ptr<NdLink> link = weak.lock(); link != nullptr) {
          link->OnNotified(result);
        }
      });
}

void NdLink::OnNotified(HRESULT result) {
  const std::shared_ptr<Sink> sink = LockSink();
  if (sink == nullptr) {
    return;
  }
  sink->OnResults(*this);
  if (!NdFailed(domain_->device().Observe(result))) {
    Arm();
  } else if (result != kNdCanceled) {
    sink->OnCardFailed();
  }
}

// --- connecting ---

absl::StatusOr<ComPtr<IND2Connector>> NdLink::NewConnector() {
  NdOpening& opening = *domain_->opening();
  ComPtr<IND2Connector> connector;
  HRESULT result =
      domain_->device().Observe(opening.adapter().CreateConnector(kIidNd2Connector, opening.events(), connector.out()));
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Adapter::CreateConnector");
  }
  const NdAddress local = domain_->device().address().WithoutPort();
  result = connector->Bind(local.get(), local.bytes());
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Connector::Bind");
  }
  return connector;
}

ComPtr<IND2QueuePair> NdLink::EnterConnecting(const ComPtr<IND2Connector>& connector) {
  MutexLock lock(mutex_);
  if (failed_ || closed_ || state_ != State::kIdle) {
    return {};
  }
  state_ = State::kConnecting;
  connector_ = connector;
  return queue_pair_;
}

void NdLink::Call(const ComPtr<IND2Connector>& connector, const CompletionLoop::Begin& begin,
                  void (NdLink::*done)(HRESULT)) {
  domain_->node().events.Start(connector, domain_->opening(), begin, [weak = weak_from_this(), done](HRESULT result) {
    if (const std::shared_ptr<NdLink> link = weak.lock(); link != nullptr) {
      ((*link).*done)(link->domain_->device().Observe(result));
    }
  });
}

void NdLink::Connect(const NdAddress& listener, uint64_t ticket) {
  const absl::StatusOr<ComPtr<IND2Connector>> connector = NewConnector();
  const ComPtr<IND2QueuePair> pair = connector.ok() ? EnterConnecting(*connector) : ComPtr<IND2QueuePair>();
  if (!pair) {
    EnterDown();
    return;
  }
  const NdkAdapterInfo& info = domain_->device().info();
  Call(
      *connector,
      [&](OVERLAPPED* call) {
        return (*connector)
            ->Connect(pair.get(), listener.get(), listener.bytes(), info.max_inbound_read_limit,
                      info.max_outbound_read_limit, &ticket, sizeof(ticket), call);
      },
      &NdLink::CompleteConnect);
}

void NdLink::CompleteConnect(HRESULT connected) {
  ComPtr<IND2Connector> connector;
  {
    MutexLock lock(mutex_);
    connector = connector_;
  }
  if (NdFailed(connected) || !connector) {
    EnterDown();
    return;
  }
  Call(connector, [&connector](OVERLAPPED* call) { return connector->CompleteConnect(call); }, &NdLink::EnterUp);
}

void NdLink::Accept(ComPtr<IND2Connector> connector) {
  const ComPtr<IND2QueuePair> pair = EnterConnecting(connector);
  if (!pair) {
    connector->Reject(nullptr, 0);
    EnterDown();
    return;
  }
  const NdkAdapterInfo& info = domain_->device().info();
  Call(
      connector,
      [&](OVERLAPPED* call) {
        return connector->Accept(pair.get(), info.max_inbound_read_limit, info.max_outbound_read_limit, nullptr, 0,
                                 call);
      },
      &NdLink::EnterUp);
}

void NdLink::EnterUp(HRESULT connected) {
  ComPtr<IND2Connector> connector;
  std::shared_ptr<Sink> sink;
  bool failed = false;
  {
    MutexLock lock(mutex_);
    failed = failed_;
    if (!NdFailed(connected) && state_ == State::kConnecting) {
      state_ = failed ? State::kConnecting : State::kUp;
      connector = connector_;
      sink = sink_.lock();
    }
  }
  if (connector && failed) {
    Disconnect(connector);
  }
  if (!connector || failed) {
    EnterDown();
    return;
  }
  Call(
      connector, [&connector](OVERLAPPED* call) { return connector->NotifyDisconnect(call); }, &NdLink::OnDisconnected);
  if (sink != nullptr) {
    sink->OnUp();
  }
}

void NdLink::OnDisconnected(HRESULT /*result*/) { EnterDown(); }

void NdLink::EnterDown() {
  std::shared_ptr<Sink> sink;
  bool was_up = false;
  {
    MutexLock lock(mutex_);
    was_up = state_ == State::kUp;
    if (state_ == State::kDown) {
      return;
    }
    state_ = State::kDown;
    sink = sink_.lock();
  }
  if (sink != nullptr) {
    sink->OnDown(was_up);
  }
}

// --- the end ---

void NdLink::Fail() {
  ComPtr<IND2QueuePair> pair;
  ComPtr<IND2Connector> connector;
  bool was_up = false;
  {
    MutexLock lock(mutex_);
    if (std::exchange(failed_, true)) {
      return;
    }
    pair = queue_pair_;
    connector = connector_;
    was_up = state_ == State::kUp;
  }
  if (pair) {
    pair->Flush();
  }
  if (connector && was_up) {
    Disconnect(connector);
  } else if (connector) {
    connector->CancelOverlappedRequests();
  }
}

void NdLink::Disconnect(const ComPtr<IND2Connector>& connector) {
  domain_->node().events.Start(
      connector, domain_->opening(), [&connector](OVERLAPPED* call) { return connector->Disconnect(call); },
      [](HRESULT) {});
}

void NdLink::Close() {
  ComPtr<IND2CompletionQueue> results;
  ComPtr<IND2QueuePair> pair;
  ComPtr<IND2Connector> connector;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    results = std::exchange(results_, {});
    pair = std::exchange(queue_pair_, {});
    connector = std::exchange(connector_, {});
  }
  if (connector) {
    connector->CancelOverlappedRequests();
  }
  if (results) {
    results->CancelOverlappedRequests();
  }
}

}  // namespace rnicd::provider
