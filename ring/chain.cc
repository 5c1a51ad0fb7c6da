#include "ring/chain.h"

#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "ring/layout.h"

namespace rnicd::ring {
namespace {

constexpr size_t kCountMax = std::numeric_limits<decltype(RequestRecord::count)>::max();

size_t WholeUnits(size_t bytes) { return (bytes + kPayloadUnit - 1) / kPayloadUnit * kPayloadUnit; }

// --- Writing ---

// A request's record, and the parts behind it.
struct Parts {
  RequestRecord record;
  const Sges* sges = nullptr;
  // Name of the operation in errors; of operations with SGEs.
  std::string_view name;
  std::span<const uint64_t> pages;
};

struct PartsOf {
  Parts& parts;

  bool operator()(std::monostate) const { return false; }
  bool operator()(const WorkRequest::Send& send) const { return Transfer(Operation::kSend, "send", send.sges); }
  bool operator()(const WorkRequest::SendAndInvalidate& send) const {
    parts.record.token = send.token.value;
    return Transfer(Operation::kSendAndInvalidate, "send_and_invalidate", send.sges);
  }
  bool operator()(const WorkRequest::Receive& receive) const {
    return Transfer(Operation::kReceive, "receive", receive.sges);
  }
  bool operator()(const WorkRequest::Read& read) const {
    return Remote(Operation::kRead, "read", read.sges, read.remote);
  }
  bool operator()(const WorkRequest::Write& write) const {
    return Remote(Operation::kWrite, "write", write.sges, write.remote);
  }
  bool operator()(const WorkRequest::FastRegister& operation) const {
    parts.record.operation = Operation::kFastRegister;
    parts.record.object = operation.region.value;
    parts.record.address = operation.base_address.value;
    parts.record.length = operation.length;
    parts.record.fbo = operation.fbo;
    parts.pages = operation.pages;
    return true;
  }
  bool operator()(const WorkRequest::Invalidate& operation) const {
    if (const auto* region = std::get_if<MemoryRegionId>(&operation.target)) {
      parts.record.operation = Operation::kInvalidateRegion;
      parts.record.object = region->value;
      return true;
    }
    if (const auto* window = std::get_if<MemoryWindowId>(&operation.target)) {
      parts.record.operation = Operation::kInvalidateWindow;
      parts.record.object = window->value;
      return true;
    }
    return false;
  }
  bool operator()(const WorkRequest::Bind& operation) const {
    parts.record.operation = Operation::kBind;
    parts.record.object = operation.region.value;
    parts.record.window = operation.window.value;
    parts.record.address = operation.address.value;
    parts.record.length = operation.length;
    return true;
  }

  bool Transfer(Operation operation, std::string_view name, const Sges& sges) const {
    parts.record.operation = operation;
    parts.name = name;
    parts.sges = &sges;
    return true;
  }
  bool Remote(Operation operation, std::string_view name, const Sges& sges, const RemoteMemory& remote) const {
    parts.record.address = remote.address.value;
    parts.record.token = remote.token.value;
    return Transfer(operation, name, sges);
  }
};

// False for a request that names no operation.
bool Split(const WorkRequest& request, Parts* parts) {
  parts->record.request_context = request.request_context;
  parts->record.flags = request.flags;
  if (!std::visit(PartsOf{*parts}, request.operation)) {
    return false;
  }
  parts->record.count = static_cast<uint16_t>(parts->sges != nullptr ? parts->sges->size() : parts->pages.size());
  return true;
}

bool IsInline(const RequestRecord& record) { return (record.flags & kOpFlagInline) != 0; }

size_t InlineBytes(const Sges& sges) {
  size_t bytes = 0;
  for (const Sge& sge : sges) {
    bytes += sge.inline_data.size();
  }
  return WholeUnits(bytes);
}

std::byte* Append(std::byte* to, const void* from, size_t bytes) {
  if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
  return to + bytes;
}

// --- Reading ---

// The payload, from the front.
class Reader {
 public:
  explicit Reader(std::span<const uint64_t> words) : words_(words) {}

