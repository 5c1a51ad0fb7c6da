#pragma once

#include <rdma/providers/fi_log.h>

#include <cstddef>

namespace rnicd::fi {

// Says what rnicd.h has just refused the calling thread, and gives `code` back.
int Refused(fi_log_subsys subsystem, const char* what, int code);

// Answers fi_eq_strerror and fi_cq_strerror: the text, which is static, or a copy in the program's buffer, if it gave
// one.
const char* GiveText(const char* text, char* buffer, size_t bytes);

}  // namespace rnicd::fi
