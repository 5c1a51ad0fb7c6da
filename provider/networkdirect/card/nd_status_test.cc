#include "provider/networkdirect/card/nd_status.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd::provider {
namespace {

struct Row {
  HRESULT result;
  ErrorReason reason;
};

TEST(NdStatus, EveryResultHasItsReason) {
  constexpr Row kRows[] = {
      {kNdDeviceRemoved, ErrorReason::DEVICE_REMOVED},
      {kNdInsufficientResources, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {kNdNoMemory, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {kNdNoMoreEntries, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {kNdTooManyAddresses, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {kNdNotSupported, ErrorReason::DEVICE_NOT_CAPABLE},
      {kNdInvalidParameter, ErrorReason::DEVICE_FAILED},
      {kNdAccessViolation, ErrorReason::DEVICE_FAILED},
      {kNdDeviceBusy, ErrorReason::DEVICE_FAILED},
      {kNdUnsuccessful, ErrorReason::DEVICE_FAILED},
      {NdCode(0xC0001234), ErrorReason::DEVICE_FAILED},
  };
  for (const Row& row : kRows) {
    const absl::Status status = NdStatus(row.result, "IND2Adapter::Query");
    EXPECT_TRUE(FailedWith(status, row.reason)) << status;
    EXPECT_NE(status.message().find("IND2Adapter::Query: " + NdResultName(row.result)), std::string::npos) << status;
  }
}

TEST(NdStatus, ARegistrationThatFailsSaysMore) {
  EXPECT_TRUE(FailedWith(NdRegistrationStatus(kNdAccessViolation, "Register"), ErrorReason::MEMORY_NOT_PINNABLE));
  EXPECT_TRUE(FailedWith(NdRegistrationStatus(kNdDeviceBusy, "Deregister"), ErrorReason::REGION_HAS_WINDOWS));
  EXPECT_TRUE(
      FailedWith(NdRegistrationStatus(kNdInsufficientResources, "Register"), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_TRUE(FailedWith(NdRegistrationStatus(kNdDeviceRemoved, "Register"), ErrorReason::DEVICE_REMOVED));
}

TEST(NdStatus, ANameOrTheNumber) {
  EXPECT_EQ(NdResultName(kNdDeviceRemoved), "ND_DEVICE_REMOVED");
  EXPECT_EQ(NdResultName(NdCode(0xC0001234)), "0xC0001234");
}

TEST(NdOutcome, TheStatusOfARequestDependsOnItsKind) {
  constexpr CardOutcome kLost{.status = NtStatus::kIoTimeout, .peer_lost = true};
  constexpr CardOutcome kRefusedByPeer{.status = NtStatus::kAccessViolation, .at_peer = true};
  EXPECT_EQ(OutcomeOf(kNdSuccess, Nd2RequestTypeSend), CardOutcome{});
  EXPECT_EQ(OutcomeOf(kNdCanceled, Nd2RequestTypeSend).status, NtStatus::kCancelled);
  for (const HRESULT result : {kNdTimeout, kNdIoTimeout, kNdConnectionInvalid, kNdConnectionAborted,
                               kNdNetworkUnreachable, kNdHostUnreachable}) {
    EXPECT_EQ(OutcomeOf(result, Nd2RequestTypeWrite), kLost) << NdResultName(result);
  }
  EXPECT_EQ(OutcomeOf(kNdAccessViolation, Nd2RequestTypeRead), kRefusedByPeer);
  EXPECT_EQ(OutcomeOf(kNdRemoteError, Nd2RequestTypeWrite), kRefusedByPeer);
  EXPECT_EQ(OutcomeOf(kNdAccessViolation, Nd2RequestTypeSend), (CardOutcome{.status = NtStatus::kAccessViolation}));
  EXPECT_EQ(OutcomeOf(kNdRemoteError, Nd2RequestTypeSend),
            (CardOutcome{.status = NtStatus::kRemoteResources, .at_peer = true}));
  EXPECT_EQ(OutcomeOf(kNdBufferOverflow, Nd2RequestTypeReceive).status, NtStatus::kBufferOverflow);
  EXPECT_EQ(OutcomeOf(kNdDataOverrun, Nd2RequestTypeReceive).status, NtStatus::kBufferOverflow);
  EXPECT_EQ(OutcomeOf(kNdDataOverrun, Nd2RequestTypeSend).status, NtStatus::kDataOverrun);
  EXPECT_EQ(OutcomeOf(kNdInvalidDeviceRequest, Nd2RequestTypeBind).status, NtStatus::kInvalidDeviceRequest);
  EXPECT_EQ(OutcomeOf(kNdDeviceRemoved, Nd2RequestTypeSend),
            (CardOutcome{.status = NtStatus::kCancelled, .peer_lost = true}));
  EXPECT_EQ(OutcomeOf(kNdInternalError, Nd2RequestTypeSend).status, NtStatus::kInternalError);
}

}  // namespace
}  // namespace rnicd::provider
