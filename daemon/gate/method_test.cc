#include "daemon/gate/method.h"

#include <gmock/gmock.h>

#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::gate {
namespace {

using ::testing::HasSubstr;

template <typename Request, typename Response>
Method Handled(const core::Operation& row) {
  return Serve(row, [](const core::SessionGuard&, const Request&, Response*) { return absl::OkStatus(); });
}

// Findings of the check on the methods that it serves; the other rows have no handler here.
std::string Wrong(std::vector<Method> methods) {
  const std::string said(MethodIndex(std::move(methods)).Check().message());
  return said.substr(said.rfind('['));
}

TEST(MethodIndex, AHandlerThatUsesASessionNeedsARowThatRequiresOne) {
  EXPECT_EQ(Wrong({Handled<v1::CreatePdRequest, v1::CreatePdResponse>(core::Row("MemoryService.CreatePd"))}), "[]");
  EXPECT_EQ(Wrong({Handled<v1::OpenSessionRequest, v1::OpenSessionResponse>(core::Row("SessionService.OpenSession"))}),
            "[SessionService.OpenSession]");
}

TEST(MethodIndex, AHandlerTakesTheMessagesOfItsMethodAndIsTheOnlyOne) {
  EXPECT_EQ(Wrong({Handled<v1::CreateMrRequest, v1::CreatePdResponse>(core::Row("MemoryService.CreatePd"))}),
            "[MemoryService.CreatePd]");
  const Method method = Handled<v1::CreatePdRequest, v1::CreatePdResponse>(core::Row("MemoryService.CreatePd"));
  EXPECT_EQ(Wrong({method, method}), "[MemoryService.CreatePd]");
}

TEST(MethodIndex, ARowWithoutAHandlerIsNamed) {
  EXPECT_THAT(std::string(MethodIndex({}).Check().message()), HasSubstr("SessionService.OpenSession"));
}

}  // namespace
}  // namespace rnicd::gate
