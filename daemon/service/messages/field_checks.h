#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// Checks shared by all messages: text of a field, and the name of an invalid field.
namespace rnicd::service {

// Whether the text has at most this many characters, all of them printable ASCII.
bool IsText(std::string_view text, size_t most);
// The error FIELD_OUT_OF_RANGE with this field.
absl::Status OutOfRange(const std::string& field);
// Name of an item of a repeated field: "pods[3]".
std::string At(const std::string& list, int index);

}  // namespace rnicd::service
