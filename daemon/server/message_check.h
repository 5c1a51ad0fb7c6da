#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace rnicd::server {

// Walks the bytes of a message before they are parsed, and returns the number of parts that take memory of their own:
// messages, texts, and fields that this daemon does not know. A parser would make objects of all of them first, some
// fifty times the size of their bytes.
// Errors: MESSAGE_MALFORMED with the field when the bytes are not a message of this type (also for a text that is not
// UTF-8); MESSAGE_TOO_COMPLEX with the limit when it has more than `parts_max` parts.
absl::StatusOr<uint64_t> CheckMessage(const google::protobuf::Descriptor& type, std::string_view bytes,
                                      uint64_t parts_max);

}  // namespace rnicd::server
