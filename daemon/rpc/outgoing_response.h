#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "daemon/rpc/bounds/budget.h"
#include "wire/http2/message.h"
#include "wire/http2/status.h"

namespace rnicd::rpc {

using http2::Status;

// One response: whether its headers were sent and its end is known, and its messages until HTTP/2 has taken them.
class OutgoingResponse {
 public:
  // True once: now the headers are to be sent.
  bool BeginHeaders() { return !std::exchange(has_headers_, true); }
  bool has_headers() const { return has_headers_; }

  // Puts a message behind those that wait, and charges all of them. Returns the bytes it takes.
  size_t Add(const std::string& message, Budget& budget) {
    const std::string prefix = http2::PrefixOf(message.size());
    output_.append(prefix).append(message);
    charge_ = budget.TakeAnyway(output_.size());
    return prefix.size() + message.size();
  }
  // As Add, of a call that waits to be told when everything has gone.
  size_t Write(const std::string& message, Budget& budget) {
    reports_written_ = true;
    return Add(message, budget);
  }
  // The messages are followed by this status, and by nothing else.
  void End(Status status) {
    ended_ = true;
    status_ = std::move(status);
  }
  bool ended() const { return ended_; }
  const Status& status() const { return status_; }

  // Bytes that HTTP/2 has not taken.
  size_t waiting_bytes() const { return output_.size() - sent_; }
  // Moves at most `size` of them, and frees what they cost when they were the last.
  size_t Move(char* buffer, size_t size) {
    const size_t bytes = std::min(size, waiting_bytes());
    std::copy_n(output_.data() + sent_, bytes, buffer);
    sent_ += bytes;
    if (waiting_bytes() == 0) {
      std::string().swap(output_);
      sent_ = 0;
      charge_.Return();
    }
    return bytes;
  }
  // True once for all that was given to Write: now its call is to be told.
  bool TakeWritten() { return waiting_bytes() == 0 && std::exchange(reports_written_, false); }

 private:
  bool has_headers_ = false;
  bool ended_ = false;
  bool reports_written_ = false;
  Status status_;
  std::string output_;
  size_t sent_ = 0;
  BudgetCharge charge_;
};

}  // namespace rnicd::rpc
