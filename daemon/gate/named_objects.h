#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace rnicd::gate {

// What a call was about, for the audit log: "pd_id=4 mr_id=17". Of the messages' own fields, the request's first, those
// that are not 0 or empty: every integer that is called "..._id", and a few texts that are known to be harmless. So a
// token, a ticket, a secret or a label cannot get in, whatever messages come to be. A text is cut and holds nothing
// that could be taken for another field. Either message may be null.
std::string NamedObjects(const google::protobuf::Message* request, const google::protobuf::Message* response);

}  // namespace rnicd::gate
