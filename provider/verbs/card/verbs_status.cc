#include "provider/verbs/card/verbs_status.h"

#include <linux/capability.h>
#include <sys/resource.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/errno_status.h"
#include "base/status.h"

namespace rnicd::provider {
namespace {

ErrorReason ReasonOf(int error) {
  switch (error) {
    case ENODEV:
    case EIO:
      return ErrorReason::DEVICE_REMOVED;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case EAGAIN:
      return ErrorReason::DEVICE_OUT_OF_RESOURCES;
    case EOPNOTSUPP:
    case ENOSYS:
      return ErrorReason::DEVICE_NOT_CAPABLE;
    default:
      return ErrorReason::DEVICE_FAILED;
  }
}

// The number after "name:" at the beginning of a line.
std::optional<uint64_t> NumberOf(std::string_view text, std::string_view name, int base) {
  const std::string label = "\n" + std::string(name) + ":";
  const size_t line = text.find(label);
  if (line == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t begin = text.find_first_not_of(" \t", line + label.size());
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value, base);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

PinBudget PinBudgetOf(std::string_view process_status, uint64_t limit_bytes) {
  constexpr uint64_t kKibibyte = 1024;
  const std::optional<uint64_t> capabilities = NumberOf(process_status, "CapEff", 16);
  const std::optional<uint64_t> pinned = NumberOf(process_status, "VmPin", 10);
  const bool exempt = capabilities.has_value() && ((*capabilities >> CAP_IPC_LOCK) & 1) != 0;
  // Without VmPin in the status there is nothing to compare with the limit.
  if (limit_bytes == RLIM_INFINITY || exempt || !pinned.has_value()) {
    return {};
  }
  // The kernel compares pinned memory and locked memory with the limit separately, never their sum.
  const uint64_t used = *pinned * kKibibyte;
  return {.unlimited = false, .free_bytes = limit_bytes > used ? limit_bytes - used : 0};
}

PinBudget ReadPinBudget() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
    return {};
  }
  std::ifstream file("/proc/self/status");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return PinBudgetOf(text, limit.rlim_cur);
}

bool MeansRemoved(int error) { return ReasonOf(error) == ErrorReason::DEVICE_REMOVED; }

absl::Status VerbStatus(int error, std::string_view call) {
  return MakeErrorWithDetail(ReasonOf(error), ErrnoDetail(call, error));
}

absl::Status RegistrationStatus(int error, uint64_t bytes, const PinBudget& budget) {
  constexpr std::string_view kCall = "ibv_reg_mr";
  const bool above_budget = !budget.unlimited && budget.free_bytes < bytes;
  if (error == EFAULT) {
    return MakeErrorWithDetail(ErrorReason::MEMORY_NOT_PINNABLE, ErrnoDetail(kCall, error));
  }
  if (error == EPERM || (error == ENOMEM && above_budget)) {
    return MakeErrorWithDetail(ErrorReason::DEVICE_MEMLOCK_LIMIT, ErrnoDetail(kCall, error));
  }
  return VerbStatus(error, kCall);
}

absl::Status DmabufStatus(int error) {
  const bool is_unknown = error == EPROTONOSUPPORT || error == ENOTTY;
  const ErrorReason reason = is_unknown ? ErrorReason::DEVICE_NOT_CAPABLE : ReasonOf(error);
  const bool is_the_cards = reason == ErrorReason::DEVICE_NOT_CAPABLE || reason == ErrorReason::DEVICE_OUT_OF_RESOURCES;
  return MakeErrorWithDetail(is_the_cards ? reason : ErrorReason::MEMORY_NOT_PINNABLE,
                             ErrnoDetail("ibv_reg_dmabuf_mr", error));
}

NtStatus CompletionStatus(ibv_wc_status status, WorkKind kind) {
  const bool receive = kind == WorkKind::kReceive;
  switch (status) {
    case IBV_WC_SUCCESS:
      return NtStatus::kSuccess;
    case IBV_WC_WR_FLUSH_ERR:
      return NtStatus::kCancelled;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return NtStatus::kIoTimeout;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return NtStatus::kAccessViolation;
    case IBV_WC_LOC_QP_OP_ERR:
      // rxe reports this status for a bad local key, for a message longer than its receive, and for a request it cannot
      // execute.
      if (kind == WorkKind::kBind) {
        return NtStatus::kInvalidDeviceRequest;
      }
      return receive ? NtStatus::kBufferOverflow : NtStatus::kAccessViolation;
    case IBV_WC_LOC_LEN_ERR:
      return receive ? NtStatus::kBufferOverflow : NtStatus::kDataOverrun;
    case IBV_WC_MW_BIND_ERR:
      return NtStatus::kInvalidDeviceRequest;
    case IBV_WC_REM_INV_REQ_ERR:
      return receive ? NtStatus::kInvalidDeviceRequest : NtStatus::kAccessViolation;
    case IBV_WC_REM_OP_ERR:
      return NtStatus::kRemoteResources;
    default:
      return NtStatus::kInternalError;
  }
}

bool IsRemoteRefusal(ibv_wc_status status) {
  return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_OP_ERR ||
         status == IBV_WC_REM_ABORT_ERR;
}

bool IsPeerSilent(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR || status == IBV_WC_RESP_TIMEOUT_ERR;
}

}  // namespace rnicd::provider
