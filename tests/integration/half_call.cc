#include "tests/integration/half_call.h"

#include "tests/integration/http2_frames.h"

namespace rnicd::test {

std::string HalfCallBytes(const std::string& path, uint32_t claimed, uint32_t sent) {
  return Hello() + HalfCall(path, 1, claimed, std::string(sent, '\n'));
}

}  // namespace rnicd::test
