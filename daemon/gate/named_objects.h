#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace rnicd::gate {

// The objects of a call, for the audit log: "pd_id=4 mr_id=17". Top-level fields only, the request's first, without
// those that are 0 or empty: every integer that is called "..._id", and a few texts that are known to be harmless. So a
// token, a ticket, a secret or a label cannot get in, whatever messages are added. A text is truncated and contains
// nothing that could be mistaken for another field. Either message may be null.
std::string NamedObjects(const google::protobuf::Message* request, const google::protobuf::Message* response);

}  // namespace rnicd::gate
