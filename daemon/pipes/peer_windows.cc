#include <windows.h>
// Behind windows.h, whose types it uses.
#include <sddl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <vector>

#include "daemon/pipes/peer.h"

namespace rnicd::pipes {
namespace {

// SECURITY_MAX_SID_SIZE and the structure before it.
constexpr size_t kTokenUserBytes = sizeof(TOKEN_USER) + 68;

absl::Status NotNamed(const char* why) { return absl::UnauthenticatedError(why); }

// Empty when there is no memory for it.
std::string TextOf(PSID sid) {
  char* text = nullptr;
  if (ConvertSidToStringSidA(sid, &text) == 0) {
    return {};
  }
  std::string copy(text);
  LocalFree(text);
  return copy;
}

// Empty when the token cannot be read.
std::string SidOfToken(HANDLE token) {
  alignas(TOKEN_USER) std::array<char, kTokenUserBytes> buffer;
  DWORD bytes = 0;
  if (GetTokenInformation(token, TokenUser, buffer.data(), buffer.size(), &bytes) == 0) {
    return {};
  }
  return TextOf(reinterpret_cast<const TOKEN_USER*>(buffer.data())->User.Sid);
}

// A token has at most 1,024 groups. A group that only denies gives its member nothing.
std::vector<std::string> GroupsOfToken(HANDLE token) {
  DWORD bytes = 0;
  GetTokenInformation(token, TokenGroups, nullptr, 0, &bytes);
  // Its type has the alignment of the structure.
  std::vector<TOKEN_GROUPS> buffer(bytes / sizeof(TOKEN_GROUPS) + 1);
  bytes = static_cast<DWORD>(buffer.size() * sizeof(TOKEN_GROUPS));
  std::vector<std::string> sids;
  if (GetTokenInformation(token, TokenGroups, buffer.data(), bytes, &bytes) == 0) {
    return sids;
  }
  for (DWORD index = 0; index < buffer.front().GroupCount; ++index) {
    const SID_AND_ATTRIBUTES& group = buffer.front().Groups[index];
    if ((group.Attributes & SE_GROUP_ENABLED) != 0 && (group.Attributes & SE_GROUP_USE_FOR_DENY_ONLY) == 0) {
      sids.push_back(TextOf(group.Sid));
    }
  }
  return sids;
}

uint64_t NumberOf(const FILETIME& time) { return uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime; }

uint64_t Now() {
  FILETIME now;
  GetSystemTimePreciseAsFileTime(&now);
  return NumberOf(now);
}

// In 100 ns since 1601.
std::optional<uint64_t> CreationTimeOf(HANDLE process) {
  FILETIME created;
  FILETIME unused[3];
  return GetProcessTimes(process, &created, &unused[0], &unused[1], &unused[2]) != 0 ? std::optional(NumberOf(created))
                                                                                     : std::nullopt;
}

// SID of the user whose token opened the pipe; empty for an anonymous one.
std::string SidOfOpener(HANDLE pipe) {
  if (ImpersonateNamedPipeClient(pipe) == 0) {
    return {};
  }
  HANDLE raw = nullptr;
  const bool opened = OpenThreadToken(GetCurrentThread(), TOKEN_QUERY, /*OpenAsSelf=*/TRUE, &raw) != 0;
  // This thread serves everybody, and would go on as this client.
  if (RevertToSelf() == 0) {
    std::abort();
  }
  const UniqueFd token(opened ? HandleToLong(raw) : -1);
  return opened ? SidOfToken(raw) : std::string();
}

UniqueFd TokenOf(int process) {
  HANDLE raw = nullptr;
  return UniqueFd(OpenProcessToken(LongToHandle(process), TOKEN_QUERY, &raw) != 0 ? HandleToLong(raw) : -1);
}

std::shared_ptr<const std::vector<std::string>> GroupsOfProcess(int process) {
  const UniqueFd token = TokenOf(process);
  return std::make_shared<const std::vector<std::string>>(token.valid() ? GroupsOfToken(LongToHandle(token.get()))
                                                                        : std::vector<std::string>());
}

}  // namespace

bool WindowsProcess::HasExited(std::chrono::milliseconds wait) const {
  const auto limit = static_cast<DWORD>(std::max<int64_t>(wait.count(), 0));
  return WaitForSingleObject(LongToHandle(handle_.get()), limit) == WAIT_OBJECT_0;
}

std::string SidOfProcess(int process) {
  const UniqueFd token = TokenOf(process);
  return token.valid() ? SidOfToken(LongToHandle(token.get())) : std::string();
}

std::string SidOfThisProcess() { return SidOfProcess(HandleToLong(GetCurrentProcess())); }

absl::StatusOr<Peer> IdentifyPeer(int pipe, core::Role role) {
  const uint64_t seen = Now();
  ULONG pid = 0;
  if (GetNamedPipeClientProcessId(LongToHandle(pipe), &pid) == 0) {
    return NotNamed("the pipe has no client process");
  }
  HANDLE raw = OpenProcess(SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_DUP_HANDLE, FALSE, pid);
  if (raw == nullptr) {
    return GetLastError() == ERROR_NO_SYSTEM_RESOURCES || GetLastError() == ERROR_NOT_ENOUGH_MEMORY
               ? absl::ResourceExhaustedError("no handle left for the peer's process")
               : NotNamed("the peer's process cannot be opened");
  }
  Peer peer;
  peer.process = std::make_shared<WindowsProcess>(UniqueFd(HandleToLong(raw)));
  const std::optional<uint64_t> created = CreationTimeOf(raw);
  if (!created.has_value() || *created > seen) {
    return NotNamed("the peer's process is newer than its connection");
  }
  std::string sid = SidOfProcess(peer.process->handle());
  if (sid.empty() || peer.process->HasExited({})) {
    return NotNamed("the peer's user cannot be read");
  }
  peer.caller = core::Caller{.process = {.high = *created, .low = pid},
                             .pid = static_cast<int32_t>(pid),
                             .uid = core::kNoUser,
                             .gid = core::kNoUser,
                             .sid = std::move(sid),
                             .group_sids = GroupsOfProcess(peer.process->handle()),
                             .role = role,
                             .container = {},
                             .handle = peer.process};
  return peer;
}

absl::Status VerifyUser(int pipe, const core::Caller& caller) {
  return SidOfOpener(LongToHandle(pipe)) == caller.sid ? absl::OkStatus()
                                                       : NotNamed("the pipe was opened with another user's token");
}

}  // namespace rnicd::pipes
