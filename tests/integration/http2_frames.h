#pragma once

#include <cstdint>
#include <string>

namespace rnicd::test {

// The bytes of HTTP/2 as a hostile client may write them, with no library that keeps its rules. Source: RFC 9113 (frame
// types in section 6), RFC 7541, gRPC over HTTP2.
enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kResetStream = 3,
  kSettings = 4,
  kPing = 6,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kEndHeaders = 4;
// A flag of settings.
inline constexpr uint8_t kAcknowledge = 1;

// What a client sends first, with empty settings.
std::string Hello();
std::string Frame(FrameType type, uint8_t flags, uint32_t stream, const std::string& payload);
// The lowest `bytes` bytes of a number, the most significant one first.
std::string BigEndian(uint64_t value, int bytes);
// A literal header field without indexing and without Huffman coding. Name and value are shorter than 127 bytes.
std::string HeaderField(const std::string& name, const std::string& value);
// The header fields of a call.
std::string CallHeaders(const std::string& path);
// HEADERS and one DATA frame of a call whose message claims `claimed` bytes and contains `message`, which fits into a
// frame. The call stays open.
std::string HalfCall(const std::string& path, uint32_t stream, uint32_t claimed, const std::string& message);
// A call with its whole message, which may need many DATA frames.
std::string WholeCall(const std::string& path, uint32_t stream, const std::string& message);

}  // namespace rnicd::test
