#include <algorithm>

#include "tests/networkdirect_model/model.h"

namespace rnicd::provider::model {

// --- completion queues ---

CompletionQueue::CompletionQueue(std::shared_ptr<Model> model, const DomainPointer& domain, HANDLE file, ULONG depth)
    : OverlappedObject(std::move(model), file, domain->card), depth_(depth) {}

CompletionQueue::~CompletionQueue() {
  for (QueuePair* const pair : model().pairs) {
    for (CompletionQueue** const queue : {&pair->receive_queue, &pair->initiator_queue}) {
      if (*queue == this) {
        model().Violate("a completion queue was released before its queue pair");
        *queue = nullptr;
      }
    }
  }
}

HRESULT CompletionQueue::Resize(ULONG new_depth) {
  MutexLock lock(model().mutex);
  depth_ = new_depth;
  return kNdSuccess;
}

HRESULT CompletionQueue::Notify(ULONG type, OVERLAPPED* call) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2CompletionQueue::Notify", calls.card()); NdFailed(result)) {
    return result;
  }
  if (type != kNdNotifyAny) {
    return kNdNotSupported;
  }
  // What has come since GetResults must not be missed.
  return results.empty() ? calls.Wait(call) : calls.Finish(call, kNdSuccess);
}

ULONG CompletionQueue::GetResults(ND2_RESULT taken[], ULONG room) {
  MutexLock lock(model().mutex);
  if (model().removed.contains(calls.card())) {
    return 0;
  }
  const auto count = static_cast<ULONG>(std::min<size_t>(room, results.size()));
  std::copy_n(results.begin(), count, taken);
  results.erase(results.begin(), results.begin() + count);
  return count;
}

void CompletionQueue::Push(const ND2_RESULT& result) {
  if (results.size() >= depth_) {
    model().Violate("a completion queue has overflowed");
  }
  results.push_back(result);
  calls.EndAll(kNdSuccess);
}

// --- queue pairs ---

QueuePair::QueuePair(std::shared_ptr<Model> model, DomainPointer pair_domain, CompletionQueue& receives_to,
                     CompletionQueue& initiators_to, const Limits& limits)
    : Object(std::move(model)),
      domain(std::move(pair_domain)),
      receive_queue(&receives_to),
      initiator_queue(&initiators_to),
      limits_(limits) {
  this->model().pairs.insert(this);
}

QueuePair::~QueuePair() {
  Disconnect();
  if (connector != nullptr) {
    connector->pair = nullptr;
  }
  model().pairs.erase(this);
  std::vector<MemoryWindow*> bound;
  for (const auto& [token, window] : model().window_tokens) {
    if (window->pair == this) {
      bound.push_back(window);
    }
  }
  for (MemoryWindow* const window : bound) {
    model().Violate("a queue pair was released with a window bound");
    window->Unbind();
  }
}

void QueuePair::End(std::deque<Request>& queue, HRESULT status, ULONG bytes) {
  const Request request = std::move(queue.front());
  queue.pop_front();
  CompletionQueue* const results = &queue == &receives ? receive_queue : initiator_queue;
  const bool silent = status == kNdSuccess && (request.flags & kNdOpSilentSuccess) != 0;
  if (results != nullptr && !silent && !model().removed.contains(domain->card)) {
    results->Push({.Status = status,
                   .BytesTransferred = bytes,
                   .QueuePairContext = nullptr,
                   .RequestContext = request.context,
                   .RequestType = request.type});
  }
}

void QueuePair::EnterError() {
  in_error = true;
  while (!initiators.empty()) {
    End(initiators, kNdCanceled);
  }
  while (!receives.empty()) {
    End(receives, kNdCanceled);
  }
}

// As on a card whose queue pairs follow the connection: both sides lose what is outstanding.
void QueuePair::Disconnect() {
  QueuePair* const other = std::exchange(peer, nullptr);
  if (other == nullptr) {
    return;
  }
  other->peer = nullptr;
  for (QueuePair* const side : {this, other}) {
    side->EnterError();
    if (side->connector != nullptr) {
      side->connector->OnDisconnected();
    }
  }
}

HRESULT QueuePair::Flush() {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2QueuePair::Flush", domain->card); NdFailed(result)) {
    return result;
  }
  EnterError();
  return kNdSuccess;
}

