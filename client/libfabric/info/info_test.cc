#include "client/libfabric/info/info.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "client/libfabric/info/attributes.h"
#include "client/libfabric/info/info_fixture.h"

namespace rnicd::fi {
namespace {

class GetInfoTest : public testing::Test {
 protected:
  // NULL where nothing is offered.
  Info Get(const fi_info* hints, uint32_t version = kToday, uint64_t flags = 0) {
    fi_info* info = nullptr;
    error_ = GetInfo(version, nullptr, nullptr, flags, hints, &info);
    EXPECT_EQ(error_ == 0, info != nullptr);
    return Info(info, fi_freeinfo);
  }

  // Calls `check` with each subset of `bits` that is offered when `set` has put it into hints, and the result. Returns
  // how many were offered.
  static int ForEachOffered(uint64_t bits, const std::function<void(fi_info&, uint64_t)>& set,
                            const std::function<void(const fi_info&, uint64_t)>& check) {
    int offered = 0;
    uint64_t subset = 0;
    do {
      const Info hints = AllModes();
      set(*hints, subset);
      fi_info* info = nullptr;
      const int error = GetInfo(kToday, nullptr, nullptr, 0, hints.get(), &info);
      EXPECT_TRUE(error == 0 || error == -FI_ENODATA) << error;
      const Info owner(info, fi_freeinfo);
      if (error == 0) {
        ++offered;
        check(*info, subset);
      }
      subset = (subset - bits) & bits;
    } while (subset != 0);
    return offered;
  }

