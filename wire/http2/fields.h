#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rnicd::http2 {

// Name, in lower case, and value.
using HeaderField = std::pair<std::string, std::string>;

// nghttp2's bytes as text, which lives as long as they do.
std::string_view TextOf(const uint8_t* bytes, size_t size);

// The fields in nghttp2's form. They point into `fields`; nghttp2 copies what is submitted.
std::vector<nghttp2_nv> NameValues(const std::vector<HeaderField>& fields);

// Memory for a session of nghttp2, which clears what it frees: frames hold the secrets of requests and responses.
// Threads: safe.
nghttp2_mem WipingMemory();

}  // namespace rnicd::http2
