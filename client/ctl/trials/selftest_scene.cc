#include "client/ctl/trials/selftest_scene.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace rnicd::ctl {
namespace {

constexpr uint64_t kBytes = kSelftestPages * kSelftestPageBytes;
// No address of a process.
constexpr uint64_t kBase = uint64_t{1} << 50;

absl::StatusOr<Client> OpenSession(const SelftestOptions& options, const std::string& label) {
  return Client::Connect(
      {.socket_dir = options.socket_dir, .label = label, .grant = options.grant, .adapter_name = options.adapter});
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Neighbouring bytes differ, and so do bytes at one offset of any two pages.
std::byte KnownByte(size_t offset) { return static_cast<std::byte>(offset * 7 + offset / kSelftestPageBytes * 13 + 1); }

}  // namespace

absl::Status SelftestWrong(const std::string& sentence) { return absl::InternalError(sentence); }

absl::StatusOr<std::unique_ptr<SelftestScene>> SelftestScene::Open(const SelftestOptions& options) {
  RNICD_ASSIGN_OR_RETURN(Client owner, OpenSession(options, "selftest owner"));
  RNICD_ASSIGN_OR_RETURN(Client peer, OpenSession(options, "selftest peer"));
  const AllocateOptions wanted{.size = kBytes, .page_size = PageSize::k4KiB};
  RNICD_ASSIGN_OR_RETURN(Memory memory, Memory::Allocate(owner, wanted));
  RNICD_ASSIGN_OR_RETURN(LogicalMapping mapping, LogicalMapping::Build(memory));
  RNICD_ASSIGN_OR_RETURN(Memory buffer, Memory::Allocate(peer, wanted));
  RNICD_ASSIGN_OR_RETURN(MemoryRegion region, MemoryRegion::Register(buffer, kMrFlagLocalWrite));
  return std::unique_ptr<SelftestScene>(new SelftestScene(std::move(owner), std::move(peer), std::move(memory),
                                                          std::move(mapping), std::move(buffer), std::move(region)));
}

void SelftestScene::Reset() {
  const std::span<std::byte> bytes = memory_.bytes();
  for (size_t offset = 0; offset < bytes.size(); ++offset) {
    bytes[offset] = KnownByte(offset);
  }
}

std::string_view SelftestScene::Text(uint64_t offset, uint64_t length) const {
  return TextOf(memory_.bytes().subspan(offset, length));
}

std::string_view SelftestScene::ReadText(uint64_t length) const { return TextOf(buffer_.bytes().first(length)); }

absl::StatusOr<SelftestLink> SelftestScene::Connect(uint32_t depth) const {
  RNICD_ASSIGN_OR_RETURN(QueueEnd owner, QueueEnd::Open(owner_, depth));
  RNICD_ASSIGN_OR_RETURN(QueueEnd peer, QueueEnd::Open(peer_, depth));
  RNICD_RETURN_IF_ERROR(ConnectEnds(owner, peer));
  return SelftestLink{.owner = std::move(owner), .peer = std::move(peer)};
}

absl::StatusOr<Completion> SelftestScene::Write(SelftestLink& link, const RemoteMemory& remote, std::string_view text) {
  const std::span<std::byte> bytes = buffer_.bytes().first(text.size());
  std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin());
  return link.peer.Try(WorkChain().Write({Sge::Of(bytes, buffer_token())}, remote, {}));
}

absl::StatusOr<Completion> SelftestScene::Read(SelftestLink& link, const RemoteMemory& remote, uint64_t length) {
  const std::span<std::byte> bytes = buffer_.bytes().first(length);
  std::ranges::fill(bytes, std::byte{0});
  return link.peer.Try(WorkChain().Read({Sge::Of(bytes, buffer_token())}, remote, {}));
}

absl::Status SelftestScene::MustReach(SelftestLink& link, const RemoteMemory& remote, uint64_t offset,
                                      uint64_t length) {
  RNICD_ASSIGN_OR_RETURN(const Completion read, Read(link, remote, length));
  if (!read.ok()) {
    return SelftestWrong("a read ended with " + std::string(NtStatusName(read.status)));
  }
  if (ReadText(length) != Text(offset, length)) {
    return SelftestWrong("a read gave other bytes than those of the owner's memory");
  }
  const std::string text(length, 'w');
  RNICD_ASSIGN_OR_RETURN(const Completion write, Write(link, remote, text));
  if (!write.ok()) {
    return SelftestWrong("a write ended with " + std::string(NtStatusName(write.status)));
  }
  return Text(offset, length) == text ? absl::OkStatus() : SelftestWrong("a write did not reach the owner's memory");
}

absl::Status SelftestScene::MustRefuseWrite(const RemoteMemory& remote, const std::string& what) {
  const std::string before(Text(0, kBytes));
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, Connect());
  RNICD_ASSIGN_OR_RETURN(const Completion completion, Write(link, remote, "!"));
  if (completion.status != NtStatus::kAccessViolation) {
    return SelftestWrong("a write " + what + " ended with " + std::string(NtStatusName(completion.status)) +
                         " instead of STATUS_ACCESS_VIOLATION");
  }
  return Text(0, kBytes) == before ? absl::OkStatus()
                                   : SelftestWrong("a refused write " + what + " changed the owner's memory");
}

absl::Status SelftestScene::MustRefuseRead(const RemoteMemory& remote, const std::string& what) {
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, Connect());
  RNICD_ASSIGN_OR_RETURN(const Completion completion, Read(link, remote, 1));
  return completion.status == NtStatus::kAccessViolation
             ? absl::OkStatus()
             : SelftestWrong("a read " + what + " ended with " + std::string(NtStatusName(completion.status)) +
                             " instead of STATUS_ACCESS_VIOLATION");
}

absl::StatusOr<FastRegion> SelftestScene::NewFastRegion() const {
  return FastRegion::Create(owner_, {.max_pages = kSelftestPages, .remote_access = true});
}

FastRegistration SelftestScene::Pages(const std::vector<size_t>& order, uint32_t fbo) const {
  FastRegistration registration{
      .fbo = fbo, .length = order.size() * kSelftestPageBytes - fbo, .base_address = {kBase + fbo}};
  for (const size_t page : order) {
    registration.pages.push_back(mapping_.pages()[page]);
  }
  return registration;
}

absl::StatusOr<RemoteMemory> SelftestScene::FastRegister(SelftestLink& link, const FastRegion& region,
                                                         const FastRegistration& registration, uint32_t flags) {
  RNICD_ASSIGN_OR_RETURN(const PostOutcome outcome,
                         link.owner.Post(WorkChain().FastRegister(region, registration, {.flags = flags})));
  RNICD_ASSIGN_OR_RETURN(const Completion completion, link.owner.Finish());
  if (!completion.ok()) {
    return SelftestWrong("a fast registration ended with " + std::string(NtStatusName(completion.status)));
  }
  return RemoteMemory{.address = registration.base_address, .token = outcome.TokenOf(0)};
}

}  // namespace rnicd::ctl
