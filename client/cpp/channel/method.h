#pragma once

namespace rnicd::inline client {

// A method of the daemon, with the types of its messages.
template <typename RequestMessage, typename ResponseMessage>
struct Method {
  using Request = RequestMessage;
  using Response = ResponseMessage;

  // "/rnicd.v1.MemoryService/CreateMr".
  const char* path;
};

// Declares kNAME, the method of that name of a service of rnicd.v1.
#define RNICD_METHOD(service, name) \
  inline constexpr Method<v1::name##Request, v1::name##Response> k##name { "/rnicd.v1." #service "/" #name }

}  // namespace rnicd::inline client
