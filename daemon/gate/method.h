#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ntstatus.h"
#include "daemon/core/request/operations.h"
#include "daemon/gate/call.h"

namespace rnicd::gate {

// A method as it is served: its row, its messages, and the handler that the gate runs when the row allows the call.
struct Method {
  using Message = google::protobuf::Message;
  // `session` is null for a method that needs no session. `response` is null for a stream; the messages belong to the
  // call.
  using Handler = std::function<void(const std::shared_ptr<Call>& call, const core::SessionGuard* session,
                                     const Message* request, Message* response)>;

  const core::Operation* row = nullptr;
  // Default instances; both null for a method that does not exist, the second for a stream.
  const Message* request = nullptr;
  const Message* response = nullptr;
  Call::Shape shape = Call::Shape::kUnary;
  // The handler uses the session; Check refuses it for a row that needs none.
  bool uses_session = false;
  Handler handler;
};

// How a handler ends a unary call: with its response, or with an error. Must be called once, from any thread. False
// when the client had given up, and has received nothing.
template <typename Response>
using Reply = std::function<bool(const absl::StatusOr<Response>&)>;

namespace internal {

template <typename Parameter>
struct ReplyOf {
  static constexpr bool kIsReply = false;
};
template <typename Response>
struct ReplyOf<Reply<Response>> {
  static constexpr bool kIsReply = true;
  using Type = Response;
};

// Enters the type of a handler's parameter, if it is a message or the reply that carries one.
template <typename Parameter>
void Describe(Method& method) {
  using Plain = std::remove_cvref_t<Parameter>;
  if constexpr (std::is_pointer_v<Parameter>) {
    method.response = &std::remove_pointer_t<Parameter>::default_instance();
  } else if constexpr (ReplyOf<Plain>::kIsReply) {
    method.response = &ReplyOf<Plain>::Type::default_instance();
  } else if constexpr (std::is_base_of_v<Method::Message, Plain>) {
    method.request = &Plain::default_instance();
  } else if constexpr (std::is_same_v<Parameter, const core::SessionGuard&>) {
    method.uses_session = true;
  }
}

template <typename Response>
Reply<Response> ReplyTo(const std::shared_ptr<Call>& call, Method::Message* response) {
  return [call, response](const absl::StatusOr<Response>& reply) {
    if constexpr (requires { reply->ntstatus(); }) {
      if (reply.ok() && reply->ntstatus() == static_cast<uint32_t>(NtStatus::kPending)) {
        call->SetNote("pending");
      }
    }
    return call->Finish(reply.status(), [&] {
      if (reply.ok()) {
        *static_cast<Response*>(response) = *reply;
      }
    });
  };
}

// What a handler's parameter of this type gets.
template <typename Parameter>
decltype(auto) Given(const std::shared_ptr<Call>& call, const core::SessionGuard* session,
                     const Method::Message* request, Method::Message* response) {
  using Plain = std::remove_cvref_t<Parameter>;
  if constexpr (std::is_pointer_v<Parameter>) {
    return static_cast<Parameter>(response);
  } else if constexpr (ReplyOf<Plain>::kIsReply) {
    return ReplyTo<typename ReplyOf<Plain>::Type>(call, response);
  } else if constexpr (std::is_base_of_v<Method::Message, Plain>) {
    return static_cast<Parameter>(*request);
  } else if constexpr (std::is_same_v<Parameter, const core::SessionGuard&>) {
    return (*session);
  } else if constexpr (std::is_same_v<Parameter, Call&>) {
    return (*call);
  } else {
    return (call);
  }
}

template <typename Result, typename... Parameters>
Method Bound(const core::Operation& row, std::function<Result(Parameters...)> handler) {
  static_assert(std::is_void_v<Result> || std::is_same_v<Result, absl::Status>, "a handler returns how its call ends");
  Method method = {.row = &row};
  (Describe<Parameters>(method), ...);
  method.shape = method.response == nullptr ? Call::Shape::kStream : Call::Shape::kUnary;
  method.handler = [handler = std::move(handler)](const std::shared_ptr<Call>& call, const core::SessionGuard* session,
                                                  const Method::Message* request, Method::Message* response) {
    if constexpr (std::is_void_v<Result>) {
      handler(Given<Parameters>(call, session, request, response)...);
    } else {
      call->Finish(handler(Given<Parameters>(call, session, request, response)...));
    }
  };
  return method;
}

}  // namespace internal

// A method with its handler. The handler's parameters decide how it is called. Each is optional, in this order: the
// call, as Call& or as const std::shared_ptr<Call>& to keep it; a const core::SessionGuard&, held until the handler
// returns; the request; and for the response
//   Response*               which it fills, and returns how the call ends; or it returns void, and ends the call later;
//   const Reply<Response>&  which it calls once, before it returns or later;
//   nothing                 for a server stream: it writes to call->end().
template <typename Handler>
Method Serve(const core::Operation& row, Handler handler) {
  return internal::Bound(row, std::function(std::move(handler)));
}

// A member function as a handler of its own; keeps the object.
template <typename Object, typename Result, typename... Arguments>
auto Bind(std::shared_ptr<Object> object, Result (Object::*handler)(Arguments...)) {
  return [object = std::move(object), handler](Arguments... arguments) -> Result {
    return (object.get()->*handler)(arguments...);
  };
}

// Every method of the daemon, by its path on the wire. Immutable.
class MethodIndex {
 public:
  explicit MethodIndex(std::vector<Method> methods);

  // "/rnicd.v1.MemoryService/CreateMr". Never null: an unknown path has a method of its own, whose calls are counted as
  // all others are and end with METHOD_UNKNOWN.
  const Method& Find(std::string_view path) const;
  const std::vector<Method>& methods() const { return methods_; }
  // Compares the methods with core::kOperations and with the services compiled into this program. Errors: kInternal
  // with what has no handler, no row or no method of the wire, or messages that differ from those of the wire.
  absl::Status Check() const;

 private:
  std::vector<Method> methods_;
  std::unordered_map<std::string_view, const Method*> by_path_;
  std::vector<std::unique_ptr<const std::string>> paths_;
};

}  // namespace rnicd::gate
