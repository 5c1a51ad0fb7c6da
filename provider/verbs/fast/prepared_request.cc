#include "provider/verbs/fast/prepared_request.h"

#include <arpa/inet.h>

#include <optional>
#include <span>
#include <utility>

#include "base/checked_range.h"
#include "base/status.h"
#include "provider/verbs/fast/verbs_fast_region.h"
#include "provider/verbs/memory/verbs_memory_region.h"

namespace rnicd::provider {
namespace {

// True when `next` can follow `run` in one composed view of pages of this size.
bool Joins(std::span<std::byte> run, std::span<std::byte> next, uint64_t page_bytes) {
  const auto is_boundary = [page_bytes](const std::byte* address) {
    return reinterpret_cast<uint64_t>(address) % page_bytes == 0;
  };
  return run.data() + run.size() == next.data() || (is_boundary(run.data() + run.size()) && is_boundary(next.data()));
}

// Registers adjacent payload bytes of this process as one piece.
absl::StatusOr<PayloadPiece> RegisterHost(const std::shared_ptr<VerbsDomain>& domain,
                                          std::span<const std::span<std::byte>> runs, uint32_t length) {
  const VirtualAddress base{reinterpret_cast<uint64_t>(runs.front().data())};
  PayloadPiece piece{.address = base.value, .length = length};
  RNICD_ASSIGN_OR_RETURN(piece.host, Registration::Make(domain, base, runs, IBV_ACCESS_LOCAL_WRITE));
  return piece;
}

// Registers `entries`, which are bytes of this process, as one piece, or one by one if the kernel cannot map them
// together.
absl::Status RegisterHosts(const std::shared_ptr<VerbsDomain>& domain, std::span<const ScatterGatherEntry> entries,
                           std::vector<PayloadPiece>& payload) {
  std::vector<std::span<std::byte>> runs;
  uint32_t length = 0;
  for (const ScatterGatherEntry& entry : entries) {
    runs.push_back(entry.host);
    length += entry.length;
  }
  absl::StatusOr<PayloadPiece> whole = RegisterHost(domain, runs, length);
  if (whole.ok()) {
    payload.push_back(*std::move(whole));
    return absl::OkStatus();
  }
  if (entries.size() == 1 || !FailedWith(whole.status(), ErrorReason::DEVICE_NOT_CAPABLE)) {
    return whole.status();
  }
  for (const ScatterGatherEntry& entry : entries) {
    RNICD_ASSIGN_OR_RETURN(PayloadPiece piece, RegisterHost(domain, {&entry.host, 1}, entry.length));
    payload.push_back(std::move(piece));
  }
  return absl::OkStatus();
}

absl::Status PreparePayload(const std::shared_ptr<VerbsDomain>& domain, EngineRequest& request) {
  PreparedRequest& prepared = PreparedOf(request);
  const std::span<const ScatterGatherEntry> entries = request.work.entries();
  for (size_t index = 0; index < entries.size();) {
    const size_t first = index++;
    const ScatterGatherEntry& entry = entries[first];
    if (entry.length == 0) {
      continue;  // Cards interpret a length of 0 as 2 GiB.
    }
    if (entry.host.data() == nullptr) {
      prepared.payload.push_back(
          {.host = nullptr, .token = entry.token, .address = entry.address.value, .length = entry.length});
      continue;
    }
    while (index < entries.size() && entries[index].host.data() != nullptr &&
           Joins(entries[index - 1].host, entries[index].host, domain->kernel_page_bytes())) {
      ++index;
    }
    RNICD_RETURN_IF_ERROR(RegisterHosts(domain, entries.subspan(first, index - first), prepared.payload));
  }
  return absl::OkStatus();
}

EngineMemoryRegion::Grant PrepareBind(const std::shared_ptr<VerbsDomain>& domain, const BindWork& work) {
  auto& region = static_cast<VerbsMemoryRegion&>(*work.region);
  if (!region.takes_windows()) {
    return MakeErrorWithDetail(ErrorInfo{.reason = ErrorReason::DEVICE_NOT_CAPABLE, .field = "bind.mr_id"},
                               "no window can be bound to a region of a dma-buf");
  }
  return region.MakeGrant(work, [&](const Grant::Shape& shape) -> EngineMemoryRegion::Grant {
    return domain->device().engines().windows ? Grant::OpenWindow(domain, region.mr(), shape)
                                              : Grant::Register(domain, shape);
  });
}

// Use of a piece of payload.
enum class Use : uint8_t { kSource, kSink, kReadSink };

bool Allows(const VerbsDomain& domain, const AccessRights& rights, Use use) {
  const bool asks_sink_right = (domain.device().info().adapter_flags & kAdapterFlagReadSinkNotRequired) == 0;
  return use == Use::kSource || (rights.local_write && (use == Use::kSink || !asks_sink_right || rights.read_sink));
}

// The piece in the card's format; nullopt when the token is not in force or its range does not cover the piece.
std::optional<ibv_sge> TranslatePiece(const VerbsDomain& domain, const PayloadPiece& piece, Use use) {
  if (piece.host != nullptr) {
    return ibv_sge{.addr = piece.address, .length = piece.length, .lkey = piece.host->lkey()};
  }
  const std::optional<LocalKey> key = domain.FindLocal(piece.token.value);
  if (!key.has_value() || !Allows(domain, key->rights, use) ||
      !CheckedRange::Make(key->base.value, key->length)->Contains(piece.address, piece.length)) {
    return std::nullopt;
  }
  return ibv_sge{.addr = piece.address, .length = piece.length, .lkey = key->lkey};
}

bool TranslatePayload(const VerbsDomain& domain, const PreparedRequest& prepared, Use use, std::vector<ibv_sge>& out) {
  for (const PayloadPiece& piece : prepared.payload) {
    const std::optional<ibv_sge> entry = TranslatePiece(domain, piece, use);
    if (!entry.has_value()) {
      return false;
    }
    out.push_back(*entry);
  }
  return true;
}

bool IsSiw(const VerbsDomain& domain) {
  const IwarpCard* const iwarp = domain.device().iwarp().get();
  return iwarp != nullptr && iwarp->is_siw;
}

// siw copies a short source that stands alone from its address in this process, where other memory is by then. Together
// with an empty one it takes the pages that were registered.
bool CopiesFromHere(const VerbsDomain& domain, const CardSend& send) {
  return IsSiw(domain) && send.entries.size() == 1 && (send.request.send_flags & IBV_SEND_INLINE) == 0;
}

void FillSend(const SendWork& work, bool peer_is_rnicd, ibv_send_wr& request) {
  request.opcode = IBV_WR_SEND;
  request.send_flags |= work.solicit ? static_cast<unsigned>(IBV_SEND_SOLICITED) : 0U;
  if (work.invalidate.has_value() && !peer_is_rnicd) {
    request.opcode = IBV_WR_SEND_WITH_INV;
    request.invalidate_rkey = work.invalidate->value;
  } else if (work.invalidate.has_value() || (work.solicit && peer_is_rnicd)) {
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = htonl(work.invalidate.has_value() ? work.invalidate->value : kImmediateSolicit);
  }
}

}  // namespace

absl::Status PrepareRequest(const std::shared_ptr<VerbsDomain>& domain, EngineRequest& request) {
  if (request.card == nullptr) {
    request.card = std::make_unique<PreparedRequest>();
  }
  RNICD_RETURN_IF_ERROR(PreparePayload(domain, request));
  if (const auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    RNICD_RETURN_IF_ERROR(static_cast<VerbsFastRegion&>(*work->region).Prepare(*work, PreparedOf(request)));
  } else if (const auto* bind = std::get_if<BindWork>(&request.work.work)) {
    RNICD_ASSIGN_OR_RETURN(PreparedOf(request).grant, PrepareBind(domain, *bind));
  }
  return absl::OkStatus();
}

bool TranslateSend(const VerbsDomain& domain, const EngineRequest& prepared, bool peer_is_rnicd, CardSend& out) {
  const WorkRequest& request = prepared.work;
  Use use = Use::kSource;
  // Every request is signalled, silent ones too, because the completion tells the daemon when to release the memory.
  out.request.send_flags = IBV_SEND_SIGNALED;
  if (const auto* send = std::get_if<SendWork>(&request.work)) {
    FillSend(*send, peer_is_rnicd, out.request);
  } else if (const auto* write = std::get_if<WriteWork>(&request.work)) {
    out.request.opcode = IBV_WR_RDMA_WRITE;
    out.request.wr.rdma = {.remote_addr = write->remote_address.value, .rkey = write->remote_token.value};
  } else if (const auto* read = std::get_if<ReadWork>(&request.work)) {
    out.request.opcode = IBV_WR_RDMA_READ;
    out.request.wr.rdma = {.remote_addr = read->remote_address.value, .rkey = read->remote_token.value};
    use = Use::kReadSink;
  }
  out.request.send_flags |= request.read_fence ? static_cast<unsigned>(IBV_SEND_FENCE) : 0U;
  if (const auto* const data = std::get_if<InlineData>(&request.payload)) {
    if (!data->empty()) {
      out.request.send_flags |= IBV_SEND_INLINE;
      out.entries.push_back(
          {.addr = reinterpret_cast<uint64_t>(data->data()), .length = static_cast<uint32_t>(data->size()), .lkey = 0});
    }
  } else if (!TranslatePayload(domain, PreparedOf(prepared), use, out.entries)) {
    return false;
  }
  if (CopiesFromHere(domain, out) && use == Use::kSource) {
    out.entries.push_back({});
  }
  out.request.sg_list = out.entries.data();
  out.request.num_sge = static_cast<int>(out.entries.size());
  return true;
}

std::vector<ibv_sge> TranslateReceive(const VerbsDomain& domain, const EngineRequest& request) {
  std::vector<ibv_sge> entries;
  if (PreparedOf(request).payload.empty() && IsSiw(domain)) {
    // It refuses a receive without entries.
    entries.push_back({});
  }
  for (const PayloadPiece& piece : PreparedOf(request).payload) {
    entries.push_back(TranslatePiece(domain, piece, Use::kSink)
                          .value_or(ibv_sge{.addr = piece.address, .length = piece.length, .lkey = piece.token.value}));
  }
  return entries;
}

bool MayReceive(const VerbsDomain& domain, const EngineRequest& request) {
  std::vector<ibv_sge> entries;
  return TranslatePayload(domain, PreparedOf(request), Use::kSink, entries);
}

}  // namespace rnicd::provider
