#pragma once

#include <span>
#include <string_view>

namespace rnicd::status_page {

// A file of the page, embedded in the binary.
struct Asset {
  // Path of the file in URLs: "/status.css".
  std::string_view path;
  std::string_view content_type;
  std::string_view body;
};

// All files that a browser needs besides /status.json. None of them loads anything from another server.
std::span<const Asset> Assets();

}  // namespace rnicd::status_page
