#include "provider/soft/net/soft_frame.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <type_traits>
#include <utility>

namespace rnicd::provider {
namespace {

constexpr size_t kHostsMax = 64;
constexpr size_t kPrivateDataMax = 256;
constexpr size_t kQueuePairBytes = sizeof(uint64_t);
// Reads that a card can have under way.
constexpr uint32_t kReadLimitMax = 255;
// A gibibyte is a card's max_transfer_length.
constexpr uint64_t kTotalMax = uint64_t{1} << 30;
// Those that an end of a connection may have. Their places are on the wire.
constexpr std::array kEndReasons = {ErrorReason::CONNECTION_ABORTED, ErrorReason::CONNECTION_REFUSED,
                                    ErrorReason::HOST_UNREACHABLE};

// What stands for a value that not all bytes are.
template <typename T>
struct RawOf {
  using Type = T;
};
template <>
struct RawOf<bool> {
  using Type = uint8_t;
};
template <typename T>
  requires std::is_enum_v<T>
struct RawOf<T> {
  using Type = std::underlying_type_t<T>;
};

// Both ends of a frame have the same Describe below; numbers are of this machine, which both daemons share.
class FrameWriter {
 public:
  template <typename T>
  void Number(const T& value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <typename T>
  void Value(const T& value, T /*last*/) {
    Number(value);
  }
  void Bytes(const std::string& bytes, size_t /*most*/) {
    Number(static_cast<uint32_t>(bytes.size()));
    text_ += bytes;
  }
  bool Require(bool condition) const { return condition; }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

class FrameReader {
 public:
  explicit FrameReader(std::string_view text) : rest_(text) {}

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  void Number(T& value) {
    const std::string_view bytes = Take(sizeof(value));
    if (valid_) {
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&value));
    }
  }
  // One of an enum, or of a range, whose last is this.
  template <typename T>
  void Value(T& value, T last) {
    using Raw = typename RawOf<T>::Type;
    Raw raw = 0;
    Number(raw);
    if (Require(raw <= static_cast<Raw>(last))) {
      value = static_cast<T>(raw);
    }
  }
  void Bytes(std::string& bytes, size_t most) {
    uint32_t size = 0;
    Number(size);
    if (Require(size <= most)) {
      bytes = Take(size);
    }
  }
  bool Require(bool condition) { return valid_ = valid_ && condition; }
  bool complete() const { return valid_ && rest_.empty(); }

