#include "provider/networkdirect/card/nd_library.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "provider/networkdirect/card/nd_catalogue.h"
#include "provider/networkdirect/card/nd_module.h"
#include "provider/networkdirect/card/nd_status.h"

namespace rnicd::provider {

absl::StatusOr<std::shared_ptr<NdLibrary>> NdLibrary::Load(const std::string& path) {
  if (!std::filesystem::path(path).is_absolute()) {
    return MakeErrorWithDetail(ErrorReason::DEVICE_FAILED, absl::StrCat(path, ": the path is not absolute"));
  }
  std::string error;
  void* const module = LoadNdModule(path, error);
  if (module == nullptr) {
    return MakeErrorWithDetail(ErrorReason::DEVICE_FAILED, absl::StrCat(path, ": ", error));
  }
  std::shared_ptr<NdLibrary> library(new NdLibrary(module));
  library->get_class_object_ = reinterpret_cast<DllGetClassObjectFunction>(library->Find("DllGetClassObject"));
  library->can_unload_now_ = reinterpret_cast<DllCanUnloadNowFunction>(library->Find("DllCanUnloadNow"));
  if (library->get_class_object_ == nullptr || library->can_unload_now_ == nullptr) {
    return MakeErrorWithDetail(ErrorReason::DEVICE_FAILED, absl::StrCat(path, ": not a Network Direct provider"));
  }
  return library;
}

NdLibrary::~NdLibrary() {
  if (can_unload_now_ == nullptr || can_unload_now_() == 0) {
    UnloadNdModule(module_);
  }
}

void* NdLibrary::Find(const char* name) const { return FindInNdModule(module_, name); }

absl::StatusOr<ComPtr<IND2Provider>> NdLibrary::OpenProvider(const GUID& class_id) const {
  ComPtr<IND2Provider> provider;
  const HRESULT result = get_class_object_(class_id, kIidNd2Provider, provider.out());
  if (NdFailed(result) || !provider) {
    return NdStatus(NdFailed(result) ? result : kNdUnsuccessful, "DllGetClassObject");
  }
  return provider;
}

absl::StatusOr<NdSource> LoadNdSource(const std::string& path, const GUID& class_id) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<NdLibrary> library, NdLibrary::Load(path));
  RNICD_ASSIGN_OR_RETURN(ComPtr<IND2Provider> provider, library->OpenProvider(class_id));
  return NdSource{.library = std::move(library), .provider = std::move(provider)};
}

std::vector<NdSource> LoadNdSourcesOfCatalogue(std::vector<std::string>& remarks) {
  std::vector<NdSource> sources;
  for (const NdCatalogueProvider& each : ListNdCatalogue()) {
    absl::StatusOr<NdSource> source = LoadNdSource(each.path, each.class_id);
    if (source.ok()) {
      sources.push_back(*std::move(source));
    } else {
      remarks.emplace_back(source.status().message());
    }
  }
  return sources;
}

}  // namespace rnicd::provider
