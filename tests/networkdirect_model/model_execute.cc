// What a card does with a request. A transfer is all or nothing, and requests of a queue pair are executed one by one.

#include <algorithm>
#include <optional>
#include <span>

#include "tests/networkdirect_model/model.h"

namespace rnicd::provider::model {
namespace {

using Pieces = std::vector<std::span<std::byte>>;

uint64_t LengthOf(const Pieces& pieces) {
  uint64_t length = 0;
  for (const std::span<std::byte> piece : pieces) {
    length += piece.size();
  }
  return length;
}

// The local memory of a request; empty if an entry is not permitted.
std::optional<Pieces> LocalPieces(Model& model, const QueuePair& pair, Request& request, ULONG rights) {
  if (!request.inline_bytes.empty()) {
    return Pieces{request.inline_bytes};
  }
  Pieces pieces;
  for (const ND2_SGE& entry : request.entries) {
    const auto found = model.local_tokens.find(entry.MemoryRegionToken);
    const auto address = reinterpret_cast<uint64_t>(entry.Buffer);
    if (found == model.local_tokens.end() || found->second->domain != pair.domain ||
        !found->second->Contains(address, entry.BufferLength) || (found->second->rights & rights) != rights) {
      return std::nullopt;
    }
    pieces.emplace_back(static_cast<std::byte*>(entry.Buffer), entry.BufferLength);
  }
  return pieces;
}

// The memory of the peer under a token of a region or window.
std::optional<Pieces> RemotePieces(Model& model, const QueuePair& peer, const Request& request, uint64_t length) {
  if (length == 0) {
    return Pieces{};
  }
  const bool read = request.type == Nd2RequestTypeRead;
  bool allowed = false;
  if (const auto region = model.remote_tokens.find(request.remote_token); region != model.remote_tokens.end()) {
    const ULONG rights = read ? kNdMrRemoteRead : kNdMrRemoteWrite;
    allowed = region->second->domain == peer.domain && region->second->Contains(request.remote_address, length) &&
              (region->second->rights & rights) == rights;
  } else if (const auto window = model.window_tokens.find(request.remote_token); window != model.window_tokens.end()) {
    const MemoryWindow& bound = *window->second;
    allowed = bound.pair == &peer && (bound.rights & (read ? kNdOpAllowRead : kNdOpAllowWrite)) != 0 &&
              request.remote_address >= bound.base && length <= bound.length &&
              request.remote_address - bound.base <= bound.length - length;
  }
  if (!allowed) {
    return std::nullopt;
  }
  return Pieces{{reinterpret_cast<std::byte*>(request.remote_address), length}};
}

void Copy(const Pieces& from, const Pieces& to) {
  size_t index = 0;
  size_t used = 0;
  for (const std::span<std::byte> source : from) {
    for (size_t done = 0; done < source.size();) {
      while (used == to[index].size()) {
        ++index;
        used = 0;
      }
      const size_t count = std::min(source.size() - done, to[index].size() - used);
      std::memmove(to[index].data() + used, source.data() + done, count);
      done += count;
      used += count;
    }
  }
}

// Ends the request and the connection.
void Fail(QueuePair& pair, HRESULT status) {
  pair.End(pair.initiators, status);
  pair.in_error = true;
  pair.Disconnect();
  pair.EnterError();
}

bool ExecuteSend(Model& model, QueuePair& pair, QueuePair& peer) {
  const std::optional<Pieces> source = LocalPieces(model, pair, pair.initiators.front(), 0);
  if (!source.has_value()) {
    Fail(pair, kNdAccessViolation);
    return true;
  }
  if (peer.receives.empty()) {
    return false;
  }
  Request& receive = peer.receives.front();
  uint64_t room = 0;
  for (const ND2_SGE& entry : receive.entries) {
    room += entry.BufferLength;
  }
  const uint64_t length = LengthOf(*source);
  const std::optional<Pieces> sink = LocalPieces(model, peer, receive, length > 0 ? kNdMrLocalWrite : 0);
  if (length > room || !sink.has_value()) {
    peer.End(peer.receives, length > room ? kNdBufferOverflow : kNdAccessViolation);
    Fail(pair, kNdRemoteError);
    return true;
  }
  Copy(*source, *sink);
  peer.End(peer.receives, kNdSuccess, static_cast<ULONG>(length));
  pair.End(pair.initiators, kNdSuccess);
  return true;
}

void ExecuteTransfer(Model& model, QueuePair& pair, QueuePair& peer) {
  Request& request = pair.initiators.front();
  const bool read = request.type == Nd2RequestTypeRead;
  const std::optional<Pieces> local = LocalPieces(model, pair, request, read ? kNdMrLocalWrite | kNdMrReadSink : 0);
  const std::optional<Pieces> remote =
      local.has_value() ? RemotePieces(model, peer, request, LengthOf(*local)) : std::nullopt;
  if (!remote.has_value()) {
    Fail(pair, kNdAccessViolation);
    return;
  }
  Copy(read ? *remote : *local, read ? *local : *remote);
  pair.End(pair.initiators, kNdSuccess);
}

HRESULT BindWindow(Model& model, QueuePair& pair, const Request& request) {
  MemoryWindow* const window = request.window;
  MemoryRegion* const region = request.region;
  const ND2_SGE& range = request.entries.front();
  const auto base = reinterpret_cast<uint64_t>(range.Buffer);
  if (window == nullptr || region == nullptr || window->region != nullptr || region->domain != pair.domain ||
      window->domain != pair.domain) {
    return kNdInvalidDeviceRequest;
  }
  const bool lacks_right = (request.flags & kNdOpAllowWrite) != 0 && (region->rights & kNdMrLocalWrite) == 0;
  if (!region->Contains(base, range.BufferLength) || lacks_right) {
    return kNdAccessViolation;
  }
  window->region = region;
  window->pair = &pair;
  window->base = base;
  window->length = range.BufferLength;
  window->rights = request.flags;
  window->token = request.window_token;
  model.window_tokens[window->token] = window;
  ++region->windows;
  ++model.bound;
  ++model.binds;
  return kNdSuccess;
}

HRESULT InvalidateWindow(Model& model, const QueuePair& pair, const Request& request) {
  if (request.window == nullptr || request.window->pair != &pair) {
    return kNdInvalidDeviceRequest;
  }
  request.window->Unbind();
  ++model.invalidates;
  return kNdSuccess;
}

}  // namespace

bool ExecuteOne(Model& model, QueuePair& pair) {
  if (pair.peer == nullptr || pair.initiators.empty() || model.removed.contains(pair.domain->card)) {
    return false;
  }
  const Request& request = pair.initiators.front();
  const bool ready = request.type != Nd2RequestTypeSend || !pair.peer->receives.empty();
  if (const HRESULT fault = ready ? model.Check("completion", pair.domain->card) : kNdSuccess; NdFailed(fault)) {
    Fail(pair, fault);
    return true;
  }
  switch (request.type) {
    case Nd2RequestTypeSend:
      return ExecuteSend(model, pair, *pair.peer);
    case Nd2RequestTypeRead:
    case Nd2RequestTypeWrite:
      ExecuteTransfer(model, pair, *pair.peer);
      return true;
    default:
      break;
  }
  const HRESULT result =
      request.type == Nd2RequestTypeBind ? BindWindow(model, pair, request) : InvalidateWindow(model, pair, request);
  if (NdFailed(result)) {
    Fail(pair, result);
  } else {
    pair.End(pair.initiators, kNdSuccess);
  }
  return true;
}

}  // namespace rnicd::provider::model
