// Source: LoadLibraryEx of the Windows API.

#include "provider/networkdirect/card/nd2_types.h"
#include "provider/networkdirect/card/nd_module.h"

namespace rnicd::provider {
namespace {

std::wstring WideOf(const std::string& text) {
  const int size = MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), nullptr, 0);
  std::wstring wide(static_cast<size_t>(size), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), wide.data(), size);
  return wide;
}

}  // namespace

void* LoadNdModule(const std::string& path, std::string& error) {
  // What the library needs is looked for beside it and in the system's folder only.
  const HMODULE module =
      LoadLibraryExW(WideOf(path).c_str(), nullptr, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32);
  if (module == nullptr) {
    error = "LoadLibraryEx: error " + std::to_string(GetLastError());
  }
  return module;
}

void* FindInNdModule(void* module, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(module), name));
}

void UnloadNdModule(void* module) { FreeLibrary(static_cast<HMODULE>(module)); }

}  // namespace rnicd::provider
