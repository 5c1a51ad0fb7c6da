#include "client/libfabric/data_path.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "client/libfabric/errors.h"
#include "client/libfabric/memory.h"

namespace rnicd::fi {
namespace {

// A request that the daemon's queue counts beside those with a place: of a write with data, and fi_inject's.
constexpr size_t kUncountedPlaces = 32;

ssize_t ResultOf(int result) {
  return result == 0 || result == -FI_EAGAIN ? result : Refused(FI_LOG_EP_DATA, "posting", result);
}

}  // namespace

// The buffers of an operation as the card names them.
struct DataPath::Sges {
  std::array<rnicd_sge, kBuffersMax + 1> list;
  // That the card takes.
  size_t bytes_max;
  uint32_t count = 0;
  size_t bytes = 0;

  explicit Sges(size_t card_takes) : bytes_max(card_takes) {}
  void Add(const rnicd_sge& sge) { list[count++] = sge; }

  // Errors: -FI_EINVAL too many buffers, -FI_EMSGSIZE too many bytes.
  int Add(const Operation& operation) {
    if (operation.count > kBuffersMax) {
      return -FI_EINVAL;
    }
    for (size_t index = 0; index < operation.count; ++index) {
      const iovec& buffer = operation.buffers[index];
      if (buffer.iov_len > bytes_max - bytes) {
        return -FI_EMSGSIZE;
      }
      bytes += buffer.iov_len;
      if (buffer.iov_len != 0) {
        Add({.address = reinterpret_cast<uintptr_t>(buffer.iov_base),
             .length = static_cast<uint32_t>(buffer.iov_len),
             .token = Memory::LocalToken(operation.descriptors != nullptr ? operation.descriptors[index] : nullptr)});
      }
    }
    return 0;
  }

  // Also -FI_EKEYREJECTED. Tokens have fewer bits than keys of libfabric, and one that is none, such as
  // FI_KEY_NOTAVAIL, would end the connection.
  int AddForRma(const Operation& operation) {
    return operation.remote_key <= UINT32_MAX ? Add(operation) : -FI_EKEYREJECTED;
  }
};

namespace {

// A payload that is copied into the request: a header, if wanted, and the bytes of the buffers.
struct InlinePayload {
  std::array<std::byte, kHeaderBytes + kInjectBytesMax> bytes;
  size_t size = 0;

