#include "provider/verbs/card/adapter_limits.h"

#include <gtest/gtest.h>

#include <climits>

#include "provider/verbs/fake/verbs_fake.h"

namespace rnicd::provider {
namespace {

NdkAdapterInfo LimitsOf(const ibv_device_attr& device, const ibv_port_attr& port = FakePortAttributes(),
                        const VerbsOptions& options = {}) {
  return AdapterLimits(device, port, 400, options);
}

TEST(AdapterLimits, AreThoseOfTheCard) {
  ibv_device_attr device = FakeDeviceAttributes();
  device.max_sge_rd = 5;
  device.max_qp_rd_atom = 16;
  device.max_qp_init_rd_atom = 12;
  const NdkAdapterInfo info = LimitsOf(device);
  EXPECT_EQ(info.version, (NdkVersion{1, 2}));
  EXPECT_EQ(info.vendor_id, device.vendor_id);
  EXPECT_EQ(info.device_id, device.vendor_part_id);
  EXPECT_EQ(info.max_initiator_request_sge, 32u);
  EXPECT_EQ(info.max_receive_request_sge, 32u);
  EXPECT_EQ(info.max_read_request_sge, 5u);
  EXPECT_EQ(info.max_inline_data_size, 400u);
  EXPECT_EQ(info.max_inbound_read_limit, 16u) << "as the one who answers";
  EXPECT_EQ(info.max_outbound_read_limit, 12u) << "as the one who asks";
  EXPECT_EQ(info.max_srq_depth, 0u);
  EXPECT_EQ(info.max_transfer_length, 0x800000u);
}

TEST(AdapterLimits, OptionsLowerTheLimitsAndNeverRaiseThem) {
  ibv_device_attr device = FakeDeviceAttributes();
  device.max_mr_size = 1 << 20;
  VerbsOptions options;
  options.max_registration_bytes = 1 << 30;
  EXPECT_EQ(LimitsOf(device, FakePortAttributes(), options).max_registration_size, 1u << 20);
  options.max_registration_bytes = 1 << 16;
  EXPECT_EQ(LimitsOf(device, FakePortAttributes(), options).max_registration_size, 1u << 16);
  EXPECT_EQ(LimitsOf(device, FakePortAttributes(), options).max_window_size, 1u << 16);
  EXPECT_EQ(LimitsOf(device).frmr_page_count, 256u);
  options.max_fast_register_pages = 20;
  EXPECT_EQ(LimitsOf(device, FakePortAttributes(), options).frmr_page_count, 20u);
}

TEST(AdapterLimits, FlagsAreTheOptionsLessWhatNoCardHas) {
  VerbsOptions options;
  EXPECT_EQ(LimitsOf(FakeDeviceAttributes()).adapter_flags, 0x10112u);
  options.adapter_flags = kAdapterFlagLoopback | kAdapterFlagInOrderDma;
  EXPECT_EQ(LimitsOf(FakeDeviceAttributes(), FakePortAttributes(), options).adapter_flags, kAdapterFlagLoopback);
  options.adapter_flags = 0;
  EXPECT_EQ(LimitsOf(FakeDeviceAttributes(), FakePortAttributes(), options).adapter_flags, 0u);
}

TEST(AdapterLimits, ACardThatNamesNoLimitForReadsHasTheOneForAll) {
  ibv_device_attr device = FakeDeviceAttributes();
  device.max_sge_rd = 0;
  EXPECT_EQ(LimitsOf(device).max_read_request_sge, 32u);
}

TEST(AdapterLimits, ATransferFitsASignedNumber) {
  ibv_port_attr port = FakePortAttributes();
  port.max_msg_sz = UINT32_MAX;
  EXPECT_EQ(LimitsOf(FakeDeviceAttributes(), port).max_transfer_length, 0x7fffffffu);
}

TEST(AdapterLimits, TwoFullQueuesAndTheProbeFitOneCompletionQueue) {
  for (const int max_cqe : {0, 1, 2, 3, 64, 65, 1000, 32767, INT_MAX}) {
    for (const int max_qp_wr : {0, 1, 2, 63, 1024, 1 << 20, INT_MAX}) {
      ibv_device_attr device = FakeDeviceAttributes();
      device.max_cqe = max_cqe;
      device.max_qp_wr = max_qp_wr;
      const NdkAdapterInfo info = LimitsOf(device);
      const uint64_t receive = info.max_receive_queue_depth;
      const uint64_t initiator = info.max_initiator_queue_depth;
      EXPECT_LE(receive, static_cast<uint64_t>(max_qp_wr));
      if (initiator > 0) {
        EXPECT_LE(initiator + kExtraSendRequests, static_cast<uint64_t>(max_qp_wr));
      }
      if (receive + initiator > 0) {
        EXPECT_LE(receive + initiator + kExtraSendRequests, static_cast<uint64_t>(max_cqe)) << max_qp_wr;
      }
      EXPECT_GE(info.max_cq_depth, 65536u);
      EXPECT_GE(info.max_cq_depth, static_cast<uint32_t>(max_cqe));
    }
  }
}

TEST(AdapterLimits, ARoomyCardIsUsedInFull) {
  ibv_device_attr device = FakeDeviceAttributes();
  device.max_cqe = 32767;
  device.max_qp_wr = 1024;
  EXPECT_EQ(LimitsOf(device).max_receive_queue_depth, 1024u);
  EXPECT_EQ(LimitsOf(device).max_initiator_queue_depth, 1023u);
  device.max_qp_wr = 1 << 20;
  EXPECT_EQ(LimitsOf(device).max_receive_queue_depth, 16383u);
  EXPECT_EQ(LimitsOf(device).max_initiator_queue_depth, 16383u);
}

TEST(AdapterLimits, NegativeFiguresOfADriverAreNone) {
  ibv_device_attr device = FakeDeviceAttributes();
  device.max_qp_rd_atom = -1;
  device.max_sge = -1;
  device.max_sge_rd = -1;
  EXPECT_EQ(LimitsOf(device).max_inbound_read_limit, 0u);
  EXPECT_EQ(LimitsOf(device).max_read_request_sge, 0u);
}

TEST(AdapterLimits, TheLinkLayerNamesTheTechnology) {
  ibv_port_attr port = FakePortAttributes();
  EXPECT_EQ(LimitsOf(FakeDeviceAttributes(), port).rdma_technology, RdmaTechnology::kRoceV2);
  port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  EXPECT_EQ(LimitsOf(FakeDeviceAttributes(), port).rdma_technology, RdmaTechnology::kInfiniBand);
  port.link_layer = IBV_LINK_LAYER_UNSPECIFIED;
  EXPECT_EQ(LimitsOf(FakeDeviceAttributes(), port).rdma_technology, RdmaTechnology::kUndefined);
}

}  // namespace
}  // namespace rnicd::provider
