#include <cstdlib>
#include <exception>

#include "google/protobuf/stubs/common.h"

namespace __cxxabiv1 {
// In place of the C++ runtime's, which brings 40 KB of code along to print a type.
extern std::terminate_handler __terminate_handler;  // NOLINT(bugprone-reserved-identifier)
std::terminate_handler __terminate_handler = std::abort;
}  // namespace __cxxabiv1

// What the C++ runtime and protobuf leave to the end of the process, a library that is loaded again and again must not:
// memory in which an exception has room when there is no other, and defaults of messages.

namespace __gnu_cxx {
// In libstdc++.a, for tools that look for leaks; no header has it.
void __freeres();  // NOLINT(bugprone-reserved-identifier)
}  // namespace __gnu_cxx

[[gnu::destructor]] static void Unload() {
  google::protobuf::ShutdownProtobufLibrary();
  __gnu_cxx::__freeres();
}
