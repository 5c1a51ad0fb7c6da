// The posting rules, applied to one work request. Source: PostResponse.failure in queue_service.proto.

#include <algorithm>
#include <set>

#include "base/ndk/op_flags.h"
#include "daemon/core/tenant/heap_cost.h"
#include "tests/simulation/steps/post.h"

namespace rnicd::simulation {
namespace {

constexpr uint64_t kMaxTransfer = uint64_t{1} << 30;
constexpr uint32_t kMaxReadEntries = 16;

// The mapping of the pair's adapter that contains this address.
const Mapping* FindMapping(const QueuePair& pair, uint64_t address) {
  for (const auto& mapping : pair.client->mappings) {
    const uint64_t bytes = mapping->pages->pages.size() * kNdkPageBytes;
    if (mapping->adapter == pair.domain->adapter && address >= mapping->first && address - mapping->first < bytes) {
      return mapping.get();
    }
  }
  return nullptr;
}

// Appends `length` bytes from byte `skip` of the pages on.
void AppendPages(std::span<const MappedPages::Page> pages, uint64_t skip, uint64_t length, Pieces& pieces) {
  for (const MappedPages::Page& page : pages) {
    const uint64_t count = std::min(kNdkPageBytes - skip, length);
    if (count > 0) {
      pieces.push_back({.memory = page.memory, .offset = page.offset + skip, .length = count});
    }
    length -= count;
    skip = 0;
  }
}

// Adjacent pieces in the daemon's memory are one run.
uint64_t CountRuns(const Pieces& pieces) {
  uint64_t runs = 0;
  const std::byte* end = nullptr;
  for (const Piece& piece : pieces) {
    const std::byte* first = piece.memory->real.data() + piece.offset;
    runs += first == end ? 0 : 1;
    end = first + piece.length;
  }
  return runs;
}

// Checks one request of a queue pair against the posting rules.
class RequestChecker {
 public:
  RequestChecker(const Scene& scene, const QueuePair& pair, const WorkRequest& posted, CheckedRequest& checked)
      : scene_(scene),
        pair_(pair),
        flags_(posted.flags),
        why_(checked.why),
        out_(checked.request),
        window_(checked.window) {}

  void operator()(std::monostate) { why_.If(true, ErrorReason::FIELD_OUT_OF_RANGE); }

  void operator()(const WorkRequest::Send& send) { Send(send.sges); }
  void operator()(const WorkRequest::SendAndInvalidate& send) {
    Send(send.sges);
    out_.invalidate = send.token;
  }

  void operator()(const WorkRequest::Receive& receive) {
    out_.kind = RequestKind::kReceive;
    CheckFlags(0);
    Payload(receive.sges, pair_.limits.receive_entries);
  }

  void operator()(const WorkRequest::Read& read) {
    out_.kind = RequestKind::kRead;
    CheckFlags(kOpFlagsOfInitiator | kOpFlagReadLocalInvalidate);
    out_.remote_address = read.remote.address.value;
    out_.remote_token = read.remote.token;
    out_.local_invalidate = Has(kAdapterFlagReadLocalInvalidate) && (flags_ & kOpFlagReadLocalInvalidate) != 0;
    const auto is_privileged = [this](const Sge& sge) { return sge.token == pair_.domain->privileged; };
    why_.If(!Has(kAdapterFlagReadSinkNotRequired) && std::any_of(read.sges.begin(), read.sges.end(), is_privileged),
            ErrorReason::READ_SINK_PRIVILEGED);
    Payload(read.sges, kMaxReadEntries);
  }

  void operator()(const WorkRequest::Write& write) {
    out_.kind = RequestKind::kWrite;
    CheckFlags(kOpFlagsOfInitiator | kOpFlagInline);
    out_.remote_address = write.remote.address.value;
    out_.remote_token = write.remote.token;
    PayloadOrInline(write.sges);
  }

  void operator()(const WorkRequest::FastRegister& operation) {
    out_.kind = RequestKind::kFastRegister;
    CheckFlags(kOpFlagsOfInitiator | kOpFlagRemoteRead | kOpFlagRemoteWrite | kOpFlagReadSink);
    out_.rights = AccessRightsFromOpFlags(flags_);
    out_.base = operation.base_address.value;
    out_.length = operation.length;
    if (const std::shared_ptr<Region> region = RegionHere(operation.region); region != nullptr) {
      UseKey(*region);
      why_.If((out_.rights.remote_read || out_.rights.remote_write) && !region->remote_access,
              ErrorReason::REGION_NO_REMOTE_ACCESS);
      why_.If(operation.pages.size() > region->fast_pages, ErrorReason::PAGE_COUNT_ABOVE_REGION);
    }
    CheckNumbers(operation);
    Pages(operation);
  }

