#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/http2/fields.h"

// Source: gRPC over HTTP2, "Responses".
namespace rnicd::http2 {

// How a call ended, as gRPC's trailers say it.
struct Status {
  // A number of gRPC's status codes, which are abseil's; 0 is success.
  int code = 0;
  // UTF-8, for people.
  std::string message;
  // A serialized google.rpc.Status for grpc-status-details-bin; empty for none.
  std::string details;
};

// grpc-status, grpc-message and grpc-status-details-bin of a status; the latter two only where they say something.
std::vector<HeaderField> TrailersOf(const Status& status);

// Text in the form of grpc-message: what is not printable ASCII, and "%", as %XX.
std::string PercentEncoded(std::string_view text);
// The reverse. What only looks like %XX is kept as it is.
std::string PercentDecoded(std::string_view text);

// The status in header fields or trailers, which are added one by one; fields that say nothing of it are ignored.
// Threads: one.
class StatusReader {
 public:
  // The last field of a name counts. A code that is no number from 0 to 16 is 2, UNKNOWN. Details that are no base64,
  // with or without padding, and any value above 64 KiB, count as not sent.
  void Add(std::string_view name, std::string_view value);
  // What was added since the last Take; empty when no code was.
  std::optional<Status> Take();

 private:
  std::optional<int> code_;
  std::string message_;
  std::string details_;
};

}  // namespace rnicd::http2
