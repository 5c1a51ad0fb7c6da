// What fi_msg(3) and fi_rma(3) call: each makes one operation of its arguments.

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "client/libfabric/endpoint.h"
#include "client/libfabric/handle.h"

namespace rnicd::fi {
namespace {

using Member = ssize_t (DataPath::*)(const Operation&);

ssize_t Do(fid_ep* endpoint, Member member, const Operation& operation) {
  DataPath* const path = Endpoint::Of(&endpoint->fid).data_path();
  return path != nullptr ? (path->*member)(operation) : -FI_EOPBADSTATE;
}

// The same with one buffer instead of a list.
ssize_t DoWithOne(fid_ep* endpoint, Member member, const void* buffer, size_t bytes, void* descriptor,
                  Operation operation) {
  const iovec whole = {const_cast<void*>(buffer), bytes};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  operation.buffers = &whole;
  operation.descriptors = &descriptor;
  operation.count = 1;
  return Do(endpoint, member, operation);
}

uint64_t TransmitFlags(fid_ep* endpoint) { return Endpoint::Of(&endpoint->fid).transmit_flags(); }
uint64_t ReceiveFlags(fid_ep* endpoint) { return Endpoint::Of(&endpoint->fid).receive_flags(); }

// What no program asks an injection for.
constexpr uint64_t kInjection = FI_INJECT | kUnreported;

// --- Messages -------------------------------------------------------------------------------------------------------

ssize_t Receive(fid_ep* endpoint, void* buffer, size_t bytes, void* descriptor, fi_addr_t /*source*/, void* context) {
  return DoWithOne(endpoint, &DataPath::Receive, buffer, bytes, descriptor,
                   {.flags = ReceiveFlags(endpoint), .context = context});
}

ssize_t ReceiveVector(fid_ep* endpoint, const iovec* buffers, void** descriptors, size_t count, fi_addr_t /*source*/,
                      void* context) {
  return Do(endpoint, &DataPath::Receive,
            {.buffers = buffers,
             .descriptors = descriptors,
             .count = count,
             .flags = ReceiveFlags(endpoint),
             .context = context});
}

ssize_t Send(fid_ep* endpoint, const void* buffer, size_t bytes, void* descriptor, fi_addr_t /*to*/, void* context) {
  return DoWithOne(endpoint, &DataPath::Send, buffer, bytes, descriptor,
                   {.flags = TransmitFlags(endpoint), .context = context});
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

template <Member member>
ssize_t DoMessage(fid_ep* endpoint, const fi_msg* message, uint64_t flags) {
  return Do(endpoint, member,
            {.buffers = message->msg_iov,
             .descriptors = message->desc,
             .count = message->iov_count,
             .flags = flags,
             .context = message->context,
             .data = message->data});
}

ssize_t InjectSend(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t /*to*/) {
  return DoWithOne(endpoint, &DataPath::Send, buffer, bytes, nullptr, {.flags = kInjection});
}

ssize_t SendWithData(fid_ep* endpoint, const void* buffer, size_t bytes, void* descriptor, uint64_t data,
                     fi_addr_t /*to*/, void* context) {
  return DoWithOne(endpoint, &DataPath::Send, buffer, bytes, descriptor,
                   {.flags = TransmitFlags(endpoint) | FI_REMOTE_CQ_DATA, .context = context, .data = data});
}

ssize_t InjectSendWithData(fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t /*to*/) {
  return DoWithOne(endpoint, &DataPath::Send, buffer, bytes, nullptr,
                   {.flags = kInjection | FI_REMOTE_CQ_DATA, .data = data});
}

// --- RMA ------------------------------------------------------------------------------------------------------------

// fi_read takes a buffer that it may write to, fi_write one that it may not.
template <Member member, typename Buffer>
ssize_t Rma(fid_ep* endpoint, Buffer buffer, size_t bytes, void* descriptor, fi_addr_t /*peer*/, uint64_t address,
            uint64_t key, void* context) {
  return DoWithOne(
      endpoint, member, buffer, bytes, descriptor,
      {.flags = TransmitFlags(endpoint), .context = context, .remote_address = address, .remote_key = key});
}

template <Member member>
ssize_t RmaVector(fid_ep* endpoint, const iovec* buffers, void** descriptors, size_t count, fi_addr_t /*peer*/,
                  uint64_t address, uint64_t key, void* context) {
  return Do(endpoint, member,
            {.buffers = buffers,
             .descriptors = descriptors,
             .count = count,
             .flags = TransmitFlags(endpoint),
             .context = context,
             .remote_address = address,
             .remote_key = key});
}

// One remote range for all buffers: fi_tx_attr::rma_iov_limit is 1.
template <Member member>
ssize_t RmaMessage(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
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

ssize_t InjectWrite(fid_ep* endpoint, const void* buffer, size_t bytes, fi_addr_t /*to*/, uint64_t address,
                    uint64_t key) {
  return DoWithOne(endpoint, &DataPath::Write, buffer, bytes, nullptr,
                   {.flags = kInjection, .remote_address = address, .remote_key = key});
}

ssize_t WriteWithData(fid_ep* endpoint, const void* buffer, size_t bytes, void* descriptor, uint64_t data,
                      fi_addr_t /*to*/, uint64_t address, uint64_t key, void* context) {
  return DoWithOne(endpoint, &DataPath::Write, buffer, bytes, descriptor,
                   {.flags = TransmitFlags(endpoint) | FI_REMOTE_CQ_DATA,
                    .context = context,
                    .data = data,
                    .remote_address = address,
                    .remote_key = key});
}

ssize_t InjectWriteWithData(fid_ep* endpoint, const void* buffer, size_t bytes, uint64_t data, fi_addr_t /*to*/,
                            uint64_t address, uint64_t key) {
  return DoWithOne(
      endpoint, &DataPath::Write, buffer, bytes, nullptr,
      {.flags = kInjection | FI_REMOTE_CQ_DATA, .data = data, .remote_address = address, .remote_key = key});
}

}  // namespace

fi_ops_msg& MessageOperations() {
  static fi_ops_msg operations = {.size = sizeof(fi_ops_msg),
                                  .recv = Receive,
                                  .recvv = ReceiveVector,
                                  .recvmsg = DoMessage<&DataPath::Receive>,
                                  .send = Send,
                                  .sendv = SendVector,
                                  .sendmsg = DoMessage<&DataPath::Send>,
                                  .inject = InjectSend,
                                  .senddata = SendWithData,
                                  .injectdata = InjectSendWithData};
  return operations;
}

fi_ops_rma& RmaOperations() {
  static fi_ops_rma operations = {.size = sizeof(fi_ops_rma),
                                  .read = Rma<&DataPath::Read>,
                                  .readv = RmaVector<&DataPath::Read>,
                                  .readmsg = RmaMessage<&DataPath::Read>,
                                  .write = Rma<&DataPath::Write>,
                                  .writev = RmaVector<&DataPath::Write>,
                                  .writemsg = RmaMessage<&DataPath::Write>,
                                  .inject = InjectWrite,
                                  .writedata = WriteWithData,
                                  .injectdata = InjectWriteWithData};
  return operations;
}

}  // namespace rnicd::fi
