#pragma once

#include <span>
#include <string_view>

namespace rnicd::status_page {

// A file of the page, as the binary carries it.
struct Asset {
  // "/status.css".
  std::string_view path;
  std::string_view content_type;
  std::string_view body;
};

// All that a browser needs besides /status.json. None of it asks anybody else for anything.
std::span<const Asset> Assets();

}  // namespace rnicd::status_page
