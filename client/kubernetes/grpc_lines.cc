#include "client/kubernetes/grpc_lines.h"

#include "grpc/support/log.h"
#include "log/library_log/routes.h"

namespace rnicd::kubernetes {
namespace {

// A failed check of gRPC is one error line and then abort(), which looks like any other error here.
void OnLine(gpr_log_func_args* args) {
  library_log::WriteLibraryLine(
      {.library = library_log::Library::kGrpc, .file = args->file, .line = args->line, .text = args->message});
}

}  // namespace

void RouteGrpcLines() {
  gpr_set_log_function(&OnLine);
  // Reads GRPC_VERBOSITY. gRPC drops every line until that is done, by this or by its first use.
  gpr_log_verbosity_init();
}

}  // namespace rnicd::kubernetes