  void operator()(const WorkRequest::Invalidate& operation) {
    out_.kind = RequestKind::kInvalidate;
    CheckFlags(kOpFlagsOfInitiator);
    if (const auto* id = std::get_if<MemoryRegionId>(&operation.target)) {
      if (const std::shared_ptr<Region> region = RegionHere(*id); region != nullptr) {
        UseKey(*region);
      }
    } else if (const auto* window_id = std::get_if<MemoryWindowId>(&operation.target)) {
      if (const std::shared_ptr<Window> window = WindowHere(*window_id); window != nullptr) {
        out_.key = window->key;
      }
    } else {
      why_.If(true, ErrorReason::FIELD_OUT_OF_RANGE);
    }
  }

  void operator()(const WorkRequest::Bind& operation) {
    out_.kind = RequestKind::kBind;
    CheckFlags(kOpFlagsOfInitiator | kOpFlagRemoteRead | kOpFlagRemoteWrite);
    why_.If((flags_ & kOpFlagRemoteWrite) == kOpFlagLocalWrite, ErrorReason::FLAGS_UNKNOWN);
    why_.If(operation.length == 0, ErrorReason::LENGTH_ZERO);
    why_.If(operation.length > scene_.options.soft.max_registration_bytes, ErrorReason::ABOVE_ADAPTER_LIMIT);
    out_.rights = AccessRightsFromOpFlags(flags_);
    out_.base = operation.address.value;
    out_.length = operation.length;
    window_ = WindowHere(operation.window);
    if (window_ != nullptr) {
      out_.key = window_->key;
    }
    const std::shared_ptr<Region> region = RegionHere(operation.region);
    if (region == nullptr) {
      return;
    }
    why_.If(region->fast, ErrorReason::REGION_WRONG_KIND);
    why_.If(!region->fast && region->state != Region::State::kRegistered, ErrorReason::REGION_NOT_REGISTERED);
    if (region->state == Region::State::kRegistered) {
      const Target& target = *region->target;
      const uint64_t offset = out_.base - target.base.value;
      why_.If(out_.base < target.base.value || offset > target.length || out_.length > target.length - offset,
              ErrorReason::WINDOW_OUTSIDE_REGION);
      why_.If(out_.rights.remote_write && !target.rights.local_write, ErrorReason::REGION_RIGHTS_INSUFFICIENT);
      out_.bound_to = region->target;
      Client* const client = pair_.client;
      out_.hold =
          std::make_shared<RegionHold>(region, [&model = scene_.model, client] { (void)model.Settle(*client); });
    }
  }

 private:
  bool Has(uint32_t adapter_flag) const { return (scene_.options.soft.adapter_flags & adapter_flag) != 0; }

  void CheckFlags(uint32_t known) {
    why_.If((flags_ & ~known) != 0, ErrorReason::FLAGS_UNKNOWN);
    why_.If((flags_ & kOpFlagRemoteWrite) == kOpFlagRemoteWriteBit, ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE);
  }

  std::shared_ptr<Region> RegionHere(MemoryRegionId id) {
    std::shared_ptr<Region> region = FindRegion(*pair_.client, id);
    why_.If(region == nullptr, ErrorReason::OBJECT_NOT_FOUND);
    why_.If(region != nullptr && region->domain != pair_.domain, ErrorReason::DOMAIN_MISMATCH);
    return region;
  }

  std::shared_ptr<Window> WindowHere(MemoryWindowId id) {
    std::shared_ptr<Window> window = FindById(pair_.client->windows, id);
    why_.If(window == nullptr, ErrorReason::OBJECT_NOT_FOUND);
    why_.If(window != nullptr && window->domain != pair_.domain, ErrorReason::DOMAIN_MISMATCH);
    return window;
  }

  void UseKey(const Region& region) {
    why_.If(!region.fast, ErrorReason::REGION_WRONG_KIND);
    why_.If(region.fast && region.state != Region::State::kInitialized, ErrorReason::REGION_NOT_INITIALIZED);
    out_.key = region.key;
  }

  void Send(const Sges& sges) {
    out_.kind = RequestKind::kSend;
    CheckFlags(kOpFlagsOfInitiator | kOpFlagSolicit | kOpFlagInline);
    out_.solicit = (flags_ & kOpFlagSolicit) != 0;
    PayloadOrInline(sges);
  }

  void PayloadOrInline(const Sges& sges) {
    if ((flags_ & kOpFlagInline) == 0) {
      Payload(sges, pair_.limits.initiator_entries);
      return;
    }
    std::vector<std::byte>& data = out_.inline_data.emplace();
    for (const Sge& sge : sges) {
      why_.If(sge.inline_data.size() != sge.length, ErrorReason::FIELD_OUT_OF_RANGE);
      data.insert(data.end(), sge.inline_data.begin(), sge.inline_data.end());
    }
    why_.If(data.size() > pair_.limits.inline_bytes, ErrorReason::INLINE_TOO_LONG);
  }

  void Payload(const Sges& sges, uint32_t most) {
    why_.If(sges.size() > most, ErrorReason::SGE_COUNT);
    uint64_t total = 0;
    const auto backing = std::make_shared<Backing>();
    for (const Sge& sge : sges) {
      total += sge.length;
      if (sge.token == pair_.domain->privileged) {
        Host(sge, *backing);
      } else {
        out_.entries.push_back(
            {.token = sge.token, .address = sge.address, .length = static_cast<uint32_t>(sge.length)});
        ++backing->list;
      }
    }
    why_.If(total > kMaxTransfer, ErrorReason::TRANSFER_TOO_LONG);
    if (!backing->pages.empty()) {
      backing->pieces = backing->list;
      Hold(backing);
    }
  }

