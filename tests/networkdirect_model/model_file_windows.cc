// A file for overlapped calls, without a driver: one end of a pipe. A call that pends is a read that nothing answers,
// and cancelling that read notifies of the call. The client must ask the object for the status anyway.
// Source: CreateNamedPipe, ReadFile, CancelIoEx of the Windows API.

#include <atomic>
#include <string>

#include "tests/networkdirect_model/model.h"

namespace rnicd::provider::model {

HANDLE NewOverlappedFile(Model& model) {
  static std::atomic<unsigned> number{0};
  const std::string name =
      "\\\\.\\pipe\\rnicd-nd-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(++number);
  const HANDLE file =
      CreateNamedPipeA(name.c_str(), PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED, PIPE_TYPE_BYTE, 1, 0, 0, 0, nullptr);
  model.file_ends.push_back(
      CreateFileA(name.c_str(), GENERIC_READ | GENERIC_WRITE, 0, nullptr, OPEN_EXISTING, 0, nullptr));
  return file;
}

void CloseFileEnds(Model& model) {
  for (const HANDLE end : model.file_ends) {
    CloseHandle(end);
  }
}

void BeginPending(HANDLE file, OVERLAPPED* call) {
  // Never written.
  static char nothing = 0;
  ReadFile(file, &nothing, 1, nullptr, call);
}

void NotifyPending(HANDLE file, OVERLAPPED* call) { CancelIoEx(file, call); }

}  // namespace rnicd::provider::model
