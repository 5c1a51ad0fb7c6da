#pragma once

#include <string_view>

namespace rnicd::status_page {

// The bytes of a file of web/, "page.js"; empty for a name that is none. Its source is made by embed.cmake.
std::string_view Embedded(std::string_view name);

}  // namespace rnicd::status_page
