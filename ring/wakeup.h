#pragma once

#include <chrono>
#include <cstdint>

namespace rnicd::ring {

// Wakes a client that sleeps on the word, if `wakeup` requests that; true if it requests a byte in a pipe instead. Adds
// 1 to the word, whose value is `wakes`, so that a client that is about to sleep does not sleep.
bool WakeSleeper(uint32_t wakeup, uint32_t& word, uint32_t* wakes);

// Sleeps until another process wakes the word, unless it has changed from `seen` before. May return early. On Windows
// only another thread of the same process can wake it: a client of another process waits for the event of its pipe.
// Source: futex(2), FUTEX_WAIT.
void FutexWait(uint32_t& word, uint32_t seen, std::chrono::nanoseconds time);

}  // namespace rnicd::ring
