#include "tests/integration/http2_frames.h"

namespace rnicd::test {
namespace {

// Bytes in a frame, unless the server allows more.
constexpr size_t kPayloadMax = 16384;

}  // namespace

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>(value >> shift));
  }
  return text;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return BigEndian(payload.size(), 3) + static_cast<char>(type) + static_cast<char>(flags) + BigEndian(stream, 4) +
         payload;
}

std::string Hello() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(FrameType::kSettings, 0, 0, ""); }

std::string HeaderField(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
}

std::string CallHeaders(const std::string& path) {
  return HeaderField(":method", "POST") + HeaderField(":scheme", "http") + HeaderField(":path", path) +
         HeaderField(":authority", "localhost") + HeaderField("te", "trailers") +
         HeaderField("content-type", "application/grpc");
}

std::string HalfCall(const std::string& path, uint32_t stream, uint32_t claimed, const std::string& message) {
  return Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders(path)) +
         Frame(FrameType::kData, 0, stream, BigEndian(0, 1) + BigEndian(claimed, 4) + message);
}

std::string WholeCall(const std::string& path, uint32_t stream, const std::string& message) {
  std::string bytes = Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders(path));
  const std::string body = BigEndian(0, 1) + BigEndian(message.size(), 4) + message;
  for (size_t begin = 0; begin < body.size(); begin += kPayloadMax) {
    const bool last = begin + kPayloadMax >= body.size();
    bytes += Frame(FrameType::kData, last ? kEndStream : 0, stream, body.substr(begin, kPayloadMax));
  }
  return bytes;
}

}  // namespace rnicd::test
