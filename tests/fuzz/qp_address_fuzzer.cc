// The text form of a queue pair's address, which peers exchange on channels that the daemon does not control.

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <string>

#include "provider/verbs/queue/qp_address.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input.h"

namespace rnicd::fuzz {
namespace {

bool Same(const provider::QpAddress& a, const provider::QpAddress& b) {
  return std::memcmp(a.gid.raw, b.gid.raw, sizeof(a.gid.raw)) == 0 && a.qpn == b.qpn && a.psn == b.psn &&
         a.lid == b.lid && a.mtu == b.mtu && a.origin == b.origin;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

void TryAddress(std::string_view text) {
  const std::optional<provider::QpAddress> address = provider::ParseQpAddress(text);
  if (!address.has_value()) {
    return;
  }
  Check(address->qpn <= 0xffffff && address->psn <= 0xffffff, "numbers of queue pairs and packets have 24 bits");
  Check(address->mtu >= IBV_MTU_256 && address->mtu <= IBV_MTU_4096, "the MTU is one of the five");
  const std::string written = provider::FormatQpAddress(*address);
  const std::optional<provider::QpAddress> again = provider::ParseQpAddress(written);
  Check(again.has_value() && Same(*address, *again), "what is written is read as the same address");
  // An origin of 0 is accepted in the input and omitted in the output.
  const bool spelled = address->origin == 0 && text.ends_with(".00000000") && text.size() > written.size();
  Check(written == Lower(spelled ? text.substr(0, text.size() - 9) : text), "an address has one form only");
}

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::TryAddress(rnicd::fuzz::AsText(data, size));
  return 0;
}
