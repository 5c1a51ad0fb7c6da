#include "provider/networkdirect/fast/nd_prepared_request.h"

#include <utility>

#include "base/status.h"
#include "provider/networkdirect/memory/nd_mappings.h"
#include "provider/networkdirect/memory/nd_memory_region.h"

namespace rnicd::provider {
namespace {

// Bytes of this process may be the source or the sink of any request.
constexpr AccessRights kHostRights{.local_write = true, .read_sink = true};

absl::StatusOr<NdPayloadPiece> HostPiece(const std::shared_ptr<NdDomain>& domain, std::span<std::byte> bytes) {
  NdPayloadPiece piece{.bytes = bytes, .length = static_cast<uint32_t>(bytes.size())};
  if (const std::shared_ptr<NdMappedRun> run = domain->mappings().Find(bytes); run != nullptr) {
    absl::StatusOr<std::shared_ptr<const NdRegistration>> mapped = run->RegisteredIn(domain);
    if (mapped.ok()) {
      piece.host = *std::move(mapped);
      return piece;
    }
  }
  RNICD_ASSIGN_OR_RETURN(piece.host, NdRegistration::Make(domain, {&bytes, 1}, NdAccessFlags(kHostRights)));
  return piece;
}

absl::Status PreparePayload(const std::shared_ptr<NdDomain>& domain, EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  const std::span<const ScatterGatherEntry> entries = request.work.entries();
  for (size_t index = 0; index < entries.size();) {
    const ScatterGatherEntry& entry = entries[index++];
    if (entry.length == 0) {
      continue;
    }
    if (entry.host.data() == nullptr) {
      prepared.payload.push_back(
          {.host = nullptr, .bytes = {}, .token = entry.token, .address = entry.address, .length = entry.length});
      continue;
    }
    std::span<std::byte> bytes = entry.host;
    while (index < entries.size() && entries[index].host.data() == bytes.data() + bytes.size()) {
      bytes = {bytes.data(), bytes.size() + entries[index++].host.size()};
    }
    RNICD_ASSIGN_OR_RETURN(NdPayloadPiece piece, HostPiece(domain, bytes));
    prepared.payload.push_back(std::move(piece));
  }
  return absl::OkStatus();
}

absl::Status PrepareGrant(const std::shared_ptr<NdDomain>& domain, EngineRequest& request, bool connected) {
  if (const auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    const NdGrant::Shape shape{.base = work->base, .length = work->length, .rights = work->rights, .runs = work->runs};
    RNICD_ASSIGN_OR_RETURN(NdPreparedOf(request).grant, NdGrant::ForFastRegister(domain, shape, connected));
  } else if (const auto* bind = std::get_if<BindWork>(&request.work.work)) {
    auto& region = static_cast<NdMemoryRegion&>(*bind->region);
    RNICD_ASSIGN_OR_RETURN(NdPreparedOf(request).grant, region.MakeGrant(*bind, [&](const NdGrant::Shape& shape) {
      return NdGrant::ForBind(domain, region.registration(), shape, connected);
    }));
  }
  return absl::OkStatus();
}

bool AppendPiece(NdDomain& domain, const NdPayloadPiece& piece, LocalUse use, CardEntries& entries) {
  if (piece.host == nullptr) {
    const TokenTable::Entry entry = domain.local_tokens().Find(piece.token.value);
    return entry.range != nullptr && AppendLocal(*entry.range, piece.address, piece.length, use, entries);
  }
  IND2MemoryRegion* const region = piece.host->RegionOf(piece.bytes);
  if (region != nullptr) {
    entries.push_back(
        {.Buffer = piece.bytes.data(), .BufferLength = piece.length, .MemoryRegionToken = region->GetLocalToken()});
  }
  return region != nullptr;
}

uint64_t BytesOf(const CardEntries& entries) {
  uint64_t bytes = 0;
  for (const ND2_SGE& entry : entries) {
    bytes += entry.BufferLength;
  }
  return bytes;
}

struct RemotePlace {
  RemoteToken token;
  VirtualAddress address;
};

// Nothing for a send.
std::optional<RemotePlace> PlaceOf(const WorkRequest& request) {
  if (const auto* read = std::get_if<ReadWork>(&request.work)) {
    return RemotePlace{.token = read->remote_token, .address = read->remote_address};
  }
  if (const auto* write = std::get_if<WriteWork>(&request.work)) {
    return RemotePlace{.token = write->remote_token, .address = write->remote_address};
  }
  return std::nullopt;
}

}  // namespace

void NdPreparedRequest::Clear() {
  payload.clear();
  if (token != RemoteToken{} && stage != Stage::kInForce) {
    grant.reset();
    domain->remote_tokens().Remove(token.value);
  }
  token = {};
  GrantRequest::Clear();
  invalidated = {};
  refused = false;
  parts.clear();
  next_part = 0;
}

RemoteToken NdPreparedRequest::Issue() {
  token = RemoteToken{domain->remote_tokens().Reserve()};
  return token;
}

absl::Status PrepareNdRequest(const std::shared_ptr<NdDomain>& domain, EngineRequest& request, bool connected) {
  if (request.card == nullptr) {
    request.card = std::make_unique<NdPreparedRequest>(domain);
  }
  RNICD_RETURN_IF_ERROR(PreparePayload(domain, request));
  return PrepareGrant(domain, request, connected);
}

std::optional<CardEntries> TranslateEntries(NdDomain& domain, const EngineRequest& request, LocalUse use) {
  CardEntries entries;
  if (const auto* const data = std::get_if<InlineData>(&request.work.payload)) {
    if (!data->empty()) {
      entries.push_back({.Buffer = const_cast<std::byte*>(data->data()),
                         .BufferLength = static_cast<ULONG>(data->size()),
                         .MemoryRegionToken = 0});
    }
    return entries;
  }
  for (const NdPayloadPiece& piece : NdPreparedOf(request).payload) {
    if (!AppendPiece(domain, piece, use, entries)) {
      return std::nullopt;
    }
  }
  return entries;
}

NdTranslation TranslateTransfer(NdDomain& domain, NdDomain& peer, const EngineRequest& request, uint32_t max_entries) {
  std::optional<CardEntries> entries =
      TranslateEntries(domain, request, request.IsRead() ? LocalUse::kReadSink : LocalUse::kSource);
  if (!entries.has_value()) {
    return {.kind = NdTranslation::Kind::kRefusedHere, .parts = {}};
  }
  const std::optional<RemotePlace> place = PlaceOf(request.work);
  const uint64_t bytes = BytesOf(*entries);
  if (!place.has_value() || bytes == 0) {
    // A transfer of no bytes does not check the token.
    if (entries->size() > max_entries) {
      return {.kind = NdTranslation::Kind::kTooManyEntries, .parts = {}};
    }
    NdTranslation translation;
    translation.parts.push_back({.entries = *std::move(entries)});
    return translation;
  }
  const TokenTable::Entry remote = peer.remote_tokens().Find(place->token.value);
  RemoteParts parts;
  if (remote.range == nullptr || !AppendRemote(*remote.range, place->address, bytes, parts)) {
    return {.kind = NdTranslation::Kind::kRefusedByPeer, .parts = {}};
  }
  return {.kind = NdTranslation::Kind::kDone, .parts = DivideTransfer(*entries, parts, max_entries)};
}

ULONG NdOpFlags(const WorkRequest& request) {
  const auto* send = std::get_if<SendWork>(&request.work);
  const auto* data = std::get_if<InlineData>(&request.payload);
  // Every request is reported by the card, silent ones too: the report says when to release the memory.
  return (request.read_fence ? kNdOpReadFence : 0) | (send != nullptr && send->solicit ? kNdOpSolicit : 0) |
         (data != nullptr && !data->empty() ? kNdOpInline : 0);
}

}  // namespace rnicd::provider
