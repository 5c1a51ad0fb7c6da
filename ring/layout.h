#pragma once

#include <cstddef>
#include <cstdint>

// The bytes of a ring and of a mapped completion queue, as both sides see them. docs/RINGS.md describes them for those
// who write a client; a change here is a change of kVersion. All numbers are little-endian, all offsets in bytes.
namespace rnicd::ring {

// Raised when a client that knows only the old layout could no longer work.
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kRingMagic = 0x474E495244494E52;   // "RNIDRING"
inline constexpr uint64_t kQueueMagic = 0x204D4F4344494E52;  // "RNIDCOM "

// What the two sides write is this far apart, so that neither slows the other down: two cache lines, because processors
// fetch them in pairs.
inline constexpr size_t kLineBytes = 128;

// Entries of both kinds, and of a mapped completion queue.
inline constexpr size_t kEntryBytes = 64;
// Payload is copied in these units: what names a part of it is a multiple of this.
inline constexpr size_t kPayloadUnit = 8;

inline constexpr uint32_t kEntriesMin = 2;
inline constexpr uint32_t kEntriesMax = 4096;
inline constexpr uint32_t kPayloadBytesMin = 4096;
inline constexpr uint32_t kPayloadBytesMax = 1U << 20;
// Requests in one chain.
inline constexpr uint32_t kChainMax = 1024;

// Indices run freely through all of uint32_t, and are masked on use.
constexpr bool IsPowerOfTwo(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

// The first line of both kinds of file. Written by the daemon before a client gets the file, and never again.
struct Description {
  uint64_t magic = 0;
  uint32_t version = 0;
  // Bytes before the first entry.
  uint32_t header_bytes = 0;
  // Submission entries; of a mapped completion queue 0.
  uint32_t submission_offset = 0;
  // Completion entries.
  uint32_t completion_offset = 0;
  // Number of completion entries, and of a ring's submission entries: a power of two.
  uint32_t entries = 0;
  uint32_t payload_offset = 0;
  uint32_t payload_bytes = 0;
  uint32_t reserved = 0;
};

// How to wake a client that sleeps; any other number means kNone.
enum class Wakeup : uint32_t {
  kNone = 0,
  // FUTEX_WAKE, without FUTEX_PRIVATE_FLAG, on the word that counts such wake-ups, after adding 1 to it.
  kFutex = 1,
  // A byte into the pipe of the ring or queue.
  kPipe = 2,
};

// Header of a ring. Each line has one writer.
struct RingHeader {
  alignas(kLineBytes) Description description;
  // Client: number of entries submitted since the ring was opened.
  alignas(kLineBytes) uint32_t submission_tail;
  // Client: the processor that it runs on, plus 1; 0 if unknown.
  uint32_t client_cpu;
  // Daemon: number of entries taken. An entry and its payload may be overwritten once this has passed it.
  alignas(kLineBytes) uint32_t submission_head;
  // Daemon: 1 when a new entry needs a doorbell.
  uint32_t submission_wakeup;
  // Daemon: the processor that it runs on, plus 1.
  uint32_t daemon_cpu;
  // Daemon: 0, or the ErrorReason for which the ring has ended.
  uint32_t end_reason;
  // Daemon: number of completions written.
  alignas(kLineBytes) uint32_t completion_tail;
  // Daemon: number of wake-ups with kFutex, the word that a client sleeps on. Not completion_tail: the end of the ring
  // would not change it, and a client that is about to sleep would miss the wake-up.
  uint32_t completion_wakes;
  // Client: number of completions read.
  alignas(kLineBytes) uint32_t completion_head;
  // Client: Wakeup for the next completion, and for the end of the ring.
  uint32_t completion_wakeup;
};

// Header of a mapped completion queue. Each line has one writer.
struct QueueHeader {
  alignas(kLineBytes) Description description;
  // Daemon: number of completions written.
  alignas(kLineBytes) uint32_t tail;
  // Daemon: number of notifications, for which the queue was armed.
  uint32_t notifications;
  // Daemon: 0, or the NTSTATUS with which the queue has failed. Its completions are lost then.
  uint32_t status;
  // Daemon: number of wake-ups with kFutex, for `wakeup` and for `notification_wakeup`: the words to sleep on.
  uint32_t wakes;
  uint32_t notification_wakes;
  // Client: number of completions read.
  alignas(kLineBytes) uint32_t head;
  // Client: Wakeup for the next completion, and for a failure.
  uint32_t wakeup;
  // Client: Wakeup for the next notification, and for a failure.
  uint32_t notification_wakeup;
};

enum class Opcode : uint16_t {
  // Does nothing, and completes.
  kNop = 0,
  // Posts a chain to a queue pair: `object` is its id, `count` the number of requests in the payload.
  kPost = 1,
  // Registers a region: `object`, `length`, `argument` the NDK_MR_FLAG_ bits, `count` the number of MDL entries in the
  // payload.
  kRegisterMr = 2,
  // `object` is the region.
  kDeregisterMr = 3,
  kGetRemoteToken = 4,
  // Arms a completion queue: `object`, and `argument` the NDK_CQ_NOTIFY_ type.
  kArmCq = 5,
};

// Flags of a Submission. Only with kPost: the entry has no outcome. What would be refused is a completion of its queue
// pair instead, or fails it. The daemon's CreateQpResponse reports whether it knows the flag.
inline constexpr uint16_t kFlagNoOutcome = 1;

// One request of a client.
struct Submission {
  // Returned with the completion; any value.
  uint64_t user_data = 0;
  Opcode opcode = Opcode::kNop;
  // 0, or kFlagNoOutcome.
  uint16_t flags = 0;
  uint32_t count = 0;
  uint64_t object = 0;
  uint64_t length = 0;
  uint32_t argument = 0;
  // Part of the payload area that the request needs.
  uint32_t payload_offset = 0;
  uint32_t payload_bytes = 0;
  // Part of the payload area that the daemon writes before it completes the request: the issued tokens of kPost, one
  // uint32_t for each of its requests, 0 where none was issued; after a refusal the name of the field at fault, behind
  // the tokens. What does not fit is not written. 0 bytes: nothing is wanted.
  uint32_t result_offset = 0;
  uint32_t result_bytes = 0;
  // Must be 0.
  uint32_t reserved[3] = {};
};

constexpr bool HasOutcome(const Submission& entry) {
  return entry.opcode != Opcode::kPost || entry.flags != kFlagNoOutcome;
}

// The outcome of one Submission that has one.
struct Outcome {
  uint64_t user_data = 0;
  // NTSTATUS: 0, or why the request, or the first refused request of a chain, was refused.
  uint32_t status = 0;
  // ErrorReason of a refusal; otherwise 0.
  uint32_t reason = 0;
  Opcode opcode = Opcode::kNop;
  uint16_t reserved = 0;
  // Bytes of the name of the field at fault, in the result area behind the tokens.
  uint32_t field_bytes = 0;
  // kPost: the number of requests posted, from the start of the chain.
  uint32_t posted = 0;
  // kRegisterMr.
  uint32_t local_token = 0;
  // kRegisterMr and kGetRemoteToken.
  uint32_t remote_token = 0;
  uint32_t reserved2 = 0;
  // kRegisterMr: the address of the region. After a refusal: the limit.
  uint64_t base_or_limit = 0;
  // kRegisterMr: the bytes of the region. After a refusal: what is used.
  uint64_t length_or_used = 0;
  // After a refusal: what was requested.
  uint64_t requested = 0;
};

// One completion of a mapped completion queue: NDK_RESULT_EX.
struct QueueResult {
  uint32_t status = 0;
  // ErrorReason, finer than the status; 0 for success.
  uint32_t reason = 0;
  // NDK_OPERATION_TYPE.
  uint16_t type = 0;
  uint16_t reserved = 0;
  // Bytes received; of receives that succeeded.
  uint32_t bytes = 0;
  uint64_t qp_context = 0;
  uint64_t request_context = 0;
  // With a receive whose sender invalidated a token: that token. Otherwise 0.
  uint32_t invalidated_token = 0;
  // Number of the request among those of its queue: that many, silent ones included, are over.
  uint32_t request_number = 0;
  uint64_t qp_id = 0;
  uint64_t reserved2[2] = {};
};

enum class Operation : uint8_t {
  kSend = 1,
  kSendAndInvalidate = 2,
  kReceive = 3,
  kRead = 4,
  kWrite = 5,
  kFastRegister = 6,
  kInvalidateRegion = 7,
  kInvalidateWindow = 8,
  kBind = 9,
};

// One request of a chain. Behind it come `count` SgeRecords, or, of kFastRegister, `count` page addresses of 8 bytes;
// with kOpFlagInline behind the SgeRecords the bytes of all of them, filled up to a multiple of kPayloadUnit.
struct RequestRecord {
  uint64_t request_context = 0;
  // NDK_OP_FLAG_ bits.
  uint32_t flags = 0;
  Operation operation{};
  uint8_t reserved = 0;
  uint16_t count = 0;
  // kFastRegister, kBind, kInvalidateRegion: the region. kInvalidateWindow: the window.
  uint64_t object = 0;
  // kBind.
  uint64_t window = 0;
  // kRead, kWrite: the peer's address. kFastRegister: the address of the region. kBind: where the window begins.
  uint64_t address = 0;
  // kFastRegister, kBind.
  uint64_t length = 0;
  // kRead, kWrite: the peer's token. kSendAndInvalidate: the token to invalidate.
  uint32_t token = 0;
  // kFastRegister: bytes into the first page.
  uint32_t fbo = 0;
  // Must be 0.
  uint64_t reserved2 = 0;
};

// With kOpFlagInline only the length counts.
struct SgeRecord {
  uint64_t address = 0;
  uint32_t length = 0;
  uint32_t token = 0;
};

// One entry of an MDL chain.
struct MdlRecord {
  uint64_t memory_id = 0;
  uint64_t byte_offset = 0;
  uint64_t byte_count = 0;
  uint64_t virtual_address = 0;
};

static_assert(sizeof(Description) == 40);
static_assert(sizeof(RingHeader) == 5 * kLineBytes && sizeof(QueueHeader) == 3 * kLineBytes);
static_assert(sizeof(Submission) == kEntryBytes && sizeof(Outcome) == kEntryBytes);
static_assert(sizeof(QueueResult) == kEntryBytes && sizeof(RequestRecord) == 64);
static_assert(sizeof(SgeRecord) == 16 && sizeof(MdlRecord) == 32);

}  // namespace rnicd::ring
