#include "client/ctl/trials/selftest_checks.h"

#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace rnicd::ctl {
namespace {

constexpr uint64_t kPage = kSelftestPageBytes;

RemoteMemory RemoteOf(const MemoryRegion& region) {
  return {.address = region.base_address(), .token = region.remote_token()};
}

RemoteMemory Shifted(const RemoteMemory& remote, int64_t bytes) {
  return {.address = {remote.address.value + static_cast<uint64_t>(bytes)}, .token = remote.token};
}

// Both ends of a range, and the byte on either side of it.
absl::Status BoundsHold(SelftestScene& scene, const RemoteMemory& remote, uint64_t offset, uint64_t length) {
  const auto last = static_cast<int64_t>(length) - 1;
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  RNICD_RETURN_IF_ERROR(scene.MustReach(link, remote, offset, 1));
  RNICD_RETURN_IF_ERROR(scene.MustReach(link, Shifted(remote, last), offset + length - 1, 1));
  RNICD_RETURN_IF_ERROR(scene.MustRefuseWrite(Shifted(remote, -1), "before the first byte"));
  RNICD_RETURN_IF_ERROR(scene.MustRefuseWrite(Shifted(remote, last + 1), "behind the last byte"));
  RNICD_RETURN_IF_ERROR(scene.MustRefuseRead(Shifted(remote, -1), "before the first byte"));
  return scene.MustRefuseRead(Shifted(remote, last + 1), "behind the last byte");
}

absl::Status RegionIsReached(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(const MemoryRegion region,
                         MemoryRegion::Register(scene.memory(), kMrFlagRemoteRead | kMrFlagRemoteWrite));
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  return scene.MustReach(link, RemoteOf(region), 0, kSelftestPages * kPage);
}

absl::Status ReadOnlyRegionIsNotWritten(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(const MemoryRegion region, MemoryRegion::Register(scene.memory(), kMrFlagRemoteRead));
  return scene.MustRefuseWrite(RemoteOf(region), "into a region for reads");
}

absl::Status DeregisteredTokenIsDead(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(MemoryRegion region,
                         MemoryRegion::Register(scene.memory(), kMrFlagRemoteRead | kMrFlagRemoteWrite));
  const RemoteMemory remote = RemoteOf(region);
  RNICD_RETURN_IF_ERROR(region.Deregister());
  RNICD_RETURN_IF_ERROR(scene.MustRefuseWrite(remote, "after the deregistration"));
  return scene.MustRefuseRead(remote, "after the deregistration");
}

absl::Status RegionHasBounds(SelftestScene& scene) {
  constexpr uint64_t kOffset = kPage + 100;
  constexpr uint64_t kLength = 2 * kPage - 300;
  RNICD_ASSIGN_OR_RETURN(const MemoryRegion region,
                         MemoryRegion::Register(scene.memory(), scene.memory().bytes().subspan(kOffset, kLength),
                                                kMrFlagRemoteRead | kMrFlagRemoteWrite));
  return BoundsHold(scene, RemoteOf(region), kOffset, kLength);
}

absl::Status PrivilegedTokenIsTheOwnersAlone(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(const PrivilegedToken token, scene.owner().GetPrivilegedToken());
  const RemoteMemory remote{.address = {scene.Pages({0}).pages.front().value}, .token = {token.value}};
  RNICD_RETURN_IF_ERROR(scene.MustRefuseWrite(remote, "through the privileged token"));
  return scene.MustRefuseRead(remote, "through the privileged token");
}

absl::Status ScatteredPagesAreOneRange(SelftestScene& scene) {
  const std::vector<size_t> order = {6, 1, 7, 0, 4};
  RNICD_ASSIGN_OR_RETURN(const FastRegion region, scene.NewFastRegion());
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  RNICD_ASSIGN_OR_RETURN(const RemoteMemory remote, scene.FastRegister(link, region, scene.Pages(order)));
  for (size_t index = 0; index < order.size(); ++index) {
    const auto offset = static_cast<int64_t>(index * kPage);
    RNICD_RETURN_IF_ERROR(scene.MustReach(link, Shifted(remote, offset), order[index] * kPage, kPage));
  }
  return absl::OkStatus();
}

absl::Status RangeStartsInsideAPage(SelftestScene& scene) {
  constexpr uint32_t kFbo = 100;
  RNICD_ASSIGN_OR_RETURN(const FastRegion region, scene.NewFastRegion());
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  RNICD_ASSIGN_OR_RETURN(const RemoteMemory remote, scene.FastRegister(link, region, scene.Pages({2, 5}, kFbo)));
  RNICD_RETURN_IF_ERROR(scene.MustReach(link, remote, 2 * kPage + kFbo, kPage - kFbo));
  return scene.MustReach(link, Shifted(remote, kPage - kFbo), 5 * kPage, kPage);
}

absl::Status FastRegistrationHasBounds(SelftestScene& scene) {
  constexpr uint64_t kUnused = 200;
  RNICD_ASSIGN_OR_RETURN(const FastRegion region, scene.NewFastRegion());
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  FastRegistration registration = scene.Pages({3, 4}, 100);
  registration.length -= kUnused;
  RNICD_ASSIGN_OR_RETURN(const RemoteMemory remote, scene.FastRegister(link, region, registration));
  return BoundsHold(scene, remote, 3 * kPage + 100, registration.length);
}

absl::Status ReadOnlyFastRegistrationIsNotWritten(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(const FastRegion region, scene.NewFastRegion());
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  RNICD_ASSIGN_OR_RETURN(const RemoteMemory remote,
                         scene.FastRegister(link, region, scene.Pages({0}), kOpFlagRemoteRead));
  return scene.MustRefuseWrite(remote, "into a fast registration for reads");
}

// The owner's Send, for which the peer has no receive yet, holds back the registration behind it.
absl::Status TokenWaitsForItsTurn(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(const FastRegion region, scene.NewFastRegion());
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  RNICD_RETURN_IF_ERROR(link.owner.Post(WorkChain().Send({}, {})).status());
  const FastRegistration registration = scene.Pages({0});
  RNICD_ASSIGN_OR_RETURN(const PostOutcome outcome,
                         link.owner.Post(WorkChain().FastRegister(region, registration,
                                                                  {.flags = kOpFlagRemoteRead | kOpFlagRemoteWrite})));
  const RemoteMemory remote{.address = registration.base_address, .token = outcome.TokenOf(0)};
  RNICD_RETURN_IF_ERROR(scene.MustRefuseRead(remote, "before the request's turn"));
  RNICD_RETURN_IF_ERROR(scene.MustRefuseWrite(remote, "before the request's turn"));
  RNICD_RETURN_IF_ERROR(link.peer.Run(WorkChain().Receive({}, {}), "the receive that lets the queue go on"));
  for (const char* const what : {"the send", "the fast registration"}) {
    RNICD_ASSIGN_OR_RETURN(const Completion completion, link.owner.Finish());
    if (!completion.ok()) {
      return SelftestWrong(std::string(what) + " ended with " + std::string(NtStatusName(completion.status)));
    }
  }
  return scene.MustReach(link, remote, 0, kPage);
}

absl::Status StaleTokenIsDead(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(const FastRegion region, scene.NewFastRegion());
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  RNICD_ASSIGN_OR_RETURN(const RemoteMemory first, scene.FastRegister(link, region, scene.Pages({0})));
  RNICD_RETURN_IF_ERROR(link.owner.Run(WorkChain().Invalidate(region, {}), "the invalidation"));
  RNICD_ASSIGN_OR_RETURN(const RemoteMemory second, scene.FastRegister(link, region, scene.Pages({1})));
  RNICD_RETURN_IF_ERROR(scene.MustReach(link, second, kPage, kPage));
  return scene.MustRefuseWrite(first, "through the token of an earlier registration");
}

absl::Status InvalidatedTokenIsDead(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(const FastRegion region, scene.NewFastRegion());
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  RNICD_ASSIGN_OR_RETURN(const RemoteMemory remote, scene.FastRegister(link, region, scene.Pages({0})));
  RNICD_RETURN_IF_ERROR(scene.MustReach(link, remote, 0, kPage));
  RNICD_RETURN_IF_ERROR(link.owner.Run(WorkChain().Invalidate(region, {}), "the invalidation"));
  RNICD_RETURN_IF_ERROR(scene.MustRefuseWrite(remote, "after the invalidation"));
  return scene.MustRefuseRead(remote, "after the invalidation");
}

absl::Status PeerInvalidates(SelftestScene& scene) {
  RNICD_ASSIGN_OR_RETURN(const FastRegion region, scene.NewFastRegion());
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  RNICD_ASSIGN_OR_RETURN(const RemoteMemory remote, scene.FastRegister(link, region, scene.Pages({0})));
  RNICD_RETURN_IF_ERROR(link.owner.Post(WorkChain().Receive({}, {})).status());
  RNICD_RETURN_IF_ERROR(
      link.peer.Run(WorkChain().SendAndInvalidate({}, remote.token, {}), "the peer's send and invalidate"));
  RNICD_ASSIGN_OR_RETURN(const Completion received, link.owner.Finish());
  if (received.type != OperationType::kReceiveAndInvalidate || received.invalidated_token != remote.token) {
    return SelftestWrong("the owner's receive does not name the token that the peer invalidated");
  }
  return scene.MustRefuseWrite(remote, "after the peer's invalidation");
}

constexpr std::array kRules = {
    SelftestRule{31, "a peer reads and writes a registered region", false, RegionIsReached},
    SelftestRule{25, "a region for reads is not written", false, ReadOnlyRegionIsNotWritten},
    SelftestRule{122, "nothing before or behind a region is reached", false, RegionHasBounds},
    SelftestRule{32, "a deregistered token is dead", false, DeregisteredTokenIsDead},
    SelftestRule{107, "the privileged token is the owner's alone", false, PrivilegedTokenIsTheOwnersAlone},
    SelftestRule{53, "scattered pages are one range, in the order of the request", false, ScatteredPagesAreOneRange},
    SelftestRule{47, "a range may start inside a page", false, RangeStartsInsideAPage},
    SelftestRule{71, "nothing before or behind a fast registration is reached", false, FastRegistrationHasBounds},
    SelftestRule{72, "a fast registration for reads is not written", false, ReadOnlyFastRegistrationIsNotWritten},
    SelftestRule{67, "a token does not work before its request's turn", true, TokenWaitsForItsTurn},
    SelftestRule{68, "the token of an earlier registration is dead", false, StaleTokenIsDead},
    SelftestRule{75, "an invalidated token is dead", false, InvalidatedTokenIsDead},
    SelftestRule{83, "a peer invalidates, and the owner hears of it", false, PeerInvalidates},
};

}  // namespace

std::span<const SelftestRule> SelftestRules() { return kRules; }

}  // namespace rnicd::ctl
