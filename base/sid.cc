#include "base/sid.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace rnicd {
namespace {

// The authority and what follows it.
constexpr size_t kNumbersMin = 2;
constexpr size_t kNumbersMax = 16;

// A number of 32 bits, as the system writes it. It writes a larger authority in hexadecimal; none is known.
bool IsNumber(std::string_view text) {
  uint32_t number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  return !text.empty() && (text == "0" || text.front() != '0') && error == std::errc() && rest == end;
}

}  // namespace

bool IsSid(std::string_view text) {
  constexpr std::string_view kBegin = "S-1";
  if (text.substr(0, kBegin.size()) != kBegin) {
    return false;
  }
  text.remove_prefix(kBegin.size());
  size_t numbers = 0;
  while (!text.empty() && text.front() == '-') {
    text.remove_prefix(1);
    const std::string_view number = text.substr(0, text.find('-'));
    if (!IsNumber(number)) {
      return false;
    }
    text.remove_prefix(number.size());
    ++numbers;
  }
  return text.empty() && numbers >= kNumbersMin && numbers <= kNumbersMax;
}

}  // namespace rnicd
