#include "daemon/app/host/privileges_windows.h"

#include <windows.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/status.h"
#include "base/windows_status.h"

namespace rnicd::app {
namespace {

constexpr std::array kKept = {SE_CHANGE_NOTIFY_NAME, SE_IMPERSONATE_NAME, SE_INC_WORKING_SET_NAME};

absl::Status Failed(const char* call) { return absl::InternalError(WindowsDetail(call, GetLastError())); }

bool Keeps(const LUID& privilege) {
  return std::any_of(kKept.begin(), kKept.end(), [&privilege](const char* name) {
    LUID kept;
    return LookupPrivilegeValueA(nullptr, name, &kept) != 0 && kept.LowPart == privilege.LowPart &&
           kept.HighPart == privilege.HighPart;
  });
}

// The privileges of this process's token, in a buffer with the alignment of the structure.
absl::StatusOr<std::vector<TOKEN_PRIVILEGES>> PrivilegesOf(HANDLE token) {
  DWORD bytes = 0;
  GetTokenInformation(token, TokenPrivileges, nullptr, 0, &bytes);
  std::vector<TOKEN_PRIVILEGES> buffer(bytes / sizeof(TOKEN_PRIVILEGES) + 1);
  bytes = static_cast<DWORD>(buffer.size() * sizeof(TOKEN_PRIVILEGES));
  if (GetTokenInformation(token, TokenPrivileges, buffer.data(), bytes, &bytes) == 0) {
    return Failed("GetTokenInformation");
  }
  return buffer;
}

template <typename Policy>
absl::Status Forbid(PROCESS_MITIGATION_POLICY kind, Policy policy) {
  return SetProcessMitigationPolicy(kind, &policy, sizeof(policy)) != 0 ? absl::OkStatus()
                                                                        : Failed("SetProcessMitigationPolicy");
}

}  // namespace

absl::StatusOr<size_t> RemovePrivileges() {
  HANDLE raw = nullptr;
  if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY | TOKEN_ADJUST_PRIVILEGES, &raw) == 0) {
    return Failed("OpenProcessToken");
  }
  const UniqueFd token(HandleToLong(raw));
  RNICD_ASSIGN_OR_RETURN(std::vector<TOKEN_PRIVILEGES> privileges, PrivilegesOf(raw));
  size_t removed = 0;
  for (DWORD index = 0; index < privileges.front().PrivilegeCount; ++index) {
    LUID_AND_ATTRIBUTES& privilege = privileges.front().Privileges[index];
    if (!Keeps(privilege.Luid)) {
      privilege.Attributes = SE_PRIVILEGE_REMOVED;
      ++removed;
    }
  }
  if (AdjustTokenPrivileges(raw, FALSE, privileges.data(), 0, nullptr, nullptr) == 0) {
    return Failed("AdjustTokenPrivileges");
  }
  return removed;
}

absl::Status ForbidForeignCode() {
  PROCESS_MITIGATION_DYNAMIC_CODE_POLICY code = {};
  code.ProhibitDynamicCode = 1;
  RNICD_RETURN_IF_ERROR(Forbid(ProcessDynamicCodePolicy, code));
  PROCESS_MITIGATION_EXTENSION_POINT_DISABLE_POLICY extensions = {};
  extensions.DisableExtensionPoints = 1;
  RNICD_RETURN_IF_ERROR(Forbid(ProcessExtensionPointDisablePolicy, extensions));
  PROCESS_MITIGATION_IMAGE_LOAD_POLICY images = {};
  images.NoRemoteImages = 1;
  images.NoLowMandatoryLabelImages = 1;
  RNICD_RETURN_IF_ERROR(Forbid(ProcessImageLoadPolicy, images));
  PROCESS_MITIGATION_CHILD_PROCESS_POLICY children = {};
  children.NoChildProcessCreation = 1;
  return Forbid(ProcessChildProcessPolicy, children);
}

}  // namespace rnicd::app
