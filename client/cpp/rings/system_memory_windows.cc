#include <windows.h>

#include "base/system/os.h"
#include "client/cpp/rings/system_memory.h"

namespace rnicd::inline client {

std::optional<uint64_t> FileBytes(int file) {
  const auto facts = SystemOs().Inspect(file);
  return facts.ok() ? std::optional(facts->size) : std::nullopt;
}

// A section has all its pages; each gets its entry in the page table when it is first used.
void FillPageTable(std::span<std::byte> /*mapping*/) {}

// A child begins without any.
bool KeepFromChildren(std::span<std::byte> /*mapping*/) { return true; }

bool IsWokenThroughMemory() { return false; }

void SetDoorbell(int doorbell) { SetEvent(LongToHandle(doorbell)); }

// Waiting resets the event.
void WaitForPipe(int pipe, std::chrono::nanoseconds time) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  WaitForSingleObject(LongToHandle(pipe), static_cast<DWORD>(milliseconds));
}

bool DrainPipe(int pipe) {
  ResetEvent(LongToHandle(pipe));
  return true;
}

}  // namespace rnicd::inline client