  DaemonFolder folder_;
  int error_ = 0;
};

TEST_F(GetInfoTest, NoHintsGetEverything) {
  const Info info = Get(nullptr);
  ASSERT_EQ(error_, 0);
  EXPECT_EQ(info->next, nullptr);
  EXPECT_EQ(info->caps, kCaps);
  EXPECT_EQ(info->mode, FI_RX_CQ_DATA);
  EXPECT_EQ(info->tx_attr->caps, kTransmitCaps);
  EXPECT_EQ(info->rx_attr->caps, kReceiveCaps);
  EXPECT_EQ(info->rx_attr->mode, FI_RX_CQ_DATA);
  EXPECT_EQ(info->domain_attr->mr_mode, kMrMode);
  EXPECT_EQ(info->domain_attr->cq_data_size, 8u);
  EXPECT_EQ(info->tx_attr->size, kQueueSizeDefault);
  EXPECT_STREQ(info->domain_attr->name, "rnicd");
  EXPECT_STREQ(info->fabric_attr->name, "rnicd");
  EXPECT_EQ(info->fabric_attr->api_version, kToday);
}

TEST_F(GetInfoTest, LibraryNamesTheProvider) { EXPECT_EQ(Get(nullptr)->fabric_attr->prov_name, nullptr); }

TEST_F(GetInfoTest, NothingWithoutADaemon) {
  folder_.RemoveSocket();
  Get(nullptr);
  EXPECT_EQ(error_, -FI_ENODATA);
}

TEST_F(GetInfoTest, AttributesNeedNoDaemon) {
  folder_.RemoveSocket();
  Get(nullptr, kToday, FI_PROV_ATTR_ONLY);
  EXPECT_EQ(error_, 0);
}

TEST_F(GetInfoTest, RefusedHintsGetNothing) {
  const Info hints = AllModes();
  hints->ep_attr->type = FI_EP_RDM;
  Get(hints.get());
  EXPECT_EQ(error_, -FI_ENODATA);
}

TEST_F(GetInfoTest, SourceWithoutNodeAndServiceIsInvalid) {
  Get(nullptr, kToday, FI_SOURCE);
  EXPECT_EQ(error_, -FI_EINVAL);
}

TEST_F(GetInfoTest, ParameterSelectsTheAdapter) {
  DefineParameters();
  setenv("FI_RNICD_ADAPTER", "mlx5_0", 1);
  const Info info = Get(nullptr);
  unsetenv("FI_RNICD_ADAPTER");
  ASSERT_EQ(error_, 0);
  EXPECT_STREQ(info->domain_attr->name, "mlx5_0");
  EXPECT_STREQ(AdapterOf(info->domain_attr->name), "mlx5_0");
}

TEST_F(GetInfoTest, OwnNameStandsForTheFirstAdapter) {
  EXPECT_EQ(AdapterOf("rnicd"), nullptr);
  EXPECT_EQ(AdapterOf(nullptr), nullptr);
}

TEST_F(GetInfoTest, ResultIsOfferedAgain) {
  const Info first = Get(nullptr);
  ASSERT_EQ(error_, 0);
  const Info second = Get(first.get());
  ASSERT_EQ(error_, 0);
  EXPECT_EQ(second->caps, first->caps);
  EXPECT_EQ(second->domain_attr->mr_mode, first->domain_attr->mr_mode);
}

// An application that knows no new modes and asks for all capabilities of the first answer.
TEST_F(GetInfoTest, CapabilitiesNeedNoNewModes) {
  const Info hints = AllModes();
  hints->caps = Get(nullptr)->caps;
  hints->mode = FI_CONTEXT;
  hints->domain_attr->mr_mode = kMrMode;
  const Info info = Get(hints.get());
  ASSERT_EQ(error_, 0);
  EXPECT_EQ(info->mode, 0u);
  EXPECT_EQ(info->domain_attr->cq_data_size, 0u);
}

TEST_F(GetInfoTest, CapabilitiesAreThoseAskedFor) {
  const int offered = ForEachOffered(
      kCaps | FI_TAGGED | FI_HMEM, [](fi_info& hints, uint64_t caps) { hints.caps = caps; },
      [](const fi_info& info, uint64_t caps) {
        const uint64_t optional = kCaps & ~(FI_MSG | FI_RMA);
        EXPECT_EQ(caps & ~info.caps, 0u);
        EXPECT_TRUE(caps == 0 || (info.caps & ~(caps | optional)) == 0) << std::hex << caps;
        EXPECT_EQ(info.tx_attr->caps, info.caps & kTransmitCaps);
        EXPECT_EQ(info.rx_attr->caps, info.caps & kReceiveCaps);
      });
  EXPECT_EQ(offered, 1024);
}

TEST_F(GetInfoTest, DirectionsAreThoseAskedFor) {
  const Info hints = AllModes();
  hints->caps = FI_MSG | FI_RMA | FI_WRITE;
  const Info info = Get(hints.get());
  ASSERT_EQ(error_, 0);
  EXPECT_EQ(info->caps, FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_WRITE | FI_LOCAL_COMM | FI_REMOTE_COMM);
}

TEST_F(GetInfoTest, RegistrationModesAreAmongThoseOfTheApplication) {
  constexpr int kNew = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY |
                       FI_MR_RMA_EVENT | FI_MR_ENDPOINT;
  const int offered = ForEachOffered(
      kNew, [](fi_info& hints, uint64_t mode) { hints.domain_attr->mr_mode = static_cast<int>(mode); },
      [](const fi_info& info, uint64_t mode) {
        EXPECT_EQ(static_cast<uint64_t>(info.domain_attr->mr_mode) & ~mode, 0u) << std::hex << mode;
        EXPECT_EQ((info.caps & FI_REMOTE_WRITE) != 0, info.domain_attr->mr_mode == kMrMode) << std::hex << mode;
        EXPECT_EQ((info.mode & kLocalMr) != 0, mode == 0);
      });
  EXPECT_EQ(offered, 65);
}

TEST_F(GetInfoTest, OldApplicationsGetBasicRegistration) {
  for (const int mode : {0, kMrBasic}) {
    const Info hints = AllModes();
    hints->caps = FI_RMA;
    hints->domain_attr->mr_mode = mode;
    const Info info = Get(hints.get(), FI_VERSION(1, 0));
    ASSERT_EQ(error_, 0);
    EXPECT_EQ(info->domain_attr->mr_mode, kMrBasic);
    EXPECT_TRUE(info->mode & kLocalMr);
    EXPECT_TRUE(info->caps & FI_REMOTE_WRITE);
  }
}

TEST_F(GetInfoTest, OrderIsWhatWasAskedFor) {
  const int offered = ForEachOffered(
      kCompletionOrder | kOrderData, [](fi_info& hints, uint64_t order) { hints.tx_attr->msg_order = order; },
      [](const fi_info& info, uint64_t order) {
        EXPECT_EQ(order & ~info.tx_attr->msg_order, 0u);
        EXPECT_EQ(order & ~info.rx_attr->msg_order, 0u);
      });
  EXPECT_EQ(offered, 128);
}

TEST_F(GetInfoTest, SizesOfOrderedTransfersFollowTheOrder) {
  const Info info = Get(nullptr);
  ASSERT_EQ(error_, 0);
  EXPECT_EQ(info->ep_attr->max_order_raw_size, kMessageBytesMax);
  EXPECT_EQ(info->ep_attr->max_order_waw_size, kMessageBytesMax);
  EXPECT_EQ(info->ep_attr->max_order_war_size, 0u);
}

TEST_F(GetInfoTest, ModelsAreThoseAskedFor) {
  const Info hints = AllModes();
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->av_type = FI_AV_TABLE;
  const Info info = Get(hints.get());
  ASSERT_EQ(error_, 0);
  EXPECT_EQ(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
  EXPECT_EQ(info->domain_attr->av_type, FI_AV_TABLE);
  EXPECT_EQ(Get(nullptr)->domain_attr->data_progress, FI_PROGRESS_AUTO);
}

TEST_F(GetInfoTest, SizesAreThoseAskedFor) {
  const Info hints = AllModes();
  hints->tx_attr->size = 128;
  hints->rx_attr->size = 64;
  hints->tx_attr->op_flags = FI_TRANSMIT_COMPLETE;
  const Info info = Get(hints.get());
  ASSERT_EQ(error_, 0);
  EXPECT_EQ(info->tx_attr->size, 128u);
  EXPECT_EQ(info->rx_attr->size, 64u);
  EXPECT_EQ(info->tx_attr->op_flags, FI_TRANSMIT_COMPLETE);
}

TEST_F(GetInfoTest, OpenObjectsAndTheHandleAreKept) {
  fid_fabric fabric{};
  fid_domain domain{};
  fid handle{};
  const Info hints = AllModes();
  hints->fabric_attr->fabric = &fabric;
  hints->domain_attr->domain = &domain;
  hints->handle = &handle;
  const Info info = Get(hints.get());
  ASSERT_EQ(error_, 0);
  EXPECT_EQ(info->fabric_attr->fabric, &fabric);
  EXPECT_EQ(info->domain_attr->domain, &domain);
  EXPECT_EQ(info->handle, &handle);
}

}  // namespace
}  // namespace rnicd::fi