 private:
  std::string_view Take(size_t size) {
    if (!Require(size <= rest_.size())) {
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool valid_ = true;
};

template <typename Archive, typename Address>
void DescribeIp(Archive& archive, Address& ip) {
  std::array<uint8_t, 16> bytes = ip.bytes();
  archive.Number(bytes);
  if constexpr (!std::is_const_v<Address>) {
    ip = IpAddress(bytes);
  }
}

template <typename Archive, typename Address>
void DescribeAddress(Archive& archive, Address& address) {
  DescribeIp(archive, address.ip);
  archive.Number(address.port);
}

template <typename Archive, typename Frame>
  requires std::same_as<std::remove_const_t<Frame>, SoftPing>
void Describe(Archive& /*archive*/, Frame& /*ping*/) {}

template <typename Archive, typename Frame>
  requires std::same_as<std::remove_const_t<Frame>, SoftHello>
void Describe(Archive& archive, Frame& hello) {
  archive.Number(hello.version);
  auto count = static_cast<uint8_t>(hello.hosts.size());
  archive.Number(count);
  if (!archive.Require(count > 0 && count <= kHostsMax && hello.version == SoftHello().version)) {
    return;
  }
  if constexpr (!std::is_const_v<Frame>) {
    hello.hosts.resize(count);
  }
  for (auto& host : hello.hosts) {
    DescribeIp(archive, host);
    archive.Require(!host.is_wildcard());
  }
}

// The place of a reason, or the reason of a place.
template <typename Archive, typename Reason>
void DescribeReason(Archive& archive, Reason& reason) {
  auto place = static_cast<uint8_t>(std::ranges::find(kEndReasons, reason) - kEndReasons.begin());
  archive.Value(place, static_cast<uint8_t>(kEndReasons.size() - 1));
  if constexpr (!std::is_const_v<Reason>) {
    reason = kEndReasons.at(place);
  }
}

template <typename Archive, typename Frame>
  requires std::same_as<std::remove_const_t<Frame>, SoftMessage>
void Describe(Archive& archive, Frame& message) {
  archive.Value(message.kind, SoftMessage::Kind::kEnd);
  DescribeAddress(archive, message.from);
  DescribeAddress(archive, message.to);
  archive.Number(message.connector);
  archive.Bytes(message.queue_pair, kQueuePairBytes);
  archive.Value(message.offer.inbound_read_limit, kReadLimitMax);
  archive.Value(message.offer.outbound_read_limit, kReadLimitMax);
  archive.Bytes(message.offer.private_data, kPrivateDataMax);
  DescribeReason(archive, message.reason);
  // An end tells itself kEstablished, so it comes from nobody else.
  archive.Require(message.kind != SoftMessage::Kind::kEstablished);
  const bool names_pair = message.kind == SoftMessage::Kind::kRequest || message.kind == SoftMessage::Kind::kAnswer;
  archive.Require(message.queue_pair.size() == (names_pair ? kQueuePairBytes : 0));
}

template <typename Archive, typename Frame>
  requires std::same_as<std::remove_const_t<Frame>, SoftRequest>
void Describe(Archive& archive, Frame& request) {
  archive.Value(request.kind, SoftRequest::Kind::kRead);
  archive.Number(request.to);
  archive.Number(request.from);
  archive.Number(request.serial);
  archive.Value(request.total, kTotalMax);
  archive.Value(request.offset, kTotalMax);
  archive.Number(request.address);
  archive.Number(request.token);
  archive.Value(request.solicit, true);
  bool invalidates = request.invalidate.has_value();
  archive.Value(invalidates, true);
  uint32_t invalidated = request.invalidate.value_or(0);
  archive.Number(invalidated);
  if constexpr (!std::is_const_v<Frame>) {
    request.invalidate = invalidates ? std::optional(invalidated) : std::nullopt;
  }
  archive.Bytes(request.bytes, kPieceBytes);
  const bool reads = request.kind == SoftRequest::Kind::kRead;
  archive.Require(request.serial != 0 && request.offset <= request.total &&
                  (request.offset < request.total || request.offset == 0) &&
                  request.bytes.size() == (reads ? 0 : PieceOf(request.total, request.offset)));
}

template <typename Archive, typename Frame>
  requires std::same_as<std::remove_const_t<Frame>, SoftReply>
void Describe(Archive& archive, Frame& reply) {
  archive.Value(reply.result, SoftReply::Result::kGone);
  archive.Number(reply.to);
  archive.Number(reply.from);
  archive.Number(reply.serial);
  archive.Bytes(reply.bytes, kPieceBytes);
}

template <size_t index = 0>
std::optional<SoftFrame> ParseKind(uint8_t kind, FrameReader& reader) {
  if constexpr (index < std::variant_size_v<SoftFrame>) {
    if (kind != index) {
      return ParseKind<index + 1>(kind, reader);
    }
    std::variant_alternative_t<index, SoftFrame> frame;
    Describe(reader, frame);
    return reader.complete() ? std::optional<SoftFrame>(std::move(frame)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

uint64_t PieceOf(uint64_t total, uint64_t offset) { return std::min(kPieceBytes, total - offset); }

std::string FrameText(const SoftFrame& frame) {
  FrameWriter writer;
  writer.Number(static_cast<uint8_t>(frame.index()));
  std::visit([&writer](const auto& each) { Describe(writer, each); }, frame);
  return writer.Take();
}

std::optional<SoftFrame> ParseFrame(std::string_view text) {
  FrameReader reader(text);
  uint8_t kind = UINT8_MAX;
  reader.Number(kind);
  return ParseKind(kind, reader);
}

}  // namespace rnicd::provider
