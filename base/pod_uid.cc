#include "base/pod_uid.h"

#include <algorithm>
#include <cstddef>

namespace rnicd {
namespace {

bool IsLowerHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

bool IsPodUid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  constexpr size_t kStaticPodDigits = 32;
  if (text.size() == kStaticPodDigits) {
    return std::all_of(text.begin(), text.end(), IsLowerHexDigit);
  }
  const auto fits = [](char c, char form) { return form == 'x' ? IsLowerHexDigit(c) : c == form; };
  return text.size() == kForm.size() && std::equal(text.begin(), text.end(), kForm.begin(), fits);
}

}  // namespace rnicd
