#include "client/libfabric/connection/passive_endpoint.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <string>

#include "client/libfabric/connection/connection_fixture.h"
#include "client/libfabric/limits.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

class FiPassiveEndpoint : public testing::Test {
 protected:
  FiPassiveEndpoint() {
    fi_info* info = fi_allocinfo();
    info->addr_format = FI_SOCKADDR_IN;
    EXPECT_EQ(OpenPassiveEndpoint(nullptr, info, &pep_, this), 0);
    fi_freeinfo(info);
  }
  ~FiPassiveEndpoint() override { EXPECT_EQ(fi_close(&pep_->fid), 0); }

  Queue queue_;
  fid_pep* pep_ = nullptr;
};

TEST_F(FiPassiveEndpoint, HasTheNameThatItIsGiven) {
  sockaddr_storage address = Loopback(0);
  sockaddr_storage bound;
  EXPECT_FALSE(BoundAddress(&pep_->fid, &bound));
  ASSERT_EQ(fi_setname(&pep_->fid, &address, sizeof(sockaddr_in)), 0);
  ASSERT_TRUE(BoundAddress(&pep_->fid, &bound));
  size_t bytes = sizeof(address);
  ASSERT_EQ(fi_getname(&pep_->fid, &address, &bytes), 0);
  EXPECT_EQ(bytes, sizeof(sockaddr_in));
  EXPECT_EQ(AddressText(address), AddressText(bound));
  EXPECT_NE(PortOf(address), 0);
  bytes = 3;
  EXPECT_EQ(fi_getname(&pep_->fid, &address, &bytes), -FI_ETOOSMALL);
  EXPECT_EQ(bytes, sizeof(sockaddr_in));
  EXPECT_FALSE(BoundAddress(&queue_.eq->fid, &bound));
  EXPECT_FALSE(BoundAddress(nullptr, &bound));
}

TEST_F(FiPassiveEndpoint, KeepsItsNameOnceItListens) {
  EXPECT_EQ(fi_listen(pep_), -FI_ENOEQ);
  ASSERT_EQ(fi_pep_bind(pep_, &queue_.eq->fid, 0), 0);
  EXPECT_EQ(fi_pep_bind(pep_, &queue_.eq->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&queue_.eq->fid), -FI_EBUSY);
  ASSERT_EQ(fi_listen(pep_), 0);
  EXPECT_EQ(fi_listen(pep_), -FI_EINVAL);
  sockaddr_storage address = Loopback(0);
  EXPECT_EQ(fi_setname(&pep_->fid, &address, sizeof(sockaddr_in)), -FI_EINVAL);
}

TEST_F(FiPassiveEndpoint, WhatIsNoAddressIsRefused) {
  sockaddr_storage address = Loopback(0);
  EXPECT_EQ(fi_setname(&pep_->fid, &address, sizeof(sockaddr_in) - 1), -FI_EINVAL);
  address.ss_family = AF_UNIX;
  EXPECT_EQ(fi_setname(&pep_->fid, &address, sizeof(address)), -FI_EINVAL);
}

TEST_F(FiPassiveEndpoint, SaysHowMuchDataAConnectTakes) {
  size_t value = 0;
  size_t bytes = sizeof(value);
  EXPECT_EQ(fi_getopt(&pep_->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &bytes), 0);
  EXPECT_EQ(value, kConnectDataMax);
  bytes = 2;
  EXPECT_EQ(fi_getopt(&pep_->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &bytes), -FI_ETOOSMALL);
  EXPECT_EQ(fi_getopt(&pep_->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &value, &bytes), -FI_ENOPROTOOPT);
}

TEST_F(FiPassiveEndpoint, RefusesWhatItDoesNotHave) {
  int backlog = 5;
  EXPECT_EQ(fi_control(&pep_->fid, FI_BACKLOG, &backlog), 0);
  backlog = 0;
  EXPECT_EQ(fi_control(&pep_->fid, FI_BACKLOG, &backlog), -FI_EINVAL);
  EXPECT_EQ(fi_control(&pep_->fid, FI_ENABLE, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_reject(pep_, &pep_->fid, nullptr, 0), -FI_EINVAL);
  auto* endpoint = reinterpret_cast<fid_ep*>(pep_);
  EXPECT_EQ(fi_connect(endpoint, nullptr, nullptr, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_accept(endpoint, nullptr, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_getpeer(endpoint, nullptr, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_cancel(&pep_->fid, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_set_ops(&pep_->fid, "x", 0, nullptr, nullptr), -FI_ENOSYS);
}

}  // namespace
}  // namespace rnicd::fi
