#include "tests/integration/half_call.h"

namespace rnicd::test {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kEndHeaders = 4;

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>(value >> shift));
  }
  return text;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return BigEndian(payload.size(), 3) + static_cast<char>(type) + static_cast<char>(flags) + BigEndian(stream, 4) +
         payload;
}

// A literal header field without indexing, its name and value without Huffman coding.
std::string Field(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
}

}  // namespace

std::string HalfCallBytes(const std::string& path, uint32_t claimed, uint32_t sent) {
  const std::string headers = Field(":method", "POST") + Field(":scheme", "http") + Field(":path", path) +
                              Field(":authority", "localhost") + Field("te", "trailers") +
                              Field("content-type", "application/grpc");
  const std::string message = BigEndian(0, 1) + BigEndian(claimed, 4) + std::string(sent, '\n');
  return kPreface + Frame(kSettings, 0, 0, "") + Frame(kHeaders, kEndHeaders, 1, headers) + Frame(kData, 0, 1, message);
}

}  // namespace rnicd::test
