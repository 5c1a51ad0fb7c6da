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

namespace internal {

// Enters the type of a handler's parameter, if it is a message.
template <typename Parameter>
void Describe(Method& method) {
  if constexpr (std::is_pointer_v<Parameter>) {
    method.response = &std::remove_pointer_t<Parameter>::default_instance();
    method.shape = Call::Shape::kUnary;
  } else if constexpr (std::is_base_of_v<Method::Message, std::remove_cvref_t<Parameter>>) {
    method.request = &std::remove_cvref_t<Parameter>::default_instance();
  } else if constexpr (std::is_same_v<Parameter, const core::SessionGuard&>) {
    method.uses_session = true;
  }
}

// What a handler's parameter of this type gets.
template <typename Parameter>
Parameter Given(const std::shared_ptr<Call>& call, const core::SessionGuard* session, const Method::Message* request,
                Method::Message* response) {
  if constexpr (std::is_pointer_v<Parameter>) {
    return static_cast<Parameter>(response);
  } else if constexpr (std::is_base_of_v<Method::Message, std::remove_cvref_t<Parameter>>) {
    return static_cast<Parameter>(*request);
  } else if constexpr (std::is_same_v<Parameter, const core::SessionGuard&>) {
    return *session;
  } else if constexpr (std::is_same_v<Parameter, Call&>) {
    return *call;
  } else {
    return call;
  }
}

// Streams have no response. A handler that returns something has returned how its call ends.
template <typename Result, typename... Parameters>
Method Bound(const core::Operation& row, std::function<Result(Parameters...)> handler) {
  Method method = {.row = &row, .shape = Call::Shape::kStream};
  (Describe<Parameters>(method), ...);
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

// A method whose handler returns the outcome: absl::Status(const core::SessionGuard&, const Request&, Response*) for
// the objects of the caller's session, absl::Status(Call&, const Request&, Response*), or with the messages alone.
template <typename Handler>
Method Now(const core::Operation& row, Handler handler) {
  return internal::Bound(row, std::function(std::move(handler)));
}

// A method whose handler may finish the call later: void(const std::shared_ptr<Call>&, const Request&, Response*), or
// with a const core::SessionGuard& after the call. The session is held only until the handler returns; work that
// continues needs a guard of its own.
template <typename Handler>
Method Later(const core::Operation& row, Handler handler) {
  return internal::Bound(row, std::function(std::move(handler)));
}

// A server stream: void(const std::shared_ptr<Call>&, const Request&). The handler writes to call->end().
template <typename Handler>
Method Stream(const core::Operation& row, Handler handler) {
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

  // "/rnicd.v1.MemoryService/CreateMr". Never null: a path that nobody serves has a method of its own, whose calls are
  // counted as all others are and end with METHOD_UNKNOWN.
  const Method& Find(std::string_view path) const;
  const std::vector<Method>& methods() const { return methods_; }
  // Compares the methods with core::kOperations and with the services compiled into this program. Errors: kInternal
  // with what has no handler, no row or no method of the wire, or other messages than the wire says.
  absl::Status Check() const;

 private:
  std::vector<Method> methods_;
  std::unordered_map<std::string_view, const Method*> by_path_;
  std::vector<std::unique_ptr<const std::string>> paths_;
};

}  // namespace rnicd::gate