  // The next `bytes`, a multiple of the unit; empty if there are not so many.
  std::span<const uint64_t> Take(size_t bytes) {
    const size_t words = bytes / sizeof(uint64_t);
    if (words > words_.size()) {
      return {};
    }
    const std::span<const uint64_t> taken = words_.first(words);
    words_ = words_.subspan(words);
    return taken;
  }
  template <typename T>
  bool Read(T* value) {
    const std::span<const uint64_t> words = Take(sizeof(T));
    if (words.empty()) {
      return false;
    }
    std::memcpy(static_cast<void*>(value), words.data(), sizeof(T));
    return true;
  }

 private:
  std::span<const uint64_t> words_;
};

absl::Status OutOfRange(std::string_view field) { return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, field); }

// At most 65,535 lengths of 32 bits: their sum does not overflow.
absl::Status ReadInline(Reader& reader, Sges& sges) {
  uint64_t bytes = 0;
  for (const Sge& sge : sges) {
    bytes += sge.length;
  }
  const std::span<const std::byte> data = std::as_bytes(reader.Take(WholeUnits(bytes)));
  if (data.size() < bytes) {
    return OutOfRange("payload_bytes");
  }
  size_t offset = 0;
  for (Sge& sge : sges) {
    sge.inline_data = data.subspan(offset, sge.length);
    offset += sge.length;
  }
  return absl::OkStatus();
}

absl::Status ReadSges(Reader& reader, const RequestRecord& record, Sges& sges) {
  const std::span<const uint64_t> words = reader.Take(record.count * sizeof(SgeRecord));
  if (words.empty() && record.count != 0) {
    return OutOfRange("count");
  }
  sges.resize(record.count);
  for (size_t index = 0; index < sges.size(); ++index) {
    SgeRecord entry;
    std::memcpy(static_cast<void*>(&entry), words.data() + index * sizeof(SgeRecord) / sizeof(uint64_t), sizeof(entry));
    sges[index] = {.address = entry.address, .length = entry.length, .token = LocalToken{entry.token}};
  }
  return IsInline(record) ? ReadInline(reader, sges) : absl::OkStatus();
}

absl::Status ReadFastRegister(Reader& reader, const RequestRecord& record, WorkRequest& request) {
  const std::span<const uint64_t> pages = reader.Take(record.count * sizeof(uint64_t));
  if (pages.size() != record.count) {
    return OutOfRange("count");
  }
  request.operation = WorkRequest::FastRegister{.region = MemoryRegionId{record.object},
                                                .pages = pages,
                                                .fbo = record.fbo,
                                                .length = record.length,
                                                .base_address = VirtualAddress{record.address}};
  return absl::OkStatus();
}

template <typename Transfer>
absl::Status ReadTransfer(Reader& reader, const RequestRecord& record, WorkRequest& request) {
  Transfer& transfer = request.operation.emplace<Transfer>();
  if constexpr (requires { transfer.remote; }) {
    transfer.remote = {.address = VirtualAddress{record.address}, .token = RemoteToken{record.token}};
  } else if constexpr (requires { transfer.token; }) {
    transfer.token = RemoteToken{record.token};
  }
  return ReadSges(reader, record, transfer.sges);
}

absl::Status ReadOperation(Reader& reader, const RequestRecord& record, WorkRequest& request) {
  switch (record.operation) {
    case Operation::kSend:
      return ReadTransfer<WorkRequest::Send>(reader, record, request);
    case Operation::kSendAndInvalidate:
      return ReadTransfer<WorkRequest::SendAndInvalidate>(reader, record, request);
    case Operation::kReceive:
      return ReadTransfer<WorkRequest::Receive>(reader, record, request);
    case Operation::kRead:
      return ReadTransfer<WorkRequest::Read>(reader, record, request);
    case Operation::kWrite:
      return ReadTransfer<WorkRequest::Write>(reader, record, request);
    case Operation::kFastRegister:
      return ReadFastRegister(reader, record, request);
    case Operation::kInvalidateRegion:
      request.operation = WorkRequest::Invalidate{.target = MemoryRegionId{record.object}};
      return absl::OkStatus();
    case Operation::kInvalidateWindow:
      request.operation = WorkRequest::Invalidate{.target = MemoryWindowId{record.object}};
      return absl::OkStatus();
    case Operation::kBind:
      request.operation = WorkRequest::Bind{.region = MemoryRegionId{record.object},
                                            .window = MemoryWindowId{record.window},
                                            .address = VirtualAddress{record.address},
                                            .length = record.length};
      return absl::OkStatus();
  }
  return OutOfRange("operation");
}

absl::Status ReadRequest(Reader& reader, WorkRequest& request) {
  RequestRecord record;
  if (!reader.Read(&record)) {
    return OutOfRange("payload_bytes");
  }
  if (record.reserved != 0 || record.reserved2 != 0) {
    return OutOfRange("reserved");
  }
  request.request_context = record.request_context;
  request.flags = record.flags;
  return ReadOperation(reader, record, request);
}

}  // namespace

