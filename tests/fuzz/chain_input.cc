#include "tests/fuzz/chain_input.h"

#include "base/ndk/op_flags.h"

namespace rnicd::fuzz {
namespace {

constexpr size_t kRequestsMax = 8;
// One more than allowed.
constexpr size_t kSges = kPairLimits.initiator_entries + 2;
constexpr size_t kPages = kFastPagesMax + 2;
constexpr size_t kInlineBytes = kPairLimits.inline_bytes + 2;
constexpr uint32_t kKnownFlags = 0x3ff;
// A byte of at least this value selects an arbitrary number.
constexpr uint8_t kAny = 0xe0;

}  // namespace

ChainInput::ChainInput(Input& input, const QueueSide& owner, const QueueSide& peer, uint64_t& context)
    : input_(input), owner_(owner), peer_(peer) {
  const size_t count = 1 + input.Below(kRequestsMax);
  for (size_t index = 0; index < count; ++index) {
    requests_.push_back(NextRequest());
    requests_.back().request_context = ++context;
  }
}

WorkRequest ChainInput::NextRequest() {
  WorkRequest request;
  const size_t kind = input_.Below(9);
  request.flags = NextFlags();
  switch (kind) {
    case 0:
      request.operation = WorkRequest::Send{NextSges()};
      break;
    case 1:
      request.operation = WorkRequest::SendAndInvalidate{.sges = NextSges(), .token = NextRemoteToken()};
      break;
    case 2:
      request.operation = WorkRequest::Receive{NextSges()};
      break;
    case 3:
      request.operation =
          WorkRequest::Read{.sges = NextSges(), .remote = {.address = NextRemoteAddress(), .token = NextRemoteToken()}};
      break;
    case 4:
      request.operation = WorkRequest::Write{.sges = NextSges(),
                                             .remote = {.address = NextRemoteAddress(), .token = NextRemoteToken()}};
      break;
    case 5:
      request.operation = NextFastRegister();
      break;
    case 6:
      request.operation = NextInvalidate();
      break;
    case 7:
      request.operation = NextBind();
      break;
    default:
      break;
  }
  return request;
}

// No flags for half of all bytes, because most operations take few flags.
uint32_t ChainInput::NextFlags() {
  const uint8_t kind = input_.Byte();
  if (kind < 0x80) {
    return 0;
  }
  return kind < kAny ? input_.Short() & kKnownFlags : static_cast<uint32_t>(input_.Long());
}

LocalToken ChainInput::NextLocalToken() {
  const uint8_t kind = input_.Byte();
  core::Session& session = *owner_.session;
  if (kind >= kAny) {
    return LocalToken{static_cast<uint32_t>(input_.Long())};
  }
  switch (kind % 6) {
    default:
      return session.Begin()->regions().GetLocalToken(owner_.region).value_or(LocalToken{});
    case 2:
      return session.Begin()->regions().GetLocalToken(owner_.read_only).value_or(LocalToken{});
    case 3:
      return session.Begin()
          ->regions()
          .GetLocalToken(kind < 0x80 ? owner_.fast : owner_.local_fast)
          .value_or(LocalToken{});
    case 4:
      return session.Begin()->domains().GetPrivilegedMemoryRegionToken(owner_.domain).value_or(LocalToken{});
    case 5:
      return peer_.session->Begin()->regions().GetLocalToken(peer_.region).value_or(LocalToken{});
  }
}

Sge ChainInput::NextSge() {
  Sge sge;
  const uint8_t where = input_.Byte();
  sge.token = NextLocalToken();
  sge.length = static_cast<uint32_t>(input_.Number());
  const uint64_t offset = input_.Number();
  switch (where % 4) {
    case 0:
    case 1:
      sge.address = kRegionBase + offset;
      break;
    case 2:
      sge.address = kFastBase + offset;
      break;
    default:
      sge.address = owner_.mapping.first.value + offset;
      break;
  }
  if (where >= 0x80) {
    texts_.push_back(input_.Text(input_.Below(kInlineBytes)));
    sge.inline_data = std::as_bytes(std::span(texts_.back()));
    sge.length = where < kAny ? static_cast<uint32_t>(sge.inline_data.size()) : sge.length;
  }
  return sge;
}

Sges ChainInput::NextSges() {
  Sges sges;
  const size_t count = input_.Below(kSges);
  for (size_t index = 0; index < count; ++index) {
    sges.push_back(NextSge());
  }
  return sges;
}

RemoteToken ChainInput::NextRemoteToken() {
  const uint8_t kind = input_.Byte();
  if (kind >= kAny) {
    return RemoteToken{static_cast<uint32_t>(input_.Long())};
  }
  // Most tokens belong to the peer.
  const QueueSide& side = kind % 5 == 4 ? owner_ : peer_;
  core::Session& session = *side.session;
  switch (kind / 5 % 4) {
    case 0:
      return session.Begin()->regions().GetRemoteToken(side.region).value_or(RemoteToken{});
    case 1:
      return session.Begin()->regions().GetRemoteToken(side.fast).value_or(RemoteToken{});
    case 2:
      return session.Begin()->windows().GetRemoteToken(side.window).value_or(RemoteToken{});
    default:
      return session.Begin()->regions().GetRemoteToken(side.read_only).value_or(RemoteToken{});
  }
}

VirtualAddress ChainInput::NextRemoteAddress() {
  const uint8_t kind = input_.Byte();
  if (kind >= kAny) {
    return VirtualAddress{input_.Number()};
  }
  return VirtualAddress{(kind % 2 == 0 ? kRegionBase : kFastBase) + input_.Number()};
}

MemoryRegionId ChainInput::NextRegion() {
  const uint8_t kind = input_.Byte();
  if (kind >= kAny) {
    return kind % 2 == 0 ? peer_.region : MemoryRegionId{input_.Long()};
  }
  const MemoryRegionId regions[] = {owner_.fast, owner_.region, owner_.local_fast, owner_.read_only};
  return regions[kind % 4];
}

WorkRequest::FastRegister ChainInput::NextFastRegister() {
  WorkRequest::FastRegister operation{.region = NextRegion(), .pages = {}};
  std::vector<uint64_t>& pages = page_arrays_.emplace_back();
  const size_t count = input_.Below(kPages);
  for (size_t index = 0; index < count; ++index) {
    const uint8_t page = input_.Byte();
    pages.push_back(page < kAny ? owner_.mapping.first.value + page % kSharedPages * kNdkPageBytes
                                : owner_.mapping.first.value + input_.Number());
  }
  operation.pages = pages;
  operation.fbo = static_cast<uint32_t>(input_.Number());
  const uint8_t kind = input_.Byte();
  const uint64_t all = pages.size() * kNdkPageBytes - operation.fbo;
  operation.length = kind < 0x80 ? all : input_.Number();
  operation.base_address = VirtualAddress{kind < kAny ? kFastBase + operation.fbo : input_.Number()};
  return operation;
}

WorkRequest::Invalidate ChainInput::NextInvalidate() {
  switch (input_.Below(4)) {
    case 0:
      return {.target = std::monostate()};
    case 1:
      return {.target = owner_.window};
    default:
      return {.target = NextRegion()};
  }
}

WorkRequest::Bind ChainInput::NextBind() {
  WorkRequest::Bind operation{.region = NextRegion(), .window = owner_.window};
  const uint8_t kind = input_.Byte();
  if (kind >= kAny) {
    operation.window = kind % 2 == 0 ? peer_.window : MemoryWindowId{input_.Long()};
  }
  operation.address = VirtualAddress{kRegionBase + input_.Number()};
  operation.length = input_.Number();
  return operation;
}

}  // namespace rnicd::fuzz
