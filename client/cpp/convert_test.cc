#include "client/cpp/convert.h"

#include <vector>

#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

TEST(Convert, EveryFieldOfTheAdapterInfoArrives) {
  v1::NdkAdapterInfo wire;
  wire.mutable_version()->set_major(101);
  wire.mutable_version()->set_minor(102);
  wire.set_rdma_technology(v1::RDMA_TECHNOLOGY_ROCE_V2);
  // Its own number in each of the others.
  const google::protobuf::Reflection& reflection = *wire.GetReflection();
  for (int index = 0; index < wire.GetDescriptor()->field_count(); ++index) {
    const google::protobuf::FieldDescriptor* const field = wire.GetDescriptor()->field(index);
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32) {
      reflection.SetUInt32(&wire, field, static_cast<uint32_t>(field->number()));
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT64) {
      reflection.SetUInt64(&wire, field, (1ULL << 40) + static_cast<uint64_t>(field->number()));
    }
  }
  const NdkAdapterInfo info = FromWire(wire);
  EXPECT_EQ(info.version, (NdkVersion{.major = 101, .minor = 102}));
  EXPECT_EQ(info.rdma_technology, RdmaTechnology::kRoceV2);
  const std::vector<uint64_t> here = {
      info.vendor_id,
      info.device_id,
      info.max_registration_size,
      info.max_window_size,
      info.frmr_page_count,
      info.max_initiator_request_sge,
      info.max_receive_request_sge,
      info.max_read_request_sge,
      info.max_transfer_length,
      info.max_inline_data_size,
      info.max_inbound_read_limit,
      info.max_outbound_read_limit,
      info.max_receive_queue_depth,
      info.max_initiator_queue_depth,
      info.max_srq_depth,
      info.max_cq_depth,
      info.large_request_threshold,
      info.max_caller_data,
      info.max_callee_data,
      info.adapter_flags,
  };
  const std::vector<uint64_t> there = {
      wire.vendor_id(),
      wire.device_id(),
      wire.max_registration_size(),
      wire.max_window_size(),
      wire.frmr_page_count(),
      wire.max_initiator_request_sge(),
      wire.max_receive_request_sge(),
      wire.max_read_request_sge(),
      wire.max_transfer_length(),
      wire.max_inline_data_size(),
      wire.max_inbound_read_limit(),
      wire.max_outbound_read_limit(),
      wire.max_receive_queue_depth(),
      wire.max_initiator_queue_depth(),
      wire.max_srq_depth(),
      wire.max_cq_depth(),
      wire.large_request_threshold(),
      wire.max_caller_data(),
      wire.max_callee_data(),
      wire.adapter_flags(),
  };
  EXPECT_EQ(here, there);
}

TEST(Convert, AdaptersKeepNameProviderAndNode) {
  v1::AdapterSummary wire;
  wire.set_name("soft0");
  wire.set_provider("soft");
  wire.set_numa_node(-1);
  wire.mutable_info()->set_max_registration_size(1U << 30);
  const AdapterSummary adapter = FromWire(wire);
  EXPECT_EQ(adapter.name, "soft0");
  EXPECT_EQ(adapter.provider, "soft");
  EXPECT_EQ(adapter.numa_node, -1);
  EXPECT_EQ(adapter.info.max_registration_size, 1U << 30);
}

TEST(Convert, SessionsKeepTheirResourcesWithUseAndLimit) {
  v1::GetSessionResponse wire;
  wire.set_session_id(7);
  wire.set_label("mine");
  wire.add_resources()->set_name("regions");
  wire.mutable_resources(0)->set_used(3);
  wire.mutable_resources(0)->set_limit(1000);
  const SessionUse use = FromWire(wire);
  EXPECT_EQ(use.id, SessionId{7});
  EXPECT_EQ(use.label, "mine");
  ASSERT_EQ(use.resources.size(), 1u);
  EXPECT_EQ(use.resources.front().name, "regions");
  EXPECT_EQ(use.resources.front().used, 3u);
  EXPECT_EQ(use.resources.front().limit, 1000u);
}

TEST(Convert, RegistrationsKeepBothTokensApart) {
  v1::Registration wire;
  wire.set_base_virtual_address(0x7000);
  wire.set_length(8192);
  wire.set_local_token(0xabcd);
  wire.set_remote_token(0xef01);
  const Registration registration = FromWire(wire);
  EXPECT_EQ(registration.base_address, VirtualAddress{0x7000});
  EXPECT_EQ(registration.length, 8192u);
  EXPECT_EQ(registration.local_token.value, 0xabcdu);
  EXPECT_EQ(registration.remote_token.value, 0xef01u);
}

}  // namespace
}  // namespace rnicd::inline client