  // False when there is not enough room.
  bool Append(const void* from, size_t count) {
    if (count > bytes.size() - size) {
      return false;
    }
    if (count != 0) {
      std::memcpy(bytes.data() + size, from, count);
      size += count;
    }
    return true;
  }
  bool Append(const Operation& operation) {
    return std::all_of(operation.buffers, operation.buffers + operation.count,
                       [this](const iovec& buffer) { return Append(buffer.iov_base, buffer.iov_len); });
  }
};

MessageHeader HeaderOf(const Operation& operation) {
  const bool with_data = (operation.flags & FI_REMOTE_CQ_DATA) != 0;
  return {.kind = with_data ? MessageHeader::kMessageWithData : MessageHeader::kMessage,
          .written_bytes = 0,
          .data = operation.data};
}

}  // namespace

uint32_t DataPath::TransmitDepth(const Options& options) {
  return static_cast<uint32_t>(2 * options.transmit_size + kUncountedPlaces);
}

DataPath::DataPath(const Options& options, std::shared_ptr<Transfers> transfers)
    : options_(options), transfers_(std::move(transfers)) {}

int DataPath::Make(rnicd_session* session, const Options& options, std::unique_ptr<DataPath>* made) {
  std::shared_ptr<Transfers> transfers;
  if (const int result = Transfers::Make(session, options.transmit_size, options.receive_size, &transfers);
      result < 0) {
    return result;
  }
  std::unique_ptr<DataPath> path(new DataPath(options, std::move(transfers)));
  auto card = RNICD_INIT(rnicd_adapter_info);
  if (const int result = rnicd_query_adapter(session, &card); result < 0) {
    return Refused(FI_LOG_EP_CTRL, "asking about the adapter", result);
  }
  path->message_bytes_max_ = card.max_transfer_length - kHeaderBytes;
  auto wanted = RNICD_INIT(rnicd_qp_options);
  wanted.receive_queue_depth = ReceiveDepth(options);
  wanted.initiator_queue_depth = TransmitDepth(options);
  wanted.max_receive_request_sge = kBuffersMax + 1;
  wanted.max_initiator_request_sge = kBuffersMax + 1;
  wanted.inline_data_size = kHeaderBytes + kInjectBytesMax;
  wanted.flags = RNICD_QP_FLUSH_WITH_PEER;
  wanted.qp_context = reinterpret_cast<uintptr_t>(path->transfers_.get());
  if (const int result = rnicd_create_qp(options.receive_cq, options.transmit_cq, &wanted, &path->qp_); result < 0) {
    return Refused(FI_LOG_EP_CTRL, "creating a queue pair", result);
  }
  if (rnicd_create_chain(&path->transmit_chain_) < 0) {
    return -FI_ENOMEM;
  }
  MutexLock lock(path->transfers_->receive.mutex);
  if (const int result = path->transfers_->receive_batch.Open(path->qp_, options.rings); result < 0) {
    return result;
  }
  *made = std::move(path);
  return 0;
}

DataPath::~DataPath() {
  {
    MutexLock lock(transfers_->receive.mutex);
    transfers_->receive_batch.Close();
  }
  rnicd_close_qp(qp_);
  rnicd_close_chain(transmit_chain_);
}

bool DataPath::TakePlace(const Operation& operation, uint64_t flags, size_t bytes, uint64_t* context,
                         uint32_t* post_flags) {
  rnicd_reset_chain(transmit_chain_);
  *post_flags = (operation.flags & FI_FENCE) != 0 ? RNICD_OP_READ_FENCE : 0;
  if ((operation.flags & kUnreported) != 0) {
    *context = kDroppedContext;
    if (++silent_in_a_row_ < kUncountedPlaces / 2) {
      *post_flags |= RNICD_OP_SILENT_SUCCESS;
    } else {
      silent_in_a_row_ = 0;
    }
    return true;
  }
  const bool reports = !options_.selective_transmit || (operation.flags & FI_COMPLETION) != 0;
  silent_in_a_row_ = 0;
  return transfers_->transmit.Take({.context = operation.context,
                                    .flags = flags,
                                    .buffer = operation.count != 0 ? operation.buffers[0].iov_base : nullptr,
                                    .bytes = bytes,
                                    .reports_success = reports},
                                   context);
}

template <typename Add>
ssize_t DataPath::Transmit(const Operation& operation, uint64_t flags, size_t bytes, const Add& add) {
  MutexLock lock(transfers_->transmit.mutex);
  uint64_t context = 0;
  uint32_t post_flags = 0;
  if (!TakePlace(operation, flags, bytes, &context, &post_flags)) {
    return -FI_EAGAIN;
  }
  add(post_flags, context);
  const int result = rnicd_post_without_outcome(qp_, transmit_chain_);
  if (result < 0 && context != kDroppedContext) {
    transfers_->transmit.GiveBack();
  }
  return ResultOf(result);
}

ssize_t DataPath::Send(const Operation& operation) {
  const MessageHeader header = HeaderOf(operation);
  if ((operation.flags & FI_INJECT) != 0) {
    InlinePayload payload;
    if (!payload.Append(&header, sizeof(header)) || !payload.Append(operation)) {
      return -FI_EMSGSIZE;
    }
    return Transmit(operation, FI_SEND | FI_MSG, payload.size - kHeaderBytes, [&](uint32_t flags, uint64_t context) {
      rnicd_chain_send_inline(transmit_chain_, payload.bytes.data(), payload.size, flags, context);
    });
  }
  Sges sges(message_bytes_max_);
  sges.count = 1;
  if (const int result = sges.Add(operation); result < 0) {
    return result;
  }
  return Transmit(operation, FI_SEND | FI_MSG, sges.bytes, [&](uint32_t flags, uint64_t context) {
    MessageHeader& room = transfers_->TransmitHeader(context);
    room = header;
    sges.list[0] = transfers_->HeaderSge(room);
    rnicd_chain_send(transmit_chain_, sges.list.data(), sges.count, flags, context);
  });
}

ssize_t DataPath::Receive(const Operation& operation) {
  Sges sges(message_bytes_max_);
  sges.count = 1;
  if (const int result = sges.Add(operation); result < 0) {
    return result;
  }
  MutexLock lock(transfers_->receive.mutex);
  size_t index = 0;
  const bool reports = !options_.selective_receive || (operation.flags & FI_COMPLETION) != 0;
  if (!transfers_->receive.Take({.context = operation.context,
                                 .flags = FI_RECV | FI_MSG,
                                 .buffer = operation.count != 0 ? operation.buffers[0].iov_base : nullptr,
                                 .bytes = sges.bytes,
                                 .reports_success = reports},
                                &index)) {
    return -FI_EAGAIN;
  }
  sges.list[0] = transfers_->HeaderSge(transfers_->ReceiveHeader(index));
  const int result =
      transfers_->receive_batch.Add(sges.list.data(), sges.count, index, transfers_->receive.outstanding());
  if (result < 0) {
    transfers_->receive.GiveBack();
  }
  return ResultOf(result);
}

ssize_t DataPath::Read(const Operation& operation) {
  Sges sges(message_bytes_max_);
  if (const int result = sges.AddForRma(operation); result < 0) {
    return result;
  }
  return Transmit(operation, FI_READ | FI_RMA, sges.bytes, [&](uint32_t flags, uint64_t context) {
    rnicd_chain_read(transmit_chain_, sges.list.data(), sges.count, operation.remote_address,
                     static_cast<uint32_t>(operation.remote_key), flags, context);
  });
}

void DataPath::AddWrite(const Operation& operation, const Sges& sges, uint32_t flags, uint64_t context) {
  const auto key = static_cast<uint32_t>(operation.remote_key);
  if ((operation.flags & FI_INJECT) == 0) {
    rnicd_chain_write(transmit_chain_, sges.list.data(), sges.count, operation.remote_address, key, flags, context);
    return;
  }
  InlinePayload payload;
  payload.Append(operation);
  rnicd_chain_write_inline(transmit_chain_, payload.bytes.data(), payload.size, operation.remote_address, key, flags,
                           context);
}

ssize_t DataPath::Write(const Operation& operation) {
  Sges sges(message_bytes_max_);
  if (const int result = sges.AddForRma(operation); result < 0) {
    return result;
  }
  if ((operation.flags & FI_INJECT) != 0 && sges.bytes > kInjectBytesMax) {
    return -FI_EMSGSIZE;
  }
  return Transmit(operation, FI_WRITE | FI_RMA, sges.bytes, [&](uint32_t flags, uint64_t context) {
    if ((operation.flags & FI_REMOTE_CQ_DATA) == 0) {
      AddWrite(operation, sges, flags, context);
      return;
    }
    // The data travel in a message behind the bytes; a queue pair keeps the order.
    AddWrite(operation, sges, flags | RNICD_OP_SILENT_SUCCESS,
             context == kDroppedContext ? context : context | kFirstOfTwo);
    const MessageHeader header = {.kind = MessageHeader::kWriteWithData,
                                  .written_bytes = static_cast<uint32_t>(sges.bytes),
                                  .data = operation.data};
    rnicd_chain_send_inline(transmit_chain_, &header, sizeof(header), flags, context);
  });
}

}  // namespace rnicd::fi
