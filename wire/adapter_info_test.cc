#include "wire/adapter_info.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/status.h"

namespace rnicd::wire {
namespace {

TEST(AdapterInfoWire, EveryFieldOfTheAdapterInfoArrives) {
  v1::NdkAdapterInfo wire;
  wire.mutable_version()->set_major(101);
  wire.mutable_version()->set_minor(102);
  wire.set_rdma_technology(v1::RDMA_TECHNOLOGY_ROCE_V2);
  // Its own number in each of the others.
  const google::protobuf::Reflection& reflection = *v1::NdkAdapterInfo::GetReflection();
  for (int index = 0; index < v1::NdkAdapterInfo::GetDescriptor()->field_count(); ++index) {
    const google::protobuf::FieldDescriptor* const field = v1::NdkAdapterInfo::GetDescriptor()->field(index);
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
  EXPECT_EQ(ToWire(info).SerializeAsString(), wire.SerializeAsString()) << "and back";
}

TEST(AdapterInfoWire, VersionsArriveAndAnAbsentOneIsTheFirst) {
  const v1::NdkVersion wire = ToWire(NdkVersion{.major = 65535, .minor = 7});
  const absl::StatusOr<NdkVersion> version = FromWire(&wire);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*version, (NdkVersion{.major = 65535, .minor = 7}));
  EXPECT_EQ(FromWire(nullptr).value(), (NdkVersion{.major = 1, .minor = 1}));
}

TEST(AdapterInfoWire, AVersionAbove16BitsIsRefused) {
  v1::NdkVersion major;
  major.set_major(65536);
  v1::NdkVersion minor;
  minor.set_minor(65536);
  for (const v1::NdkVersion& wire : {major, minor}) {
    const absl::Status refused = FromWire(&wire).status();
    EXPECT_TRUE(FailedWith(refused, ErrorReason::FIELD_OUT_OF_RANGE));
    EXPECT_EQ(ErrorInfoOf(refused).field, "version");
  }
}

}  // namespace
}  // namespace rnicd::wire
