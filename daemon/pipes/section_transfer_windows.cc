#include <windows.h>
// Behind windows.h, whose types it uses.
#include <winternl.h>

#include <utility>

#include "base/status.h"
#include "base/windows_status.h"
#include "daemon/pipes/section_transfer.h"

namespace rnicd::pipes {
namespace {

constexpr ACCESS_MASK kSectionRights = SECTION_MAP_READ | SECTION_MAP_WRITE | SECTION_QUERY;
// To ring a doorbell, and to wait for an announcement.
constexpr ACCESS_MASK kEventRights = EVENT_MODIFY_STATE | SYNCHRONIZE;

// The rights of a handle of the daemon's; none when they cannot be read.
ACCESS_MASK RightsOf(const UniqueFd& handle) {
  OBJECT_BASIC_INFORMATION facts;
  return NT_SUCCESS(NtQueryObject(LongToHandle(handle.get()), ObjectBasicInformation, &facts, sizeof(facts), nullptr))
             ? facts.GrantedAccess
             : 0;
}

}  // namespace

// First with the client's own rights: a duplicate with others would be checked against the daemon's user, and could
// have rights that the client lacks.
absl::StatusOr<UniqueFd> TakeFromClient(const WindowsProcess& client, uint32_t handle, Os& os) {
  HANDLE raw = nullptr;
  if (DuplicateHandle(LongToHandle(client.handle()), LongToHandle(static_cast<LONG>(handle)), GetCurrentProcess(), &raw,
                      0, FALSE, DUPLICATE_SAME_ACCESS) == 0) {
    return MakeErrorWithDetail(ErrorReason::MEMORY_NOT_MEMORY, WindowsDetail("DuplicateHandle", GetLastError()));
  }
  const UniqueFd theirs(HandleToLong(raw));
  RNICD_ASSIGN_OR_RETURN(const MemoryFileFacts facts, os.Inspect(theirs.get()));
  if (!facts.is_memory_file) {
    return MakeError(ErrorReason::MEMORY_NOT_MEMORY);
  }
  if (DuplicateHandle(GetCurrentProcess(), raw, GetCurrentProcess(), &raw, RightsOf(theirs) & kSectionRights, FALSE,
                      0) == 0) {
    return LastErrorStatus("DuplicateHandle");
  }
  return UniqueFd(HandleToLong(raw));
}

absl::StatusOr<uint32_t> GiveToClient(const WindowsProcess& client, const UniqueFd& handle, Os& os) {
  RNICD_ASSIGN_OR_RETURN(const MemoryFileFacts facts, os.Inspect(handle.get()));
  // An announcement's handle only waits: it gains no right here.
  const ACCESS_MASK rights = RightsOf(handle) & (facts.is_memory_file ? kSectionRights : kEventRights);
  HANDLE given = nullptr;
  if (DuplicateHandle(GetCurrentProcess(), LongToHandle(handle.get()), LongToHandle(client.handle()), &given, rights,
                      FALSE, 0) == 0) {
    return MakeErrorWithDetail(ErrorReason::INTERNAL_FAULT, WindowsDetail("DuplicateHandle", GetLastError()));
  }
  return static_cast<uint32_t>(HandleToLong(given));
}

}  // namespace rnicd::pipes
