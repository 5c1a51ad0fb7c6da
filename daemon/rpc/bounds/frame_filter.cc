#include "daemon/rpc/bounds/frame_filter.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <utility>

namespace rnicd::rpc {
namespace {

uint32_t BigEndian(const char* bytes, size_t size) {
  uint32_t value = 0;
  for (size_t index = 0; index < size; ++index) {
    value = value << 8U | static_cast<uint8_t>(bytes[index]);
  }
  return value;
}

// True for a frame that may come for a stream which never opened. Any other size is an error.
bool MayComeUnopened(uint8_t type, uint32_t size) {
  switch (type) {
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_WINDOW_UPDATE:
      return size == 4;
    case NGHTTP2_PRIORITY:
      return size == 5;
    default:
      return false;
  }
}

// Takes as many bytes from the front.
std::string_view Cut(std::string_view& bytes, size_t size) {
  const std::string_view front = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return front;
}

}  // namespace

std::string_view FrameFilter::Next(std::string_view& bytes) {
  if (dropping_) {
    left_ -= Cut(bytes, std::min(left_, bytes.size())).size();
    dropping_ = left_ > 0;
    return {};
  }
  size_t passing = 0;
  while (passing < bytes.size()) {
    const size_t size = std::min(left_, bytes.size() - passing);
    passing += size;
    left_ -= size;
    if (left_ > 0) {
      break;
    }
    if (head_bytes_ > 0 || bytes.size() - passing < kHeadBytes) {
      return passing > 0 ? Cut(bytes, passing) : GatherHead(bytes);
    }
    if (!Begin(bytes.data() + passing)) {
      const std::string_view before = Cut(bytes, passing);
      bytes.remove_prefix(kHeadBytes);
      return before;
    }
    passing += kHeadBytes;
  }
  return Cut(bytes, passing);
}

std::string_view FrameFilter::GatherHead(std::string_view& bytes) {
  const std::string_view part = Cut(bytes, std::min(kHeadBytes - head_bytes_, bytes.size()));
  std::copy(part.begin(), part.end(), head_.begin() + static_cast<ptrdiff_t>(head_bytes_));
  head_bytes_ += part.size();
  if (head_bytes_ < kHeadBytes) {
    return {};
  }
  head_bytes_ = 0;
  return Begin(head_.data()) ? std::string_view(head_.data(), kHeadBytes) : std::string_view();
}

uint32_t FrameFilter::TakeDropped() { return std::exchange(dropped_, 0); }

bool FrameFilter::Begin(const char* head) {
  const uint32_t size = BigEndian(head, 3);
  const auto type = static_cast<uint8_t>(head[3]);
  const auto flags = static_cast<uint8_t>(head[4]);
  const uint32_t stream = BigEndian(head + 5, 4) & 0x7fffffffU;
  const bool is_clients = stream % 2 == 1;
  left_ = size;
  if (!must_pass_ && is_clients && stream > highest_opened_ && MayComeUnopened(type, size)) {
    dropping_ = true;
    ++dropped_;
    return false;
  }
  if (type == NGHTTP2_HEADERS && is_clients) {
    highest_opened_ = std::max(highest_opened_, stream);
  }
  must_pass_ = (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION) && (flags & NGHTTP2_FLAG_END_HEADERS) == 0;
  return true;
}

}  // namespace rnicd::rpc
