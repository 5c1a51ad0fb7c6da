#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace rnicd {

// The failure of a call of Windows on memory: a lack of pages, commit charge or handles is MEMORY_PAGES_UNAVAILABLE,
// any other error is INTERNAL_FAULT. The message contains `call` and the number, as "(MapViewOfFile: error 1455)". Only
// on Windows; errno_status.h has its counterpart. Source: System Error Codes of Windows.
absl::Status WindowsStatus(std::string_view call, uint32_t error);
// The same for the value of GetLastError.
absl::Status LastErrorStatus(std::string_view call);
// "MapViewOfFile: error 1455", for the detail of a failure with another reason.
std::string WindowsDetail(std::string_view call, uint32_t error);

}  // namespace rnicd
