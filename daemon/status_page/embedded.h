#pragma once

#include <string_view>

namespace rnicd::status_page {

// The bytes of a file in web/, such as "page.js"; empty for an unknown name. Its source is made by embed.cmake.
std::string_view Embedded(std::string_view name);

}  // namespace rnicd::status_page
