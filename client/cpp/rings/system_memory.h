#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// System calls on memory that this library shares with the daemon, in addition to base/system/os.h.
namespace rnicd::inline client {

// Bytes of a memory file; nothing for any other file.
std::optional<uint64_t> FileBytes(int file);
// Fills the page table of a mapping, where the system supports that.
void FillPageTable(std::span<std::byte> mapping);
// Keeps a mapping from children of this process. False where that failed.
bool KeepFromChildren(std::span<std::byte> mapping);
// Whether a write of the daemon into memory that both map can wake a thread here. On Windows it cannot.
bool IsWokenThroughMemory();
// Wakes the daemon's thread that waits on a ring's doorbell.
void SetDoorbell(int doorbell);
// Waits until the pipe of a ring or queue can be read, or the time is over.
void WaitForPipe(int pipe, std::chrono::nanoseconds time);
// Reads the pipe until it is empty. False when the daemon has closed it.
bool DrainPipe(int pipe);

}  // namespace rnicd::inline client
