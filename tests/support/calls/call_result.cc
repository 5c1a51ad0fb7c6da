#include "tests/support/calls/call_result.h"

namespace rnicd::test {

CallOutcome OutcomeOf(const grpc::Status& status) {
  CallOutcome outcome;
  outcome.code = status.error_code();
  outcome.message = status.error_message();
  v1::RpcStatus rich;
  if (!status.error_details().empty() && rich.ParseFromString(status.error_details()) && rich.details_size() == 1) {
    outcome.has_detail = rich.details(0).UnpackTo(&outcome.detail);
  }
  return outcome;
}

}  // namespace rnicd::test
