#include "tests/support/calls/expect.h"

#include <gtest/gtest.h>

#include <string>

namespace rnicd::test {
namespace {

// Collects mismatches, so that one test failure reports all of them.
class Verdict {
 public:
  template <typename A, typename B>
  void Equal(std::string_view what, const A& actual, const B& expected) {
    if (actual != expected) {
      text_ << what << " is " << actual << ", expected " << expected << "\n";
      good_ = false;
    }
  }
  void True(std::string_view what, bool holds) {
    if (!holds) {
      text_ << what << "\n";
      good_ = false;
    }
  }
  bool Report(Where where, std::string_view got) const {
    if (!good_) {
      ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << text_.GetString() << "got: " << got;
    }
    return good_;
  }

 private:
  testing::Message text_;
  bool good_ = true;
};

std::string Describe(const CallOutcome& outcome) {
  return "code " + std::to_string(outcome.code) + " \"" + outcome.message + "\" {" + outcome.detail.ShortDebugString() +
         "}";
}

void CheckDetail(Verdict& verdict, const v1::ErrorDetail& detail, ErrorReason reason, std::string_view field) {
  const ErrorReasonRow& row = RowOf(reason);
  const auto wire_reason = static_cast<v1::ErrorReason>(reason);
  verdict.Equal("the reason", v1::ErrorReason_Name(detail.reason()), v1::ErrorReason_Name(wire_reason));
  verdict.Equal("the field", detail.field(), std::string(field));
  verdict.Equal("the NTSTATUS", detail.ntstatus(), static_cast<uint32_t>(row.ntstatus));
  verdict.Equal("the NTSTATUS name", detail.ntstatus_name(), std::string(NtStatusName(row.ntstatus)));
  verdict.True("there is no message for people", !detail.message().empty());
}

}  // namespace

bool ExpectOk(const CallOutcome& outcome, Where where) {
  Verdict verdict;
  verdict.True("the call failed", outcome.ok());
  return verdict.Report(where, Describe(outcome));
}

bool ExpectRefused(const CallOutcome& outcome, ErrorReason reason, std::string_view field, Where where) {
  Verdict verdict;
  verdict.Equal("the gRPC code", static_cast<int>(outcome.code), static_cast<int>(RowOf(reason).code));
  verdict.True("there is no ErrorDetail", outcome.has_detail);
  CheckDetail(verdict, outcome.detail, reason, field);
  return verdict.Report(where, Describe(outcome));
}

bool ExpectRefused(const v1::ErrorDetail& detail, ErrorReason reason, std::string_view field, Where where) {
  Verdict verdict;
  CheckDetail(verdict, detail, reason, field);
  return verdict.Report(where, detail.ShortDebugString());
}

bool ExpectFdOk(const FdAnswer& answer, Where where) {
  Verdict verdict;
  verdict.True("there is no reply", answer.replied);
  verdict.True("the reply is a refusal", !answer.reply.has_error());
  return verdict.Report(where, answer.reply.ShortDebugString());
}

bool ExpectFdRefused(const FdAnswer& answer, ErrorReason reason, Where where) {
  Verdict verdict;
  verdict.True("there is no reply", answer.replied);
  verdict.True("a refusal carries descriptors", answer.descriptors.empty());
  // On this socket the packet or file at fault is obvious; the field may be empty.
  CheckDetail(verdict, answer.reply.error(), reason, answer.reply.error().field());
  return verdict.Report(where, answer.reply.ShortDebugString());
}

}  // namespace rnicd::test
