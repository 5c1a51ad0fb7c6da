// Source: dlopen(3).

#include <dlfcn.h>

#include "provider/networkdirect/card/nd_module.h"

namespace rnicd::provider {

void* LoadNdModule(const std::string& path, std::string& error) {
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    error = dlerror();
  }
  return module;
}

void* FindInNdModule(void* module, const char* name) { return dlsym(module, name); }

void UnloadNdModule(void* module) { dlclose(module); }

}  // namespace rnicd::provider
