#include <windows.h>

#include "base/files/any_descriptor_fixture.h"

namespace rnicd {

UniqueFd OpenAnyDescriptor() { return UniqueFd(HandleToLong(CreateEventW(nullptr, FALSE, FALSE, nullptr))); }

bool IsOpen(int fd) {
  DWORD flags = 0;
  return GetHandleInformation(LongToHandle(fd), &flags) != 0;
}

}  // namespace rnicd
