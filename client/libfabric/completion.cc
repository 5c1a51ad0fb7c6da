#include "client/libfabric/completion.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstring>

namespace rnicd::fi {

int ErrorOf(uint32_t reason) {
  switch (reason) {
    case RNICD_REASON_REQUEST_FLUSHED:
      return FI_ECANCELED;
    case RNICD_REASON_RECEIVE_TOO_SHORT:
      return FI_ETRUNC;
    case RNICD_REASON_LOCAL_ACCESS_REFUSED:
    case RNICD_REASON_REMOTE_ACCESS_REFUSED:
      return FI_EACCES;
    case RNICD_REASON_PEER_LOST:
      return FI_ECONNABORTED;
    case RNICD_REASON_QP_NOT_CONNECTED:
      return FI_ENOTCONN;
    default:
      return FI_EIO;
  }
}

namespace {

fi_cq_err_entry EntryOf(const Request& request) {
  fi_cq_err_entry entry = {};
  entry.op_context = request.context;
  entry.flags = request.flags;
  entry.len = request.bytes;
  return entry;
}

// A receive took what the peer sent. A message without a header, or with one of another kind, is none of this
// provider's.
void Receive(const MessageHeader& header, uint32_t bytes, const Request& request, fi_cq_err_entry* entry) {
  if (bytes < kHeaderBytes || header.kind > MessageHeader::kWriteWithData) {
    entry->len = 0;
    entry->err = FI_EIO;
    return;
  }
  entry->buf = request.buffer;
  entry->len = bytes - kHeaderBytes;
  if (header.kind == MessageHeader::kMessage) {
    return;
  }
  entry->flags |= FI_REMOTE_CQ_DATA;
  entry->data = header.data;
  if (header.kind == MessageHeader::kWriteWithData) {
    entry->flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    entry->len = header.written_bytes;
  }
}

}  // namespace

fi_cq_err_entry EntryOf(const Request& request, const rnicd_completion& completion, const MessageHeader* received) {
  if (completion.ntstatus != 0) {
    return EntryOfLostRequest(request, ErrorOf(completion.reason), completion.reason);
  }
  fi_cq_err_entry entry = EntryOf(request);
  if (received != nullptr) {
    Receive(*received, completion.bytes, request, &entry);
  }
  return entry;
}

fi_cq_err_entry EntryOfLostRequest(const Request& request, int error, uint32_t reason) {
  fi_cq_err_entry entry = EntryOf(request);
  entry.len = 0;
  entry.buf = request.buffer;
  entry.err = error;
  entry.prov_errno = static_cast<int>(reason);
  return entry;
}

size_t EntryBytes(fi_cq_format format) {
  static constexpr std::array<size_t, 5> kBytes = {sizeof(fi_cq_entry), sizeof(fi_cq_entry), sizeof(fi_cq_msg_entry),
                                                   sizeof(fi_cq_data_entry), sizeof(fi_cq_tagged_entry)};
  return kBytes[format];
}

void WriteEntry(const fi_cq_err_entry& entry, fi_cq_format format, void* to) {
  // Each format is the beginning of the next one.
  const fi_cq_tagged_entry whole = {.op_context = entry.op_context,
                                    .flags = entry.flags,
                                    .len = entry.len,
                                    .buf = entry.buf,
                                    .data = entry.data,
                                    .tag = 0};
  std::memcpy(to, &whole, EntryBytes(format));
}

}  // namespace rnicd::fi
