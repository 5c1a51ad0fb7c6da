#include "provider/verbs/card/verbs_status.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "base/status.h"

namespace rnicd::provider {
namespace {

constexpr PinBudget kTight{.unlimited = false, .free_bytes = 4096};

TEST(VerbStatus, EveryErrnoHasOneReason) {
  const std::map<int, ErrorReason> rows = {
      {ENODEV, ErrorReason::DEVICE_REMOVED},          {EIO, ErrorReason::DEVICE_REMOVED},
      {ENOMEM, ErrorReason::DEVICE_OUT_OF_RESOURCES}, {ENOSPC, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {EMFILE, ErrorReason::DEVICE_OUT_OF_RESOURCES}, {EAGAIN, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {EOPNOTSUPP, ErrorReason::DEVICE_NOT_CAPABLE},  {ENOSYS, ErrorReason::DEVICE_NOT_CAPABLE}};
  for (int error = 1; error < 134; ++error) {
    const auto row = rows.find(error);
    const ErrorReason expected = row == rows.end() ? ErrorReason::DEVICE_FAILED : row->second;
    EXPECT_TRUE(FailedWith(VerbStatus(error, "ibv_create_qp"), expected)) << error;
  }
}

TEST(VerbStatus, TheMessageNamesTheVerbAndTheErrno) {
  EXPECT_TRUE(absl::StrContains(VerbStatus(EIO, "ibv_alloc_pd").message(), "(ibv_alloc_pd: EIO)"));
  EXPECT_TRUE(absl::StrContains(VerbStatus(99999, "ibv_alloc_pd").message(), "(ibv_alloc_pd: 99999)"));
  EXPECT_TRUE(absl::StrContains(RegistrationStatus(ENOMEM, 1, {}).message(), "(ibv_reg_mr: ENOMEM)"));
  EXPECT_TRUE(absl::StrContains(RegistrationStatus(EFAULT, 1, {}).message(), "(ibv_reg_mr: EFAULT)"));
  EXPECT_TRUE(absl::StrContains(RegistrationStatus(EPERM, 1, {}).message(), "(ibv_reg_mr: EPERM)"));
}

TEST(RegistrationStatus, AHoleIsNotPinnable) {
  EXPECT_TRUE(FailedWith(RegistrationStatus(EFAULT, 1, {}), ErrorReason::MEMORY_NOT_PINNABLE));
  EXPECT_TRUE(FailedWith(RegistrationStatus(EFAULT, 1 << 20, kTight), ErrorReason::MEMORY_NOT_PINNABLE));
}

TEST(RegistrationStatus, ALimitOfZeroIsTheMemlockLimit) {
  EXPECT_TRUE(FailedWith(RegistrationStatus(EPERM, 1, kTight), ErrorReason::DEVICE_MEMLOCK_LIMIT));
}

TEST(RegistrationStatus, WantOfMemoryIsTheLimitsOnlyWhenTheLimitIsBelowTheNeed) {
  EXPECT_TRUE(FailedWith(RegistrationStatus(ENOMEM, 4097, kTight), ErrorReason::DEVICE_MEMLOCK_LIMIT));
  EXPECT_TRUE(FailedWith(RegistrationStatus(ENOMEM, 4096, kTight), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_TRUE(FailedWith(RegistrationStatus(ENOMEM, UINT64_MAX, {}), ErrorReason::DEVICE_OUT_OF_RESOURCES));
}

TEST(RegistrationStatus, AnyOtherErrnoSaysWhatItSaysElsewhere) {
  for (const int error : {EIO, ENODEV, ENOSPC, EAGAIN, EMFILE, EOPNOTSUPP, ENOSYS, EINVAL, EBUSY, EACCES}) {
    EXPECT_EQ(ErrorInfoOf(RegistrationStatus(error, 1 << 20, kTight)).reason,
              ErrorInfoOf(VerbStatus(error, "ibv_reg_mr")).reason)
        << error;
  }
}

// The exporter of a dma-buf is a driver of the client's choice: its errors are no information about the card.
TEST(VerbStatus, OfADmabufNeverSaysThatTheCardWasRemovedOrFailed) {
  const struct {
    int error;
    ErrorReason reason;
  } kRows[] = {
      {EOPNOTSUPP, ErrorReason::DEVICE_NOT_CAPABLE},
      {ENOSYS, ErrorReason::DEVICE_NOT_CAPABLE},
      {EPROTONOSUPPORT, ErrorReason::DEVICE_NOT_CAPABLE},
      {ENOTTY, ErrorReason::DEVICE_NOT_CAPABLE},
      {ENOMEM, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {ENOSPC, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {EIO, ErrorReason::MEMORY_NOT_PINNABLE},
      {ENODEV, ErrorReason::MEMORY_NOT_PINNABLE},
      {EINVAL, ErrorReason::MEMORY_NOT_PINNABLE},
      {EBUSY, ErrorReason::MEMORY_NOT_PINNABLE},
      {EPERM, ErrorReason::MEMORY_NOT_PINNABLE},
      {EFAULT, ErrorReason::MEMORY_NOT_PINNABLE},
  };
  for (const auto& row : kRows) {
    EXPECT_TRUE(FailedWith(DmabufStatus(row.error), row.reason)) << row.error;
  }
}

std::string StatusText(std::string_view pinned_kib, std::string_view capabilities) {
  return "Name:\tVmPin:\nVmLck:\t      64 kB\nVmPin:\t" + std::string(pinned_kib) + " kB\nCapPrm:\t000001ffffffffff\n" +
         "CapEff:\t" + std::string(capabilities) + "\nCapBnd:\t000001ffffffffff\n";
}

TEST(PinBudget, IsTheLimitLessWhatIsPinned) {
  const PinBudget budget = PinBudgetOf(StatusText("     100", "0000000000000000"), 1 << 20);
  EXPECT_FALSE(budget.unlimited);
  EXPECT_EQ(budget.free_bytes, (1u << 20) - 100u * 1024);
  EXPECT_EQ(PinBudgetOf(StatusText("    1024", "0000000000000000"), 1 << 20).free_bytes, 0u);
  EXPECT_EQ(PinBudgetOf(StatusText("    2048", "0000000000000000"), 1 << 20).free_bytes, 0u) << "lowered afterwards";
}

TEST(PinBudget, OnlyCapIpcLockOrNoLimitExempts) {
  constexpr std::string_view kPinned = "       0";
  EXPECT_TRUE(PinBudgetOf(StatusText(kPinned, "0000000000004000"), 0).unlimited);
  EXPECT_TRUE(PinBudgetOf(StatusText(kPinned, "000001ffffffffff"), 0).unlimited);
  EXPECT_FALSE(PinBudgetOf(StatusText(kPinned, "000001ffffffbfff"), 0).unlimited) << "every other capability";
  EXPECT_TRUE(PinBudgetOf(StatusText(kPinned, "0000000000000000"), RLIM_INFINITY).unlimited);
}

TEST(PinBudget, AKernelThatDoesNotSayWhatIsPinnedGivesNoFigure) {
  for (const std::string_view text : {"", "VmPin", "\nVmPin:", "\nVmPin:\t\n", "\nVmPin:\tmany kB\n"}) {
    EXPECT_TRUE(PinBudgetOf(text, 4096).unlimited) << text;
  }
}

// Runs in a child process, so that this process keeps its capabilities and its limit.
[[noreturn]] void ReadWithoutCapabilities() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1 << 16);
  setrlimit(RLIMIT_MEMLOCK, &limit);
  // A change from root to the user nobody drops all capabilities; other users have none.
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
    _exit(2);
  }
  const PinBudget budget = ReadPinBudget();
  _exit(!budget.unlimited && budget.free_bytes == limit.rlim_cur ? 0 : 1);
}

TEST(PinBudget, OfThisProcessIsRead) { EXPECT_EXIT(ReadWithoutCapabilities(), testing::ExitedWithCode(0), ""); }

struct StatusRow {
  ibv_wc_status status;
  NtStatus initiator;
  NtStatus bind;
  NtStatus receive;
};

constexpr StatusRow Same(ibv_wc_status status, NtStatus nt) { return {status, nt, nt, nt}; }

TEST(CompletionStatus, EveryHardwareStatusHasItsRow) {
  const StatusRow rows[] = {
      Same(IBV_WC_SUCCESS, NtStatus::kSuccess),
      {IBV_WC_LOC_LEN_ERR, NtStatus::kDataOverrun, NtStatus::kDataOverrun, NtStatus::kBufferOverflow},
      {IBV_WC_LOC_QP_OP_ERR, NtStatus::kAccessViolation, NtStatus::kInvalidDeviceRequest, NtStatus::kBufferOverflow},
      Same(IBV_WC_LOC_EEC_OP_ERR, NtStatus::kInternalError),
      Same(IBV_WC_LOC_PROT_ERR, NtStatus::kAccessViolation),
      Same(IBV_WC_WR_FLUSH_ERR, NtStatus::kCancelled),
      Same(IBV_WC_MW_BIND_ERR, NtStatus::kInvalidDeviceRequest),
      Same(IBV_WC_BAD_RESP_ERR, NtStatus::kInternalError),
      Same(IBV_WC_LOC_ACCESS_ERR, NtStatus::kAccessViolation),
      {IBV_WC_REM_INV_REQ_ERR, NtStatus::kAccessViolation, NtStatus::kAccessViolation, NtStatus::kInvalidDeviceRequest},
      Same(IBV_WC_REM_ACCESS_ERR, NtStatus::kAccessViolation),
      Same(IBV_WC_REM_OP_ERR, NtStatus::kRemoteResources),
      Same(IBV_WC_RETRY_EXC_ERR, NtStatus::kIoTimeout),
      Same(IBV_WC_RNR_RETRY_EXC_ERR, NtStatus::kIoTimeout),
      Same(IBV_WC_LOC_RDD_VIOL_ERR, NtStatus::kInternalError),
      Same(IBV_WC_REM_INV_RD_REQ_ERR, NtStatus::kInternalError),
      Same(IBV_WC_REM_ABORT_ERR, NtStatus::kInternalError),
      Same(IBV_WC_INV_EECN_ERR, NtStatus::kInternalError),
      Same(IBV_WC_INV_EEC_STATE_ERR, NtStatus::kInternalError),
      Same(IBV_WC_FATAL_ERR, NtStatus::kInternalError),
      Same(IBV_WC_RESP_TIMEOUT_ERR, NtStatus::kIoTimeout),
      Same(IBV_WC_GENERAL_ERR, NtStatus::kInternalError),
      Same(IBV_WC_TM_ERR, NtStatus::kInternalError),
      Same(IBV_WC_TM_RNDV_INCOMPLETE, NtStatus::kInternalError),
  };
  int expected = 0;
  for (const StatusRow& row : rows) {
    ASSERT_EQ(row.status, expected++) << "a row is missing";
    EXPECT_EQ(CompletionStatus(row.status, WorkKind::kInitiator), row.initiator) << ibv_wc_status_str(row.status);
    EXPECT_EQ(CompletionStatus(row.status, WorkKind::kBind), row.bind) << ibv_wc_status_str(row.status);
    EXPECT_EQ(CompletionStatus(row.status, WorkKind::kReceive), row.receive) << ibv_wc_status_str(row.status);
  }
}

TEST(CompletionStatus, RefusalAndSilenceAreToldApart) {
  for (int number = IBV_WC_SUCCESS; number <= IBV_WC_TM_RNDV_INCOMPLETE; ++number) {
    const auto status = static_cast<ibv_wc_status>(number);
    const bool refusal = number == IBV_WC_REM_ACCESS_ERR || number == IBV_WC_REM_INV_REQ_ERR ||
                         number == IBV_WC_REM_OP_ERR || number == IBV_WC_REM_ABORT_ERR;
    EXPECT_EQ(IsRemoteRefusal(status), refusal) << ibv_wc_status_str(status);
    const bool timeout = CompletionStatus(status, WorkKind::kInitiator) == NtStatus::kIoTimeout;
    EXPECT_EQ(IsPeerSilent(status), timeout) << ibv_wc_status_str(status);
  }
}

}  // namespace
}  // namespace rnicd::provider
