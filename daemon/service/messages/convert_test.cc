#include "daemon/service/messages/convert.h"

#include <gtest/gtest.h>

#include <set>

#include "base/ndk/access_rights.h"
#include "daemon/core/session/session.h"

namespace rnicd::service {
namespace {

TEST(Convert, EachKindOfRequestHasItsValueAndNoValueIsLeft) {
  const std::pair<core::RequestKind, v1::RequestKind> rows[] = {
      {core::RequestKind::kRegisterMr, v1::REQUEST_KIND_REGISTER_MR},
      {core::RequestKind::kDeregisterMr, v1::REQUEST_KIND_DEREGISTER_MR},
      {core::RequestKind::kCloseMr, v1::REQUEST_KIND_CLOSE_MR},
      {core::RequestKind::kClosePd, v1::REQUEST_KIND_CLOSE_PD},
      {core::RequestKind::kInitializeFastRegisterMr, v1::REQUEST_KIND_INITIALIZE_FAST_REGISTER_MR},
      {core::RequestKind::kCloseCq, v1::REQUEST_KIND_CLOSE_CQ},
      {core::RequestKind::kCloseQp, v1::REQUEST_KIND_CLOSE_QP},
      {core::RequestKind::kCloseMw, v1::REQUEST_KIND_CLOSE_MW},
      {core::RequestKind::kConnect, v1::REQUEST_KIND_CONNECT},
      {core::RequestKind::kCompleteConnect, v1::REQUEST_KIND_COMPLETE_CONNECT},
      {core::RequestKind::kAccept, v1::REQUEST_KIND_ACCEPT},
      {core::RequestKind::kDisconnect, v1::REQUEST_KIND_DISCONNECT},
      {core::RequestKind::kCloseListener, v1::REQUEST_KIND_CLOSE_LISTENER},
      {core::RequestKind::kCloseConnector, v1::REQUEST_KIND_CLOSE_CONNECTOR},
      {core::RequestKind::kCloseSharedEndpoint, v1::REQUEST_KIND_CLOSE_SHARED_ENDPOINT},
  };
  static_assert(std::size(rows) == v1::RequestKind_ARRAYSIZE - 1);
  for (const auto& [kind, wire] : rows) {
    EXPECT_EQ(ToWire(core::Event{.body = core::RequestCompleted{.kind = kind}}).request_completed().kind(), wire);
  }
}

TEST(Convert, ACompletedRequestSaysItsOutcome) {
  const Registration registration{
      .base_address = {1}, .length = 2, .local_token = LocalToken{3}, .remote_token = RemoteToken{4}};
  const auto done = ToWire(
      core::Event{.sequence = 9,
                  .body = core::RequestCompleted{.request_context = 5, .object_id = 6, .registration = registration}});
  EXPECT_EQ(done.ShortDebugString(),
            "sequence: 9 request_completed { kind: REQUEST_KIND_REGISTER_MR request_context: 5 object_id: 6 "
            "registration { base_virtual_address: 1 length: 2 local_token: 3 remote_token: 4 } }");
  const auto failed =
      ToWire(
          core::Event{.body = core::RequestCompleted{.object_id = 6, .status = MakeError(ErrorReason::DEVICE_REMOVED)}})
          .request_completed();
  EXPECT_EQ(failed.error().reason(), v1::ERROR_REASON_DEVICE_REMOVED);
  EXPECT_EQ(failed.ntstatus(), failed.error().ntstatus());
  EXPECT_NE(failed.ntstatus(), 0u);
  EXPECT_FALSE(failed.has_registration());
}

TEST(Convert, EveryOtherEventSaysAllThatItHas) {
  const std::pair<core::EventBody, std::string> rows[] = {
      {core::SessionEnding{core::EndCause::kEvicted}, "session_ending { cause: \"evicted\" }"},
      {core::CqNotified{.queue = {1}, .context = 2, .status = NtStatus::kCancelled},
       "cq_notification { cq_id: 1 cq_context: 2 ntstatus: " +
           std::to_string(static_cast<uint32_t>(NtStatus::kCancelled)) + " }"},
      {core::QpDisconnected{.queue_pair = {1}, .context = 2}, "qp_disconnected { qp_id: 1 qp_context: 2 }"},
      {core::ConnectRequested{.listener = {1}, .context = 2, .connector = {3}},
       "connect_event { listener_id: 1 listener_context: 2 connector_id: 3 }"},
      {core::ConnectorDisconnected{.connector = {1}, .context = 2},
       "disconnect_event { connector_id: 1 disconnect_context: 2 }"},
      {core::AdapterRemoved{.adapter = {1}}, "adapter_removed { adapter_id: 1 }"},
      {core::MemoryProgress{.context = 1, .populated_bytes = 2, .size = 3},
       "memory_progress { progress_context: 1 populated_bytes: 2 size: 3 }"},
  };
  static_assert(std::size(rows) == std::variant_size_v<core::EventBody> - 1);
  for (const auto& [body, text] : rows) {
    EXPECT_EQ(ToWire(core::Event{.sequence = 7, .body = body}).ShortDebugString(), "sequence: 7 " + text);
  }
}

TEST(Convert, EachResourceOfALedgerSaysItsUseAndLimit) {
  core::Limits limits;
  limits[core::Resource::kRegions] = 9;
  const auto ledger = std::make_shared<core::Ledger>(limits, nullptr);
  ASSERT_TRUE(ledger->Take(core::Resource::kRegions, 4).ok());
  v1::GetSessionResponse response;
  ToWire(*ledger, response.mutable_resources());
  std::set<std::string> names;
  for (const v1::ResourceUse& use : response.resources()) {
    names.insert(use.name());
    EXPECT_EQ(use.limit(), use.name() == "regions" ? 9u : 0u) << use.name();
    if (use.name() == "regions") {
      EXPECT_EQ(use.used(), 4u);
    }
  }
  EXPECT_EQ(names.size(), core::kResourceCount);
}

TEST(Convert, ARegionSaysAllThatIsSeenOfIt) {
  EXPECT_EQ(ToWire(core::RegionView{.adapter_name = "soft0",
                                    .fast_register = true,
                                    .state = "registered",
                                    .base = {1},
                                    .length = 2,
                                    .pages = 3,
                                    .page_bytes = 4096,
                                    .rights = *AccessRightsFromMrFlags(5)})
                .ShortDebugString(),
            "adapter_name: \"soft0\" fast_register: true state: \"registered\" base_virtual_address: 1 length: 2 "
            "pages: 3 page_size: PAGE_SIZE_4KIB flags: 5");
}

}  // namespace
}  // namespace rnicd::service
