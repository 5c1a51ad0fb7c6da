#include "daemon/rpc/bounds/frame_filter.h"

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <string>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

constexpr uint32_t kLastStream = 0x7fffffff;
const std::string kFour(4, '\1');
const std::string kFive(5, '\1');

std::string Greeting() { return std::string(kPreface) + RawFrame(NGHTTP2_SETTINGS, 0, 0, std::string(6, '\0')); }
std::string Headers(uint32_t stream_id, uint8_t flags = NGHTTP2_FLAG_END_HEADERS) {
  return RawFrame(NGHTTP2_HEADERS, flags, stream_id, "fields");
}

struct Filtered {
  std::string passed;
  uint32_t dropped = 0;
};

// What passes of bytes that arrive in parts of `part_size`.
Filtered Filter(std::string_view bytes, size_t part_size) {
  FrameFilter filter;
  Filtered filtered;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, part_size);
    bytes.remove_prefix(part.size());
    while (!part.empty()) {
      filtered.passed.append(filter.Next(part));
    }
  }
  filtered.dropped = filter.TakeDropped();
  EXPECT_EQ(filter.TakeDropped(), 0u);
  return filtered;
}

// In parts of every size.
void ExpectPasses(const std::string& bytes, const std::string& passed, uint32_t dropped) {
  for (size_t part_size = 1; part_size <= bytes.size(); ++part_size) {
    const Filtered filtered = Filter(bytes, part_size);
    ASSERT_EQ(filtered.passed, passed) << part_size;
    ASSERT_EQ(filtered.dropped, dropped) << part_size;
  }
}

TEST(FrameFilter, TakesOutWhatIsForStreamsThatNeverOpened) {
  const std::string reset = RawFrame(NGHTTP2_RST_STREAM, 0, 3, kFour);
  const std::string update = RawFrame(NGHTTP2_WINDOW_UPDATE, 0xff, kLastStream, kFour);
  const std::string priority = RawFrame(NGHTTP2_PRIORITY, 0, 0x80000005, kFive);
  const std::string data = RawFrame(NGHTTP2_DATA, 0, 1, std::string(300, 'x'));
  ExpectPasses(Greeting() + update + Headers(1) + reset + reset + data + priority + reset + data + update,
               Greeting() + Headers(1) + data + data, 6);
}

TEST(FrameFilter, PassesEverythingElseAsItIs) {
  std::string bytes = Greeting() + Headers(1) + Headers(7);
  // Streams that were opened or skipped, the connection, and streams of the server.
  for (const uint32_t stream_id : {1U, 3U, 7U, 0U, 2U, 8U, 0x80000007U}) {
    bytes += RawFrame(NGHTTP2_RST_STREAM, 0, stream_id, kFour) + RawFrame(NGHTTP2_WINDOW_UPDATE, 0, stream_id, kFour) +
             RawFrame(NGHTTP2_PRIORITY, 0, stream_id, kFive);
  }
  // Frames of a wrong size.
  for (const uint8_t type : {NGHTTP2_RST_STREAM, NGHTTP2_WINDOW_UPDATE, NGHTTP2_PRIORITY}) {
    bytes += RawFrame(type, 0, 9, "") + RawFrame(type, 0, 9, std::string(type == NGHTTP2_PRIORITY ? 4 : 5, 'x')) +
             RawFrame(type, 0, 9, std::string(300, 'x'));
  }
  for (const uint8_t type : {NGHTTP2_DATA, NGHTTP2_SETTINGS, NGHTTP2_PUSH_PROMISE, NGHTTP2_PING, NGHTTP2_GOAWAY,
                             NGHTTP2_CONTINUATION, NGHTTP2_ALTSVC, NGHTTP2_PRIORITY_UPDATE}) {
    bytes += RawFrame(type, NGHTTP2_FLAG_END_HEADERS, 9, kFour);
  }
  ExpectPasses(bytes, bytes, 0);
}

TEST(FrameFilter, LeavesHeaderBlocksAlone) {
  const std::string reset = RawFrame(NGHTTP2_RST_STREAM, 0, 9, kFour);
  const std::string part = RawFrame(NGHTTP2_CONTINUATION, 0, 1, "more");
  const std::string end = RawFrame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, "more");
  for (const std::string& block : {Headers(1, 0) + reset, Headers(1, 0) + part + reset}) {
    ExpectPasses(Greeting() + block, Greeting() + block, 0);
  }
  ExpectPasses(Greeting() + Headers(1, 0) + part + end + reset, Greeting() + Headers(1, 0) + part + end, 1);
}

TEST(FrameFilter, LeavesTheFirstFrameAlone) {
  const std::string bytes = kPreface + RawFrame(NGHTTP2_RST_STREAM, 0, 9, kFour);
  ExpectPasses(bytes, bytes, 0);
}

// Nothing is copied but a head in parts.
TEST(FrameFilter, CutsWholeFramesOutOfWhatArrived) {
  FrameFilter filter;
  const std::string bytes = Greeting() + Headers(1) + Headers(3);
  std::string_view left = bytes;
  EXPECT_EQ(filter.Next(left).data(), bytes.data());
  EXPECT_TRUE(left.empty());
}

}  // namespace
}  // namespace rnicd::rpc
