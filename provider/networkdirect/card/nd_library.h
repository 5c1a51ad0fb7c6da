#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "provider/networkdirect/card/com_ptr.h"
#include "provider/networkdirect/card/nd2.h"

namespace rnicd::provider {

// The library of a card's manufacturer.
// Lifetime: outlives everything that comes from it.
// Threads:  safe.
class NdLibrary {
 public:
  // `path` is absolute, so that no folder is searched. Errors: DEVICE_FAILED, with the system's reason.
  static absl::StatusOr<std::shared_ptr<NdLibrary>> Load(const std::string& path);
  // Unloads the library if it says that it may be unloaded.
  ~NdLibrary();
  NdLibrary(const NdLibrary&) = delete;
  NdLibrary& operator=(const NdLibrary&) = delete;

  // The provider object of this class. Errors: those of NdStatus.
  absl::StatusOr<ComPtr<IND2Provider>> OpenProvider(const GUID& class_id) const;
  // What the library exports under a name; null if it does not.
  void* Find(const char* name) const;

 private:
  explicit NdLibrary(void* module) : module_(module) {}

  void* const module_;
  DllGetClassObjectFunction get_class_object_ = nullptr;
  DllCanUnloadNowFunction can_unload_now_ = nullptr;
};

// A provider object and the library it comes from.
struct NdSource {
  // First, so that it is destroyed last.
  std::shared_ptr<NdLibrary> library;
  ComPtr<IND2Provider> provider;
};

// The source of one library. Errors: those of NdLibrary.
absl::StatusOr<NdSource> LoadNdSource(const std::string& path, const GUID& class_id = {});
// The sources of the system's catalogue, and a remark for each that cannot be loaded. None where there is no catalogue.
std::vector<NdSource> LoadNdSourcesOfCatalogue(std::vector<std::string>& remarks);

}  // namespace rnicd::provider
