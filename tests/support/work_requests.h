#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rnicd/v1/work_request.pb.h"

namespace rnicd::test {

// SGEs and requests. `flags` are OpFlag values combined by OR.
v1::Sge Sge(uint64_t address, uint32_t length, uint32_t token);
v1::Sge InlineSge(const std::string& data);
v1::WorkRequest SendRequest(const std::vector<v1::Sge>& sges, uint32_t flags = 0, uint64_t context = 1);
v1::WorkRequest SendAndInvalidateRequest(const std::vector<v1::Sge>& sges, uint32_t remote_token, uint32_t flags = 0,
                                         uint64_t context = 1);
v1::WorkRequest ReceiveRequest(const std::vector<v1::Sge>& sges, uint64_t context = 1);
v1::WorkRequest ReadRequest(const std::vector<v1::Sge>& sges, uint64_t remote_address, uint32_t remote_token,
                            uint32_t flags = 0, uint64_t context = 1);
v1::WorkRequest WriteRequest(const std::vector<v1::Sge>& sges, uint64_t remote_address, uint32_t remote_token,
                             uint32_t flags = 0, uint64_t context = 1);
// Writes `data` as an inline payload: needs no memory of the writer.
v1::WorkRequest InlineWriteRequest(const std::string& data, uint64_t remote_address, uint32_t remote_token,
                                   uint64_t context = 1);
v1::WorkRequest FastRegisterRequest(uint64_t mr_id, const std::vector<uint64_t>& pages, uint64_t length, uint64_t base,
                                    uint32_t flags, uint32_t fbo = 0, uint64_t context = 1);
v1::WorkRequest InvalidateMrRequest(uint64_t mr_id, uint32_t flags = 0, uint64_t context = 1);
v1::WorkRequest InvalidateMwRequest(uint64_t mw_id, uint32_t flags = 0, uint64_t context = 1);
v1::WorkRequest BindRequest(uint64_t mr_id, uint64_t mw_id, uint64_t virtual_address, uint64_t length, uint32_t flags,
                            uint64_t context = 1);

}  // namespace rnicd::test
