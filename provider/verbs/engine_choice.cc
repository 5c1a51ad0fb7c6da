#include "provider/verbs/engine_choice.h"

#include "base/status.h"
#include "provider/verbs/kernel_probe.h"
#include "provider/verbs/window_probe.h"

namespace rnicd::provider {
namespace {

absl::Status ChooseWindows(VerbsContext& context) {
  const VerbsOptions& options = context.node().options;
  if (options.fast_engine == FastEngine::kRegistration) {
    return absl::OkStatus();
  }
  const WindowSupport support = ProbeWindows(context);
  const bool accepted = support == WindowSupport::kBounded ||
                        (support == WindowSupport::kUnbounded && options.fast_engine == FastEngine::kWindow &&
                         options.allow_unbounded_windows);
  if (accepted) {
    context.device().engines().windows = true;
  } else if (options.fast_engine == FastEngine::kWindow) {
    return MakeErrorWithDetail(ErrorReason::DEVICE_NOT_CAPABLE,
                               context.device().name() + ": " +
                                   (support == WindowSupport::kUnbounded ? "its memory windows do not check bounds"
                                                                         : "its memory windows do not work"));
  }
  return absl::OkStatus();
}

absl::Status ChooseKernel(VerbsContext& context) {
  const VerbsOptions& options = context.node().options;
  FastEngines& engines = context.device().engines();
  if (options.fast_engine != FastEngine::kAuto && options.fast_engine != FastEngine::kKernel) {
    engines.kernel_reason = "--verbs_fast_engine";
    return absl::OkStatus();
  }
  const std::string problem =
      options.fast_module == nullptr ? options.no_fast_module : ProbeKernel(context).value_or("");
  if (problem.empty()) {
    engines.kernel = true;
  } else if (options.fast_engine == FastEngine::kKernel) {
    return MakeErrorWithDetail(ErrorReason::DEVICE_NOT_CAPABLE, context.device().name() + ": " + problem);
  }
  engines.kernel_reason = problem.empty() ? "the probe of the kernel module passed" : problem;
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseEngines(VerbsContext& context) {
  RNICD_RETURN_IF_ERROR(ChooseWindows(context));
  return ChooseKernel(context);
}

std::string FastEngineName(const VerbsNode& node, const VerbsDevice& device) {
  const bool over_windows = device.engines().windows && node.options.fast_engine == FastEngine::kWindow;
  return device.engines().kernel ? "kernel" : over_windows ? "window" : "registration";
}

}  // namespace rnicd::provider
