// What rnicd.h promises of its constants and layouts, and what its functions do without a daemon.
#include "client/c/rnicd.h"

#include <cerrno>
#include <cstddef>

#include <gtest/gtest.h>

#include "base/error_reason.h"
#include "base/ndk/access_rights.h"
#include "base/ndk/adapter_info.h"
#include "base/ndk/completion.h"
#include "base/ndk/op_flags.h"
#include "base/ndk/queue_pair.h"
#include "client/cpp/client_options.h"

namespace rnicd::c {
namespace {

// Structs that never change.
static_assert(sizeof(rnicd_completion) == 48 && offsetof(rnicd_completion, operation) == 44);
static_assert(sizeof(rnicd_sge) == 16);
static_assert(sizeof(rnicd_range) == 24);
static_assert(sizeof(rnicd_mdl) == 32);
static_assert(sizeof(rnicd_resource) == 48);

static_assert(RNICD_MR_LOCAL_WRITE == kMrFlagLocalWrite && RNICD_MR_REMOTE_READ == kMrFlagRemoteRead);
static_assert(RNICD_MR_REMOTE_WRITE == kMrFlagRemoteWrite && RNICD_MR_READ_SINK == kMrFlagReadSink);
static_assert(RNICD_OP_SILENT_SUCCESS == kOpFlagSilentSuccess && RNICD_OP_READ_FENCE == kOpFlagReadFence);
static_assert(RNICD_OP_DEFER == kOpFlagDefer && RNICD_OP_SOLICIT == kOpFlagSolicit);
static_assert(RNICD_OP_REMOTE_READ == kOpFlagRemoteRead && RNICD_OP_LOCAL_WRITE == kOpFlagLocalWrite);
static_assert(RNICD_OP_REMOTE_WRITE == kOpFlagRemoteWrite && RNICD_OP_READ_SINK == kOpFlagReadSink);
static_assert(RNICD_OP_READ_LOCAL_INVALIDATE == kOpFlagReadLocalInvalidate);
static_assert(RNICD_ADAPTER_IN_ORDER_DMA == kAdapterFlagInOrderDma);
static_assert(RNICD_ADAPTER_READ_SINK_NOT_REQUIRED == kAdapterFlagReadSinkNotRequired);
static_assert(RNICD_ADAPTER_READ_LOCAL_INVALIDATE == kAdapterFlagReadLocalInvalidate);
static_assert(RNICD_ADAPTER_CQ_RESIZE == kAdapterFlagCqResize && RNICD_ADAPTER_LOOPBACK == kAdapterFlagLoopback);
static_assert(RNICD_NOTIFY_ERRORS == static_cast<int>(CqNotifyType::kErrors));
static_assert(RNICD_NOTIFY_ANY == static_cast<int>(CqNotifyType::kAny));
static_assert(RNICD_NOTIFY_SOLICITED == static_cast<int>(CqNotifyType::kSolicited));
static_assert(RNICD_QP_INIT == static_cast<int>(QueuePairState::kInit));
static_assert(RNICD_QP_READY_TO_SEND == static_cast<int>(QueuePairState::kReadyToSend));
static_assert(RNICD_QP_ERROR == static_cast<int>(QueuePairState::kError));
static_assert(RNICD_RECEIVE == static_cast<int>(OperationType::kReceive));
static_assert(RNICD_SEND == static_cast<int>(OperationType::kSend));
static_assert(RNICD_FAST_REGISTER == static_cast<int>(OperationType::kFastRegister));
static_assert(RNICD_BIND == static_cast<int>(OperationType::kBind));
static_assert(RNICD_INVALIDATE == static_cast<int>(OperationType::kInvalidate));
static_assert(RNICD_READ == static_cast<int>(OperationType::kRead));
static_assert(RNICD_WRITE == static_cast<int>(OperationType::kWrite));
static_assert(RNICD_RECEIVE_AND_INVALIDATE == static_cast<int>(OperationType::kReceiveAndInvalidate));
static_assert(RNICD_DATA_PATH_AUTOMATIC == static_cast<int>(DataPath::kAutomatic));
static_assert(RNICD_DATA_PATH_CALLS == static_cast<int>(DataPath::kCalls));
static_assert(RNICD_DATA_PATH_RINGS == static_cast<int>(DataPath::kRings));
#define RNICD_REASON(name, number, code, ntstatus, sentence, advice) \
  static_assert(RNICD_REASON_##name == static_cast<int>(ErrorReason::name));
#include "base/error_reasons.inc"
#undef RNICD_REASON

TEST(Header, InitialValuesHaveTheirSizeAndZeros) {
  const auto options = RNICD_INIT(rnicd_qp_options);
  EXPECT_EQ(options.size, sizeof(rnicd_qp_options));
  EXPECT_EQ(options.inline_data_size, 0u);
  EXPECT_EQ(options.on_disconnected, nullptr);
}

TEST(Header, NullHandlesAreRefusedByName) {
  rnicd_session* session = nullptr;
  EXPECT_EQ(rnicd_open_session(nullptr, nullptr), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "session");
  rnicd_memory* memory = nullptr;
  EXPECT_EQ(rnicd_import_memory(session, 0, 4096, &memory), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "session");
  rnicd_mr* mr = nullptr;
  EXPECT_EQ(rnicd_register_mr(memory, 0, 1, 0, &mr), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "memory");
  rnicd_cq* cq = nullptr;
  rnicd_completion completion;
  EXPECT_EQ(rnicd_poll_cq(cq, &completion, 1), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "cq");
  rnicd_qp* qp = nullptr;
  EXPECT_EQ(rnicd_create_qp(cq, cq, nullptr, &qp), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "receive_cq");
  EXPECT_EQ(rnicd_post(qp, nullptr), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "qp");
  EXPECT_EQ(rnicd_session_id(nullptr), 0u);
  EXPECT_STREQ(rnicd_tenant(nullptr), "");
}

TEST(Header, NullHandlesMayBeClosed) {
  EXPECT_EQ(rnicd_close_session(nullptr, nullptr), 0);
  EXPECT_EQ(rnicd_close_memory(nullptr), 0);
  EXPECT_EQ(rnicd_close_mr(nullptr), 0);
  EXPECT_EQ(rnicd_close_fast_mr(nullptr), 0);
  EXPECT_EQ(rnicd_close_mapping(nullptr), 0);
  EXPECT_EQ(rnicd_close_mw(nullptr), 0);
  EXPECT_EQ(rnicd_close_cq(nullptr), 0);
  EXPECT_EQ(rnicd_close_qp(nullptr), 0);
}

TEST(Header, OptionsOutsideTheirRangeAreRefusedByName) {
  rnicd_session* session = nullptr;
  auto options = RNICD_INIT(rnicd_session_options);
  options.flags = 0x80;
  EXPECT_EQ(rnicd_open_session(&options, &session), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "options.flags");
  options = RNICD_INIT(rnicd_session_options);
  options.data_path = 3;
  EXPECT_EQ(rnicd_open_session(&options, &session), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "options.data_path");
  options = RNICD_INIT(rnicd_session_options);
  options.reserved = 1;
  EXPECT_EQ(rnicd_open_session(&options, &session), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "options.reserved");
}

TEST(Header, ADaemonThatDoesNotRunRefusesTheConnection) {
  rnicd_session* session = nullptr;
  auto options = RNICD_INIT(rnicd_session_options);
  options.socket_dir = "/nonexistent";
  EXPECT_EQ(rnicd_open_session(&options, &session), -ECONNREFUSED);
  EXPECT_EQ(rnicd_last_error()->reason, 0u);
}

}  // namespace
}  // namespace rnicd::c
