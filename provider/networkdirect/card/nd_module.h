#pragma once

#include <string>

namespace rnicd::provider {

// A library that is loaded while the program runs. nd_module_windows.cc and nd_module_linux.cc.
// Null on failure, and `error` says why.
void* LoadNdModule(const std::string& path, std::string& error);
void* FindInNdModule(void* module, const char* name);
void UnloadNdModule(void* module);

}  // namespace rnicd::provider
