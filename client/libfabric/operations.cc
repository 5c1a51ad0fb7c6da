// What fi_msg(3) and fi_rma(3) call: each makes one operation of its arguments.

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "client/libfabric/endpoint.h"
#include "client/libfabric/handle.h"

namespace rnicd::fi {
namespace {

// The buffer of an operation that has one.
struct OneBuffer {
  OneBuffer(const void* buffer, size_t bytes, void* described)
      : vector{const_cast<void*>(buffer), bytes},  // NOLINT(cppcoreguidelines-pro-type-const-cast)
        descriptor(described) {}

  Operation Post(uint64_t flags, void* context, uint64_t data = 0) const {
    return {
        .buffers = &vector, .descriptors = &descriptor, .count = 1, .flags = flags, .context = context, .data = data};
  }

  iovec vector;
  void* descriptor;
};

Operation Remote(Operation operation, uint64_t address, uint64_t key) {
  operation.remote_address = address;
  operation.remote_key = key;
  return operation;
}

using Member = ssize_t (DataPath::*)(const Operation&);

ssize_t Do(fid_ep* endpoint, Member member, const Operation& operation) {
  DataPath* const path = Endpoint::Of(&endpoint->fid).data_path();
  return path != nullptr ? (path->*member)(operation) : -FI_EOPBADSTATE;
}

uint64_t TransmitFlags(fid_ep* endpoint) { return Endpoint::Of(&endpoint->fid).transmit_flags(); }

// What no program asks an injection for.
constexpr uint64_t kInjection = FI_INJECT | kUnreported;

// --- Messages -------------------------------------------------------------------------------------------------------

ssize_t Receive(fid_ep* endpoint, void* buffer, size_t bytes, void* descriptor, fi_addr_t /*source*/, void* context) {
  const OneBuffer one(buffer, bytes, descriptor);
  return Do(endpoint, &DataPath::Receive, one.Post(Endpoint::Of(&endpoint->fid).receive_flags(), context));
}

ssize_t ReceiveVector(fid_ep* endpoint, const iovec* buffers, void** descriptors, size_t count, fi_addr_t /*source*/,
                      void* context) {
  return Do(endpoint, &DataPath::Receive,
            {.buffers = buffers,
             .descriptors = descriptors,
             .count = count,
             .flags = Endpoint::Of(&endpoint->fid).receive_flags(),
             .context = context});
}

ssize_t ReceiveMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  return Do(endpoint, &DataPath::Receive,
            {.buffers = message->msg_iov,
             .descriptors = message->desc,
             .count = message->iov_count,
             .flags = flags,
             .context = message->context});
}

ssize_t Send(fid_ep* endpoint, const void* buffer, size_t bytes, void* descriptor, fi_addr_t /*to*/, void* context) {
  const OneBuffer one(buffer, bytes, descriptor);
  return Do(endpoint, &DataPath::Send, one.Post(TransmitFlags(endpoint), context));
}

ssize_t SendVector(fid_ep* endpoint, const iovec* buffers, void** descriptors, size_t count, fi_addr_t /*to*/,
                   void* context) {
  return Do(endpoint, &DataPath::Send,
            {.buffers = buffers,
             .descriptors = descriptors,
             .count = count,
             .flags = TransmitFlags(endpoint),
             .context = context});
}

ssize_t SendMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  return Do(endpoint, &DataPath::Send,
            {.buffers = message->msg_iov,
             .descriptors = message->desc,
             .count = message->iov_count,
             .flags = flags,
             .context = message->context,
             .data = message->data});
}

ssize_t InjectSend(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t /*to*/) {
  const OneBuffer one(buffer, bytes, nullptr);
  return Do(endpoint, &DataPath::Send, one.Post(kInjection, nullptr));
}

ssize_t SendWithData(fid_ep* endpoint, const void* buffer, size_t bytes, void* descriptor, uint64_t data,
                     fi_addr_t /*to*/, void* context) {
  const OneBuffer one(buffer, bytes, descriptor);
  return Do(endpoint, &DataPath::Send, one.Post(TransmitFlags(endpoint) | FI_REMOTE_CQ_DATA, context, data));
}

ssize_t InjectSendWithData(fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t /*to*/) {
  const OneBuffer one(buffer, bytes, nullptr);
  return Do(endpoint, &DataPath::Send, one.Post(kInjection | FI_REMOTE_CQ_DATA, nullptr, data));
}

// --- RMA ------------------------------------------------------------------------------------------------------------

