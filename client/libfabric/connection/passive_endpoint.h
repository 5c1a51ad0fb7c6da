#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <sys/socket.h>

namespace rnicd::fi {

// fi_ops_fabric::passive_ep. Source: fi_endpoint(3), fi_cm(3).
int OpenPassiveEndpoint(fid_fabric* fabric, fi_info* info, fid_pep** endpoint, void* context);

// Address of a passive endpoint from which an endpoint is made (fi_info::handle): it is bound already, and the endpoint
// takes it over. False for another handle.
bool BoundAddress(fid* handle, sockaddr_storage* address);

}  // namespace rnicd::fi
