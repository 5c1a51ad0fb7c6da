#pragma once

#include <rdma/fi_eq.h>

#include "client/c/rnicd.h"
#include "client/libfabric/transfers.h"

namespace rnicd::fi {

// The FI_ errno value of a failed request.
int ErrorOf(uint32_t reason);

// What a program reads of a completed request; the form for errors holds that of successes, too.
fi_cq_err_entry EntryOf(const Request& request, const rnicd_completion& completion, const MessageHeader* received);
fi_cq_err_entry EntryOfLostRequest(const Request& request, int error, uint32_t reason);

// Writes entries of one format into the program's array.
size_t EntryBytes(fi_cq_format format);
void WriteEntry(const fi_cq_err_entry& entry, fi_cq_format format, void* to);

}  // namespace rnicd::fi