HRESULT QueuePair::CheckInitiator(const char* method) const {
  if (const HRESULT result = model().Check(method, domain->card); NdFailed(result)) {
    return result;
  }
  if (peer == nullptr || in_error) {
    return kNdConnectionInvalid;
  }
  return initiators.size() < limits_.initiator_depth ? kNdSuccess : kNdNoMoreEntries;
}

HRESULT QueuePair::Post(const char* method, Request request, const ND2_SGE entries[], ULONG count) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = CheckInitiator(method); NdFailed(result)) {
    return result;
  }
  if (count > limits_.initiator_sge) {
    return kNdDataOverrun;
  }
  request.entries.assign(entries, entries + count);
  if ((request.flags & kNdOpInline) != 0) {
    for (const ND2_SGE& entry : std::exchange(request.entries, {})) {
      const auto* const bytes = static_cast<const std::byte*>(entry.Buffer);
      request.inline_bytes.insert(request.inline_bytes.end(), bytes, bytes + entry.BufferLength);
    }
    if (request.inline_bytes.size() > limits_.inline_bytes) {
      return kNdInvalidBufferSize;
    }
  }
  initiators.push_back(std::move(request));
  model().Wake();
  return kNdSuccess;
}

HRESULT QueuePair::Send(void* context, const ND2_SGE entries[], ULONG count, ULONG flags) {
  return Post("IND2QueuePair::Send", {.type = Nd2RequestTypeSend, .context = context, .flags = flags}, entries, count);
}

HRESULT QueuePair::Read(void* context, const ND2_SGE entries[], ULONG count, UINT64 remote_address, UINT32 remote_token,
                        ULONG flags) {
  return Post("IND2QueuePair::Read",
              {.type = Nd2RequestTypeRead,
               .context = context,
               .flags = flags,
               .remote_address = remote_address,
               .remote_token = remote_token},
              entries, count);
}

HRESULT QueuePair::Write(void* context, const ND2_SGE entries[], ULONG count, UINT64 remote_address,
                         UINT32 remote_token, ULONG flags) {
  return Post("IND2QueuePair::Write",
              {.type = Nd2RequestTypeWrite,
               .context = context,
               .flags = flags,
               .remote_address = remote_address,
               .remote_token = remote_token},
              entries, count);
}

HRESULT QueuePair::Receive(void* context, const ND2_SGE entries[], ULONG count) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = model().Check("IND2QueuePair::Receive", domain->card); NdFailed(result)) {
    return result;
  }
  if (in_error) {
    return kNdConnectionInvalid;
  }
  if (receives.size() >= limits_.receive_depth) {
    return kNdNoMoreEntries;
  }
  if (count > limits_.receive_sge) {
    return kNdDataOverrun;
  }
  Request request{.type = Nd2RequestTypeReceive, .context = context};
  request.entries.assign(entries, entries + count);
  receives.push_back(std::move(request));
  model().Wake();
  return kNdSuccess;
}

// The token is known at once, and works when the request has been executed.
HRESULT QueuePair::Bind(void* context, IUnknown* region, IUnknown* window, const void* buffer, SIZE_T bytes,
                        ULONG flags) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = CheckInitiator("IND2QueuePair::Bind"); NdFailed(result)) {
    return result;
  }
  if ((flags & (kNdOpAllowRead | kNdOpAllowWrite)) == 0) {
    return kNdInvalidParameter;
  }
  auto* const bound = static_cast<MemoryWindow*>(window);
  const UINT32 token = __builtin_bswap32(model().NextToken());
  // A window that is bound keeps its token: this request will fail.
  bound->token = bound->region == nullptr ? token : bound->token;
  initiators.push_back({.type = Nd2RequestTypeBind,
                        .context = context,
                        .flags = flags,
                        .entries = {{.Buffer = const_cast<void*>(buffer),
                                     .BufferLength = static_cast<ULONG>(bytes),
                                     .MemoryRegionToken = 0}},
                        .region = static_cast<MemoryRegion*>(region),
                        .window = bound,
                        .window_token = token});
  model().Wake();
  return kNdSuccess;
}

HRESULT QueuePair::Invalidate(void* context, IUnknown* window, ULONG flags) {
  MutexLock lock(model().mutex);
  if (const HRESULT result = CheckInitiator("IND2QueuePair::Invalidate"); NdFailed(result)) {
    return result;
  }
  initiators.push_back({.type = Nd2RequestTypeInvalidate,
                        .context = context,
                        .flags = flags,
                        .window = static_cast<MemoryWindow*>(window)});
  model().Wake();
  return kNdSuccess;
}

}  // namespace rnicd::provider::model
