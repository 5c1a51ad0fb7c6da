#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// What checks of messages share: a field's text, and how a field at fault is named.
namespace rnicd::service {

// At most so many printable ASCII characters.
bool IsText(std::string_view text, size_t most);
// FIELD_OUT_OF_RANGE of that field.
absl::Status OutOfRange(const std::string& field);
// "pods[3]".
std::string At(const std::string& list, int index);

}  // namespace rnicd::service
