// Memory of MPI's as targets of RMA by libfabric itself: Open MPI 4.1 has no windows over it.
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "check.h"

static struct fi_info* info;
static struct fid_fabric* fabric;
static struct fid_domain* domain;

static void OpenDomain(void) {
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = ~UINT64_C(0);
  hints->ep_attr->type = FI_EP_MSG;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->fabric_attr->prov_name = strdup("rnicd");
  CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == 0);
  CHECK(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
  CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
  fi_freeinfo(hints);
}

static void CloseDomain(void) {
  CHECK(fi_close(&domain->fid) == 0);
  CHECK(fi_close(&fabric->fid) == 0);
  fi_freeinfo(info);
}

static void Register(Byte* memory, size_t bytes) {
  struct fid_mr* region;
  Fill(memory, bytes, bytes);
  CHECK(fi_mr_reg(domain, memory, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &region, NULL) == 0);
  CHECK(fi_mr_key(region) != FI_KEY_NOTAVAIL);
  CheckFilled(memory, bytes, bytes);
  CHECK(fi_close(&region->fid) == 0);
  CheckFilled(memory, bytes, bytes);
}

// The smallest number of bytes is the argument.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 2);
  OpenDomain();
  for (MPI_Aint bytes = atol(argv[1]); bytes < 8 << 20; bytes = bytes * 5 / 3) {
    Byte* memory;
    MPI_Win window;
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory);
    Register(memory, bytes);
    MPI_Free_mem(memory);
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    Register(memory, bytes);
    MPI_Win_free(&window);
  }
  CloseDomain();
  return Finish();
}
