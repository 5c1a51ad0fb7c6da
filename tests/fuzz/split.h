#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rnicd::fuzz {

// The parts between the separators; one more than there are separators.
inline std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.emplace_back(text);
  return parts;
}

}  // namespace rnicd::fuzz
