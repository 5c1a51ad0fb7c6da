// The cases of cases.txt with gRPC's C++ library and the generated stubs, as librnicd uses them.
//
// usage: rnicd_interop_client SOCKET

#include <grpc/compression.h>

#include <exception>
#include <future>
#include <iostream>
#include <iterator>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/interop/grpcpp_connection.h"
#include "tests/interop/grpcpp_storm.h"

namespace rnicd::interop {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kMiB = 1 << 20;
constexpr milliseconds kIdle{3'000};

void EmptyUnary(const std::string& socket) {
  const v1::ListAdaptersResponse response = Connection(socket).ListAdapters();
  Check(response.adapters_size() == 1 && response.adapters(0).name() == "soft0", response.ShortDebugString());
}

void CustomMetadata(const std::string& socket) {
  Connection connection(socket);
  grpc::ClientContext context;
  SetTimeout(context, kTimeout);
  context.AddMetadata("x-interop", "text");
  context.AddMetadata("x-interop-bin", std::string("\x00\x01\xfe\xff", 4));
  v1::ListAdaptersResponse response;
  CheckOk(v1::AdapterService::NewStub(connection.channel())->ListAdapters(&context, {}, &response), "ListAdapters");
}

void UnimplementedMethod(const std::string& socket) {
  CheckRefused(Connection(socket).CallRaw("AdapterService/Nothing", ""), grpc::StatusCode::UNIMPLEMENTED,
               v1::ERROR_REASON_METHOD_UNKNOWN, "");
}

void UnimplementedService(const std::string& socket) {
  CheckRefused(Connection(socket).CallRaw("NoService/Nothing", ""), grpc::StatusCode::UNIMPLEMENTED,
               v1::ERROR_REASON_METHOD_UNKNOWN, "");
}

void StatusWithDetails(const std::string& socket) {
  CheckRefused(Connection(socket).OpenSession("Grüße, 世界"), grpc::StatusCode::INVALID_ARGUMENT,
               v1::ERROR_REASON_FIELD_OUT_OF_RANGE, "label");
}

void MalformedMessage(const std::string& socket) {
  // A label of five bytes, of which one is there.
  CheckRefused(Connection(socket).CallRaw("SessionService/OpenSession",
                                          "\x0a\x05"
                                          "a"),
               grpc::StatusCode::INVALID_ARGUMENT, v1::ERROR_REASON_MESSAGE_MALFORMED, "label");
}

void CompressedRequest(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  CheckRefused(Connection(socket, arguments).OpenSession(std::string(1000, 'a')), grpc::StatusCode::UNIMPLEMENTED,
               v1::ERROR_REASON_MESSAGE_COMPRESSED, "");
}

void LargeUnary(const std::string& socket) {
  CheckRefused(Connection(socket).OpenSession(std::string(4 * kMiB - 100, 'a')), grpc::StatusCode::INVALID_ARGUMENT,
               v1::ERROR_REASON_FIELD_OUT_OF_RANGE, "label");
}

void TooLargeUnary(const std::string& socket) {
  const auto session = ConnectWithSession(socket);
  for (const size_t size : {4 * kMiB, 5 * kMiB, 20 * kMiB}) {
    CheckRefused(session->OpenSession(std::string(size, 'a')), grpc::StatusCode::RESOURCE_EXHAUSTED,
                 v1::ERROR_REASON_MESSAGE_TOO_LARGE, "");
  }
  session->MakeBusyPd();
}

void Deadline(const std::string& socket) {
  const auto session = ConnectWithSession(socket);
  const auto busy = session->MakeBusyPd();
  const auto began = steady_clock::now();
  const auto call = session->StartClosePd(busy.pd_id, milliseconds(500));
  CheckCode(EventStream(session->sessions(), milliseconds(500)).Finish(), grpc::StatusCode::DEADLINE_EXCEEDED);
  CheckCode(call->status(), grpc::StatusCode::DEADLINE_EXCEEDED);
  const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
  Check(took > milliseconds(400), absl::StrCat(took.count(), " ms"));
}

void CancelBeforeResponse(const std::string& socket) {
  const auto session = ConnectWithSession(socket);
  const auto busy = session->MakeBusyPd();
  const auto call = session->StartClosePd(busy.pd_id);
  session->ListAdapters();
  call->Cancel();
  CheckCode(call->status(), grpc::StatusCode::CANCELLED);
  session->CloseMr(busy.mr_id);
  session->MakeBusyPd();
}

void ServerStreaming(const std::string& socket) {
  const auto session = ConnectWithSession(socket);
  const auto stream = session->Watch();
  for (const uint64_t context : {1, 2, 3}) {
    session->CauseEvent(context);
    stream->ExpectEvent(context);
  }
  session->CloseSession();
  stream->ExpectLastEvent("closed");
  CheckOk(stream->Finish(), "WatchEvents");
}

void CancelStreamAfterBegin(const std::string& socket) {
  const auto session = ConnectWithSession(socket);
  for (int round = 0; round < 20; ++round) {
    session->Watch()->ExpectCancelled();
  }
  const auto stream = session->Watch();
  session->CauseEvent(1);
  stream->ExpectEvent(1);
  stream->ExpectCancelled();
}

void CancelStreamAfterFirstMessage(const std::string& socket) {
  const auto session = ConnectWithSession(socket);
  for (const uint64_t context : {1, 2, 3}) {
    const auto stream = session->Watch();
    session->CauseEvent(context);
    stream->ExpectEvent(context);
    stream->ExpectCancelled();
  }
}

void ThousandConcurrentCalls(const std::string& socket) {
  Connection connection(socket);
  std::vector<std::unique_ptr<ListCall>> calls;
  for (int i = 0; i < 1000; ++i) {
    calls.push_back(connection.StartListAdapters());
  }
  for (const auto& call : calls) {
    CheckOk(call->status(), "ListAdapters");
  }
}

void Keepalive(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 500);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  const auto session = ConnectWithSession(socket, arguments);
  const auto stream = session->Watch();
  // gRPC's core looks for the responses to its pings only while a thread waits for something.
  std::future<void> event = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(kIdle);
    session->CauseEvent(1);
  });
  stream->ExpectEvent(1);
  event.get();
  stream->ExpectCancelled();
}