absl::StatusOr<size_t> EncodedBytes(const WorkRequest& request) {
  Parts parts;
  if (!Split(request, &parts)) {
    return OutOfRange("operation");
  }
  const size_t entries = parts.sges != nullptr ? parts.sges->size() : parts.pages.size();
  if (entries > kCountMax) {
    return MakeError(ErrorReason::SGE_COUNT);
  }
  if (parts.sges == nullptr) {
    return sizeof(RequestRecord) + entries * sizeof(uint64_t);
  }
  for (const Sge& sge : *parts.sges) {
    if (sge.length > std::numeric_limits<uint32_t>::max()) {
      return MakeError(ErrorReason::TRANSFER_TOO_LONG, std::string(parts.name) + ".sges");
    }
  }
  return sizeof(RequestRecord) + entries * sizeof(SgeRecord) + (IsInline(parts.record) ? InlineBytes(*parts.sges) : 0);
}

size_t Encode(const WorkRequest& request, std::byte* to) {
  Parts parts;
  Split(request, &parts);
  std::byte* end = Append(to, &parts.record, sizeof(parts.record));
  if (parts.sges == nullptr) {
    end = Append(end, parts.pages.data(), parts.pages.size_bytes());
    return static_cast<size_t>(end - to);
  }
  const bool is_inline = IsInline(parts.record);
  for (const Sge& sge : *parts.sges) {
    const SgeRecord entry{.address = sge.address,
                          .length = static_cast<uint32_t>(is_inline ? sge.inline_data.size() : sge.length),
                          .token = sge.token.value};
    end = Append(end, &entry, sizeof(entry));
  }
  if (is_inline) {
    for (const Sge& sge : *parts.sges) {
      end = Append(end, sge.inline_data.data(), sge.inline_data.size());
    }
  }
  return WholeUnits(static_cast<size_t>(end - to));
}

absl::Status DecodeChain(std::span<const uint64_t> payload, uint32_t count, std::vector<WorkRequest>* chain) {
  if (count == 0 || count > kChainMax) {
    return MakeError(ErrorReason::BATCH_SIZE, "count");
  }
  Reader reader(payload);
  chain->resize(count);
  for (uint32_t index = 0; index < count; ++index) {
    const absl::Status read = ReadRequest(reader, (*chain)[index]);
    if (!read.ok()) {
      return WithFieldPrefix(read, "requests[" + std::to_string(index) + "].");
    }
  }
  return absl::OkStatus();
}

void Encode(const MdlEntry& entry, std::byte* to) {
  const MdlRecord record{.memory_id = entry.memory_id.value,
                         .byte_offset = entry.byte_offset,
                         .byte_count = entry.byte_count,
                         .virtual_address = entry.virtual_address.value};
  std::memcpy(to, &record, sizeof(record));
}

absl::Status DecodeMdlChain(std::span<const uint64_t> payload, uint32_t count, std::vector<MdlEntry>* chain) {
  static_assert(kMdlBytes == sizeof(MdlRecord));
  if (count > payload.size_bytes() / sizeof(MdlRecord)) {
    return OutOfRange("count");
  }
  Reader reader(payload);
  chain->resize(count);
  for (MdlEntry& entry : *chain) {
    MdlRecord record;
    reader.Read(&record);
    entry = {.memory_id = MemoryObjectId{record.memory_id},
             .byte_offset = record.byte_offset,
             .byte_count = record.byte_count,
             .virtual_address = VirtualAddress{record.virtual_address}};
  }
  return absl::OkStatus();
}

}  // namespace rnicd::ring