ssize_t Read(fid_ep* endpoint, void* buffer, size_t bytes, void* descriptor, fi_addr_t /*from*/, uint64_t address,
             uint64_t key, void* context) {
  const OneBuffer one(buffer, bytes, descriptor);
  return Do(endpoint, &DataPath::Read, Remote(one.Post(TransmitFlags(endpoint), context), address, key));
}

ssize_t ReadVector(fid_ep* endpoint, const iovec* buffers, void** descriptors, size_t count, fi_addr_t /*from*/,
                   uint64_t address, uint64_t key, void* context) {
  return Do(endpoint, &DataPath::Read,
            {.buffers = buffers,
             .descriptors = descriptors,
             .count = count,
             .flags = TransmitFlags(endpoint),
             .context = context,
             .remote_address = address,
             .remote_key = key});
}

// One remote range for all buffers: fi_tx_attr::rma_iov_limit is 1.
ssize_t DoRma(fid_ep* endpoint, Member member, const fi_msg_rma* message, uint64_t flags) {
  if (message->rma_iov_count != 1) {
    return -FI_EINVAL;
  }
  return Do(endpoint, member,
            {.buffers = message->msg_iov,
             .descriptors = message->desc,
             .count = message->iov_count,
             .flags = flags,
             .context = message->context,
             .data = message->data,
             .remote_address = message->rma_iov[0].addr,
             .remote_key = message->rma_iov[0].key});
}

ssize_t ReadMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  return DoRma(endpoint, &DataPath::Read, message, flags & ~FI_REMOTE_CQ_DATA);
}

ssize_t Write(fid_ep* endpoint, const void* buffer, size_t bytes, void* descriptor, fi_addr_t /*to*/, uint64_t address,
              uint64_t key, void* context) {
  const OneBuffer one(buffer, bytes, descriptor);
  return Do(endpoint, &DataPath::Write, Remote(one.Post(TransmitFlags(endpoint), context), address, key));
}

ssize_t WriteVector(fid_ep* endpoint, const iovec* buffers, void** descriptors, size_t count, fi_addr_t /*to*/,
                    uint64_t address, uint64_t key, void* context) {
  return Do(endpoint, &DataPath::Write,
            {.buffers = buffers,
             .descriptors = descriptors,
             .count = count,
             .flags = TransmitFlags(endpoint),
             .context = context,
             .remote_address = address,
             .remote_key = key});
}

ssize_t WriteMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  return DoRma(endpoint, &DataPath::Write, message, flags);
}

ssize_t InjectWrite(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t /*to*/, uint64_t address,
                    uint64_t key) {
  const OneBuffer one(buffer, bytes, nullptr);
  return Do(endpoint, &DataPath::Write, Remote(one.Post(kInjection, nullptr), address, key));
}

ssize_t WriteWithData(fid_ep* endpoint, const void* buffer, size_t bytes, void* descriptor, uint64_t data,
                      fi_addr_t /*to*/, uint64_t address, uint64_t key, void* context) {
  const OneBuffer one(buffer, bytes, descriptor);
  return Do(endpoint, &DataPath::Write,
            Remote(one.Post(TransmitFlags(endpoint) | FI_REMOTE_CQ_DATA, context, data), address, key));
}

ssize_t InjectWriteWithData(fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t /*to*/,
                            uint64_t address, uint64_t key) {
  const OneBuffer one(buffer, bytes, nullptr);
  return Do(endpoint, &DataPath::Write, Remote(one.Post(kInjection | FI_REMOTE_CQ_DATA, nullptr, data), address, key));
}

}  // namespace

fi_ops_msg& MessageOperations() {
  static fi_ops_msg operations = {.size = sizeof(fi_ops_msg),
                                  .recv = Receive,
                                  .recvv = ReceiveVector,
                                  .recvmsg = ReceiveMessage,
                                  .send = Send,
                                  .sendv = SendVector,
                                  .sendmsg = SendMessage,
                                  .inject = InjectSend,
                                  .senddata = SendWithData,
                                  .injectdata = InjectSendWithData};
  return operations;
}

fi_ops_rma& RmaOperations() {
  static fi_ops_rma operations = {.size = sizeof(fi_ops_rma),
                                  .read = Read,
                                  .readv = ReadVector,
                                  .readmsg = ReadMessage,
                                  .write = Write,
                                  .writev = WriteVector,
                                  .writemsg = WriteMessage,
                                  .inject = InjectWrite,
                                  .writedata = WriteWithData,
                                  .injectdata = InjectWriteWithData};
  return operations;
}

}  // namespace rnicd::fi