// Calls until one fails.
grpc::Status LastCall(Connection& session) {
  while (true) {
    if (grpc::Status status = session.StartListAdapters()->status(); !status.ok()) {
      return status;
    }
  }
}

void GoawayInTheMiddle(const std::string& socket) {
  const auto session = ConnectWithSession(socket);
  const auto stream = session->Watch();
  std::vector<std::unique_ptr<ClosePdCall>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(session->StartClosePd(session->MakeBusyPd().pd_id));
  }
  session->ListAdapters();
  std::cout << "stop the daemon" << std::endl;
  stream->ExpectLastEvent("daemon_stopping");
  std::vector<grpc::Status> ends = {stream->Finish(), LastCall(*session)};
  for (const auto& call : calls) {
    ends.push_back(call->status());
  }
  for (const grpc::Status& end : ends) {
    Check(end.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED, Told(end));
  }
}

struct Case {
  const char* name;
  void (*run)(const std::string& socket);
};

constexpr Case kCases[] = {
    {"empty_unary", EmptyUnary},
    {"custom_metadata", CustomMetadata},
    {"unimplemented_method", UnimplementedMethod},
    {"unimplemented_service", UnimplementedService},
    {"status_with_utf8_and_details", StatusWithDetails},
    {"malformed_message", MalformedMessage},
    {"compressed_request", CompressedRequest},
    {"large_unary", LargeUnary},
    {"too_large_unary", TooLargeUnary},
    {"deadline", Deadline},
    {"cancel_before_response", CancelBeforeResponse},
    {"server_streaming", ServerStreaming},
    {"cancel_stream_after_begin", CancelStreamAfterBegin},
    {"cancel_stream_after_first_message", CancelStreamAfterFirstMessage},
    {"cancel_storm", CancelStorm},
    {"deadline_storm", DeadlineStorm},
    {"thousand_concurrent_calls", ThousandConcurrentCalls},
    {"keepalive", Keepalive},
    {"goaway_in_the_middle", GoawayInTheMiddle},
};

bool Run(const Case& one, const std::string& socket) {
  try {
    one.run(socket);
    std::cout << one.name << " ok" << std::endl;
    return true;
  } catch (const std::exception& problem) {
    std::cout << one.name << " FAILED " << problem.what() << std::endl;
    return false;
  }
}

}  // namespace
}  // namespace rnicd::interop

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: rnicd_interop_client SOCKET\n";
    return 2;
  }
  int failed = 0;
  for (const rnicd::interop::Case& one : rnicd::interop::kCases) {
    failed += rnicd::interop::Run(one, argv[1]) ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}
