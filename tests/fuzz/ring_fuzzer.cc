// A client that writes anything into the memory of a ring and of a mapped completion queue. For every input, the
// daemon's ends keep their own counts, have no more requests in progress than entries, copy payload only from where it
// is, and decode it only to requests that encode to the same bytes again.
//
// Input: a byte of options, then a sequence of steps; each is a byte that selects the action, followed by the action's
// arguments.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "ring/chain.h"
#include "ring/daemon_end.h"
#include "ring/queue_end.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input.h"

namespace rnicd::fuzz {
namespace {

using ring::DaemonEnd;

constexpr size_t kStepsMax = 256;
constexpr uint32_t kDepth = 4;

// Memory of a file. Exactly as long as that, so that the address sanitizer sees any access behind it.
class File {
 public:
  explicit File(size_t bytes) : lines_(bytes / ring::kLineBytes) {}

  std::span<std::byte> all() const { return std::as_writable_bytes(std::span(lines_)); }
  template <typename Header>
  Header& header() const {
    return *reinterpret_cast<Header*>(lines_.data());
  }

 private:
  struct alignas(ring::kLineBytes) Line {
    std::array<std::byte, ring::kLineBytes> bytes{};
  };

  // What is in it belongs to the client.
  mutable std::vector<Line> lines_;
};

// One run over an input.
class RingMemory {
 public:
  explicit RingMemory(Input& input)
      : input_(input),
        options_(input.Byte()),
        ring_geometry_(*ring::MakeRingGeometry(ring::kEntriesMin << (options_ & 0x03), ring::kPayloadBytesMin)),
        ring_file_(ring_geometry_.file_bytes()),
        queue_geometry_(ring::MakeQueueGeometry(kDepth)),
        queue_file_(queue_geometry_.file_bytes()) {
    // Bit 2: both begin just before their indices wrap around.
    first_ = (options_ & 0x04) != 0 ? UINT32_MAX - 2 : 0;
    auto& header = ring_file_.header<ring::RingHeader>();
    header.submission_tail = header.submission_head = header.completion_tail = header.completion_head = first_;
    auto& queue_header = queue_file_.header<ring::QueueHeader>();
    queue_header.tail = queue_header.head = first_;
    daemon_ = std::make_unique<DaemonEnd>(ring_file_.all(), ring_geometry_);
    writer_ = std::make_unique<ring::QueueWriter>(queue_file_.all(), queue_geometry_);
  }

  void Run() {
    for (size_t step = 0; step < kStepsMax && !input_.empty(); ++step) {
      Step();
      Check(daemon_->unfinished() == taken_ - completed_, "the daemon's counts are its own");
      Check(daemon_->unfinished() <= ring_geometry_.entries, "no more requests in progress than entries");
    }
  }

 private:
  // 0 a word of the ring   1 bytes of the ring   2 a word of the queue   3 an entry   4 take   5 complete
  // 6 sleep or stay awake  7 the end             8 push                  9 notify    10 fail   11 an honest entry
  void Step() {
    switch (input_.Byte() % 12) {
      case 0:
        return WriteWord(ring_file_);
      case 1:
        return WriteBytes();
      case 2:
        return WriteWord(queue_file_);
      case 3:
        return WriteEntry();
      case 4:
        return Take();
      case 5:
        return Complete();
      case 6:
        return SleepOrNot();
      case 7:
        return static_cast<void>(daemon_->End(input_.Byte()));
      case 8:
        return Push();
      case 9:
        return static_cast<void>(writer_->Notify());
      case 10:
        return static_cast<void>(writer_->Fail(input_.Byte()));
      default:
        return Submit();
    }
  }

  // One of the first words of a line, where all indices and flags are; counted from where indices began.
  void WriteWord(const File& file) {
    const size_t line = input_.Below(file.all().size() == queue_geometry_.file_bytes() ? 3 : 5);
    const size_t offset = line * ring::kLineBytes + input_.Below(6) * sizeof(uint32_t);
    const auto value = static_cast<uint32_t>(first_ + input_.Number());
    std::memcpy(file.all().data() + offset, &value, sizeof(value));
  }
  void WriteBytes() {
    const size_t offset = input_.Short() % ring_file_.all().size();
    const std::span<const uint8_t> bytes =
        input_.Bytes(std::min<size_t>(input_.Byte(), ring_file_.all().size() - offset));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(ring_file_.all().data() + offset));
  }
  // Any bytes as the entry of a slot.
  void WriteEntry() {
    const size_t slot = input_.Below(ring_geometry_.entries);
    const std::span<const uint8_t> bytes = input_.Bytes(ring::kEntryBytes);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(SlotOf(slot)));
  }
  // An entry with its payload, as an honest client writes it, and the tail.
  void Submit() {
    auto& header = ring_file_.header<ring::RingHeader>();
    const ring::Submission entry = {.opcode = static_cast<ring::Opcode>(input_.Below(7)),
                                    .count = input_.Byte(),
                                    .payload_offset = static_cast<uint32_t>(input_.Byte() * ring::kPayloadUnit),
                                    .payload_bytes = static_cast<uint32_t>(input_.Byte() * ring::kPayloadUnit)};
    const std::span<const uint8_t> payload = input_.Bytes(entry.payload_bytes);
    std::copy(
        payload.begin(), payload.end(),
        reinterpret_cast<uint8_t*>(ring_file_.all().data()) + ring_geometry_.payload_offset + entry.payload_offset);
    std::memcpy(SlotOf(header.submission_tail & (ring_geometry_.entries - 1)), &entry, sizeof(entry));
    ++header.submission_tail;
  }