  // From here on the page list is charged for as long as the request or its registration holds it.
  void Hold(const std::shared_ptr<const Backing>& backing) {
    scene_.model.CheckQuota(*pair_.client, core::Resource::kPostedPages, backing->list, why_);
    scene_.model.CheckHeap(*pair_.client, {}, backing->pieces * core::kHeapOfPostedPiece, why_);
    auto& backings = pair_.client->backings;
    std::erase_if(backings, [](const auto& each) { return each.expired(); });
    backings.push_back(backing);
    out_.backing = backing;
  }

  void Host(const Sge& sge, Backing& backing) {
    const Mapping* mapping = FindMapping(pair_, sge.address);
    const uint64_t offset = mapping != nullptr ? sge.address - mapping->first : 0;
    if (mapping == nullptr || sge.length > mapping->pages->pages.size() * kNdkPageBytes - offset) {
      why_.If(true, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
      return;
    }
    const auto pages = std::span(mapping->pages->pages).subspan(offset / kNdkPageBytes);
    Entry entry{.length = static_cast<uint32_t>(sge.length)};
    AppendPages(pages, offset % kNdkPageBytes, sge.length, entry.host);
    backing.list += CountRuns(entry.host);
    backing.pages.push_back(mapping->pages);
    if (!entry.host.empty()) {
      out_.entries.push_back(std::move(entry));
    }
  }

  void CheckNumbers(const WorkRequest::FastRegister& operation) {
    why_.If(operation.pages.empty() || operation.fbo >= kNdkPageBytes, ErrorReason::FIELD_OUT_OF_RANGE);
    why_.If(operation.length == 0, ErrorReason::LENGTH_ZERO);
    why_.If(operation.length + operation.fbo > operation.pages.size() * kNdkPageBytes, ErrorReason::LENGTH_ABOVE_PAGES);
    why_.If(operation.base_address.value % kNdkPageBytes != operation.fbo, ErrorReason::BASE_NOT_CONGRUENT);
    why_.If(operation.length != 0 && operation.length - 1 > UINT64_MAX - operation.base_address.value,
            ErrorReason::ADDRESS_RANGE_OVERFLOW);
  }

  void Pages(const WorkRequest::FastRegister& operation) {
    std::vector<MappedPages::Page> pages;
    const auto backing = std::make_shared<Backing>(Backing{.list = operation.pages.size()});
    for (const uint64_t address : operation.pages) {
      const Mapping* mapping = FindMapping(pair_, address);
      why_.If(address % kNdkPageBytes != 0, ErrorReason::LOGICAL_ADDRESS_UNALIGNED);
      why_.If(mapping == nullptr, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
      if (mapping != nullptr) {
        pages.push_back(mapping->pages->pages[(address - mapping->first) / kNdkPageBytes]);
        backing->pages.push_back(mapping->pages);
      }
    }
    if (why_.none()) {
      AppendPages(pages, operation.fbo, operation.length, out_.pieces);
      backing->pieces = CountRuns(out_.pieces) + std::set(backing->pages.begin(), backing->pages.end()).size();
      Hold(backing);
    }
  }

  const Scene& scene_;
  const QueuePair& pair_;
  const uint32_t flags_;
  Refusals& why_;
  Request& out_;
  std::shared_ptr<Window>& window_;
};

bool IsReceive(const Request& request) { return request.kind == RequestKind::kReceive; }

}  // namespace

CheckedRequest CheckRequest(const Scene& scene, const QueuePair& pair, const WorkRequest& request,
                            const std::vector<Request>& ahead) {
  CheckedRequest checked;
  checked.request.context = request.request_context;
  checked.request.silent = (request.flags & kOpFlagSilentSuccess) != 0;
  checked.request.fence = (request.flags & kOpFlagReadFence) != 0;
  std::visit(RequestChecker(scene, pair, request, checked), request.operation);
  if (checked.why.none() && !pair.dead()) {
    (void)scene.model.faults.Strikes(Fault::kEnqueue, checked.why);
  }
  const auto receives = static_cast<size_t>(std::count_if(ahead.begin(), ahead.end(), IsReceive));
  if (IsReceive(checked.request)) {
    checked.why.If(pair.receives.size() + receives >= pair.limits.receive_depth, ErrorReason::QUEUE_FULL);
  } else {
    checked.why.If(pair.state != provider::QueuePairState::kReadyToSend, ErrorReason::QP_NOT_CONNECTED);
    checked.why.If(pair.slots.size() + ahead.size() - receives >= pair.limits.initiator_depth, ErrorReason::QUEUE_FULL);
  }
  checked.why.If(pair.dead(), ErrorReason::QP_NOT_CONNECTED);
  return checked;
}

}  // namespace rnicd::simulation
