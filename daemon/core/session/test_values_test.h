#pragma once

// Values that many of core's unit tests share, each under one name.

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "base/units.h"
#include "base/waiting_fixture.h"
#include "daemon/core/session/session.h"

namespace rnicd::core {

inline constexpr uint64_t kPage = kNdkPageBytes;
// The uid of a pod, as Kubernetes writes it.
inline constexpr char kPod[] = "0123abcd-0123-4567-89ab-0123456789ab";

// A class of the memory pool: how many files of which size it keeps ready.
inline PoolClass Files(uint64_t bytes, uint32_t files) { return {.pages = {}, .file_bytes = bytes, .files = files}; }
inline Instant TestDeadline() { return std::chrono::steady_clock::now() + kTimeout; }
// The answer as an event with this context.
constexpr PendingChoice ToEvents(uint64_t context) { return {.to_events = true, .request_context = context}; }

}  // namespace rnicd::core