  void Take() {
    ring::Submission entry;
    const uint32_t tail = ring_file_.header<ring::RingHeader>().submission_tail;
    const DaemonEnd::Next next = daemon_->Peek(&entry);
    if (next == DaemonEnd::Next::kNothing) {
      return;
    }
    const uint32_t ahead = tail - (first_ + taken_);
    if (next == DaemonEnd::Next::kBroken) {
      Check(ahead != 0, "a ring without an entry is not broken");
      return;
    }
    Check(ahead >= 1 && ahead <= ring_geometry_.entries, "an entry that was submitted");
    const bool exists = daemon_->PayloadExists(entry.payload_offset, entry.payload_bytes);
    Check(exists == (entry.payload_offset % ring::kPayloadUnit == 0 &&
                     uint64_t{entry.payload_offset} + entry.payload_bytes <= ring_geometry_.payload_bytes),
          "payload that exists is inside its area");
    if (exists) {
      std::vector<uint64_t> payload(entry.payload_bytes / sizeof(uint64_t));
      daemon_->CopyPayload(entry.payload_offset, entry.payload_bytes, payload);
      Decode(entry, payload);
    }
    if (daemon_->PayloadExists(entry.result_offset, entry.result_bytes)) {
      result_.assign(entry.result_bytes, std::byte{0x55});
      daemon_->WriteResult(entry.result_offset, result_);
    }
    daemon_->Pop();
    ++taken_;
    Check(ring_file_.header<ring::RingHeader>().submission_head == first_ + taken_, "the head is the daemon's");
  }

  static void Decode(const ring::Submission& entry, std::span<const uint64_t> payload) {
    std::vector<WorkRequest> chain;
    if (ring::DecodeChain(payload, entry.count, &chain).ok()) {
      Check(chain.size() == entry.count && entry.count >= 1 && entry.count <= ring::kChainMax,
            "the chain has its length");
      CheckChain(chain, payload);
    }
    std::vector<MdlEntry> mdl_chain;
    if (ring::DecodeMdlChain(payload, entry.count, &mdl_chain).ok()) {
      Check(mdl_chain.size() == entry.count, "the MDL chain has its length");
      std::vector<std::byte> encoded(mdl_chain.size() * ring::kMdlBytes);
      for (size_t index = 0; index < mdl_chain.size(); ++index) {
        ring::Encode(mdl_chain[index], encoded.data() + index * ring::kMdlBytes);
      }
      Check(std::equal(encoded.begin(), encoded.end(), std::as_bytes(payload).begin()),
            "an MDL chain encodes as it was");
    }
  }

  // A decoded chain encodes to a payload that decodes to a chain that encodes to the same bytes. Not to the bytes it
  // came from: unused fields are dropped.
  static void CheckChain(const std::vector<WorkRequest>& chain, std::span<const uint64_t> payload) {
    const std::vector<uint64_t> once = Encoded(chain);
    Check(once.size() <= payload.size(), "a chain is not longer than it came");
    std::vector<WorkRequest> decoded;
    Check(ring::DecodeChain(once, static_cast<uint32_t>(chain.size()), &decoded).ok(), "what was encoded is decoded");
    Check(Encoded(decoded) == once, "a chain encodes as it was");
  }
  static std::vector<uint64_t> Encoded(const std::vector<WorkRequest>& chain) {
    std::vector<uint64_t> payload;
    for (const WorkRequest& request : chain) {
      const absl::StatusOr<size_t> bytes = ring::EncodedBytes(request);
      Check(bytes.ok(), "what was decoded can be encoded");
      const size_t begin = payload.size();
      payload.resize(begin + *bytes / sizeof(uint64_t));
      ring::Encode(request, reinterpret_cast<std::byte*>(payload.data() + begin));
    }
    return payload;
  }

  void Complete() {
    if (taken_ == completed_) {
      return;
    }
    (void)daemon_->Complete({.user_data = completed_});
    ++completed_;
    Check(ring_file_.header<ring::RingHeader>().completion_tail == first_ + completed_, "the tail is the daemon's");
  }
  void SleepOrNot() {
    if (input_.Bit()) {
      (void)daemon_->PrepareToSleep();
    } else {
      daemon_->StayAwake();
    }
  }

  void Push() {
    const uint32_t unread = writer_->unread();
    Check(unread <= writer_->capacity() && unread <= pushed_, "the client has read nothing that was not written");
    if (unread < writer_->capacity()) {
      (void)writer_->Push({.request_context = pushed_});
      ++pushed_;
      Check(queue_file_.header<ring::QueueHeader>().tail == first_ + pushed_, "the tail is the daemon's");
    }
  }

  std::byte* SlotOf(size_t slot) const {
    return ring_file_.all().data() + ring_geometry_.submission_offset + slot * ring::kEntryBytes;
  }

  Input& input_;
  const uint8_t options_;
  const ring::RingGeometry ring_geometry_;
  const File ring_file_;
  const ring::QueueGeometry queue_geometry_;
  const File queue_file_;
  uint32_t first_ = 0;
  std::unique_ptr<DaemonEnd> daemon_;
  std::unique_ptr<ring::QueueWriter> writer_;
  uint32_t taken_ = 0;
  uint32_t completed_ = 0;
  uint32_t pushed_ = 0;
  std::vector<std::byte> result_;
};

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::Input input(data, size);
  rnicd::fuzz::RingMemory(input).Run();
  return 0;
}
