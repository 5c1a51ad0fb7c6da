// What a program does with an event queue: the functions of fi_ops_eq and fi_ops.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/libfabric/connection/event_queue.h"
#include "client/libfabric/errors.h"
#include "client/libfabric/waiting.h"

namespace rnicd::fi {

const char* EventQueue::Text(fid_eq* /*eq*/, int error, const void* /*data*/, char* buffer, size_t bytes) {
  return GiveText(fi_strerror(error), buffer, bytes);
}

int EventQueue::Control(fid* eq, int command, void* argument) {
  const EventQueue& queue = Of(eq);
  return ControlWaitObject(queue.has_wait_object_ ? queue.epoll_.get() : -1, command, argument);
}

ssize_t EventQueue::Read(fid_eq* eq, uint32_t* event, void* buffer, size_t bytes, uint64_t flags) {
  EventQueue& queue = Of(&eq->fid);
  queue.Progress();
  return queue.Take(event, buffer, bytes, (flags & FI_PEEK) != 0);
}

// Private data beyond the buffer is cut off, as fi_eq(3) says. What the program wrote is not.
ssize_t EventQueue::Take(uint32_t* event, void* buffer, size_t bytes, bool peek) {
  MutexLock lock(mutex_);
  if (events_.empty() || events_.front().later) {
    return -FI_EAGAIN;
  }
  Event& first = events_.front();
  if (first.error != 0) {
    return -FI_EAVAIL;
  }
  const size_t header_bytes = first.of == nullptr ? 0 : sizeof(fi_eq_cm_entry);
  const size_t data_bytes =
      header_bytes == 0 ? first.data.size() : std::min(first.data.size(), std::max(bytes, header_bytes) - header_bytes);
  if (bytes < header_bytes + data_bytes) {
    return -FI_ETOOSMALL;
  }
  if (event != nullptr) {
    *event = first.event;
  }
  if (header_bytes != 0) {
    const fi_eq_cm_entry header = {.fid = first.of, .info = first.info.get()};
    std::memcpy(buffer, &header, header_bytes);
  }
  if (data_bytes != 0) {
    std::memcpy(static_cast<std::byte*>(buffer) + header_bytes, first.data.data(), data_bytes);
  }
  if (!peek) {
    // It is the reader's now.
    static_cast<void>(first.info.release());
    DropFirst();
  }
  return static_cast<ssize_t>(header_bytes + data_bytes);
}

ssize_t EventQueue::ReadError(fid_eq* eq, fi_eq_err_entry* entry, uint64_t flags) {
  EventQueue& queue = Of(&eq->fid);
  queue.Progress();
  MutexLock lock(queue.mutex_);
  if (queue.events_.empty() || queue.events_.front().error == 0) {
    return -FI_EAGAIN;
  }
  Event& first = queue.events_.front();
  fi_eq_err_entry result = {.fid = first.of,
                            .context = first.of->context,
                            .data = 0,
                            .err = first.error,
                            .prov_errno = first.error,
                            .err_data = first.data.empty() ? nullptr : first.data.data(),
                            .err_data_size = first.data.size()};
  if (queue.copies_error_data_ && entry->err_data != nullptr && entry->err_data_size != 0) {
    result.err_data = entry->err_data;
    result.err_data_size = std::min(first.data.size(), entry->err_data_size);
    if (result.err_data_size != 0) {
      std::memcpy(result.err_data, first.data.data(), result.err_data_size);
    }
  }
  *entry = result;
  if ((flags & FI_PEEK) == 0) {
    queue.error_data_ = std::move(first.data);
    queue.DropFirst();
  }
  return sizeof(*entry);
}

ssize_t EventQueue::Write(fid_eq* eq, uint32_t event, const void* buffer, size_t bytes, uint64_t flags) {
  EventQueue& queue = Of(&eq->fid);
  if (!queue.takes_writes_ || flags != 0 || (buffer == nullptr && bytes != 0)) {
    return -FI_EINVAL;
  }
  const auto* first = static_cast<const std::byte*>(buffer);
  queue.Add({.event = event, .info = nullptr, .data = {first, first + bytes}});
  return static_cast<ssize_t>(bytes);
}

ssize_t EventQueue::WaitAndRead(fid_eq* eq, uint32_t* event, void* buffer, size_t bytes, int timeout, uint64_t flags) {
  const EventQueue& queue = Of(&eq->fid);
  if (!queue.has_wait_object_) {
    return -FI_ENOSYS;
  }
  const Deadline deadline(timeout);
  while (true) {
    const ssize_t result = Read(eq, event, buffer, bytes, flags);
    if (result != -FI_EAGAIN) {
      return result;
    }
    // The time is up, or a signal came.
    if (deadline.Wait(queue.epoll_.get()) <= 0) {
      return -FI_EAGAIN;
    }
  }
}

}  // namespace rnicd::fi
