#include "daemon/service/memory/batch.h"

#include "daemon/service/service_fixture_test.h"
#include "rnicd/v1/memory_service.pb.h"

namespace rnicd::service {
namespace {

struct BatchRow {
  std::string_view method;
  // Fields of the request besides its items.
  std::string_view request;
  std::string_view good_item;
  std::string_view bad_item;
  ErrorReason reason;
  // At fault in the bad item.
  std::string_view field;
};

constexpr BatchRow kBatches[] = {
    {"MemoryService.BatchCreateMr", "", "pd_id: $pd", "pd_id: 1", ErrorReason::OBJECT_NOT_FOUND, "pd_id"},
    {"MemoryService.BatchRegisterMr", "",
     "mr_id: $mr mdl_chain { memory_id: $memory byte_count: 4096 virtual_address: 65536 } length: 4096",
     "mr_id: $mr mdl_chain { memory_id: $memory byte_count: 8 virtual_address: 65536 } "
     "mdl_chain { memory_id: $memory byte_offset: 8 virtual_address: 65544 } length: 8",
     ErrorReason::MDL_ENTRY_EMPTY, "mdl_chain[1].byte_count"},
    {"MemoryService.BatchDeregisterMr", "", "mr_id: $registered", "mr_id: $mr", ErrorReason::REGION_NOT_REGISTERED,
     "mr_id"},
    {"MemoryService.BatchInitializeFastRegisterMr", "", "mr_id: $fast adapter_page_count: 4", "mr_id: $fast",
     ErrorReason::FIELD_OUT_OF_RANGE, "adapter_page_count"},
    {"MemoryService.BatchCloseMr", "", "mr_id: $mr", "mr_id: 1", ErrorReason::OBJECT_NOT_FOUND, "mr_id"},
    {"MemoryService.BatchAllocateMemory", "", "size: 4096", "size: 4097", ErrorReason::MEMORY_SIZE_UNALIGNED, "size"},
    {"MemoryService.BatchSealMemory", "", "memory_id: $fetched", "memory_id: $memory",
     ErrorReason::MEMORY_ALREADY_SEALED, "memory_id"},
    {"MemoryService.ProvisionMemory", "memory_id: $memory pd_id: $pd", "length: 4096 virtual_address: 65536",
     "length: 4096 virtual_address: 65536 flags: 2147483648", ErrorReason::FLAGS_UNKNOWN, "flags"},
};

// The error of each outcome in a response with such.
template <typename Response>
std::vector<std::string> ErrorsOf(const Response& response) {
  std::vector<std::string> errors;
  for (const auto& outcome : response.outcomes()) {
    const v1::ErrorDetail& error = outcome.error();
    errors.push_back(outcome.has_error()
                         ? std::string(RowOf(static_cast<ErrorReason>(error.reason())).name) + " of " + error.field()
                         : "ok");
  }
  return errors;
}

class Batches : public ServiceTest {
 protected:
  std::unique_ptr<Message> Request(const Household& client, const BatchRow& row, int items) const {
    std::unique_ptr<Message> request = RequestOf(row.method, client.Text(row.request));
    const auto* const field = request->GetDescriptor()->FindFieldByName("items");
    for (int item = 0; item < items; ++item) {
      request->GetReflection()->AddMessage(request.get(), field);
    }
    return request;
  }
  // The outcomes as a type that has the fields which all responses of batches share.
  std::vector<std::string> Outcomes(const BatchRow& row, const std::string& bytes) const {
    if (row.method == "MemoryService.ProvisionMemory") {
      v1::ProvisionMemoryResponse response;
      EXPECT_TRUE(response.ParseFromString(bytes));
      return ErrorsOf(response);
    }
    // Every other outcome is a response or an error, under the same numbers.
    v1::BatchCloseMrResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    return ErrorsOf(response);
  }

  // A client for one batch, which others of the test do not change.
  Household NewClient() { return Household(world_, ++clients_); }

 private:
  uint64_t clients_ = 0;
};

TEST_F(Batches, KeepEveryOutcomeInThePlaceOfItsItem) {
  for (const BatchRow& row : kBatches) {
    SCOPED_TRACE(row.method);
    const Household client = NewClient();
    const auto item = [](std::string_view text) { return " items { " + std::string(text) + " }"; };
    const gate::Ended ended = Ask(
        client, row.method, std::string(row.request) + item(row.bad_item) + item(row.good_item) + item(row.bad_item));
    EXPECT_EQ(ended.code, absl::StatusCode::kOk);
    const std::string reason(RowOf(row.reason).name);
    const std::string field(row.field);
    EXPECT_EQ(Outcomes(row, ended.response),
              (std::vector<std::string>{reason + " of items[0]." + field, "ok", reason + " of items[2]." + field}));
    EXPECT_EQ(observer_.decisions().back().note, "refused=2 of=3 first=" + reason);
  }
}

TEST_F(Batches, OfNoItemsOrOneTooManyAreRefusedWhole) {
  const Household client = NewClient();
  const std::string held = world_.Held();
  for (const BatchRow& row : kBatches) {
    SCOPED_TRACE(row.method);
    for (const int items : {0, kMaxBatchItems + 1}) {
      ExpectRefusal(Ask(client.connection, row.method, *Request(client, row, items)), ErrorReason::BATCH_SIZE, "items");
    }
  }
  EXPECT_EQ(world_.Held(), held);
}

TEST_F(Batches, OfAsManyItemsAsThereMayBeHaveAsManyOutcomes) {
  const Household client = NewClient();
  for (const BatchRow& row : kBatches) {
    if (row.method == "MemoryService.BatchDeregisterMr" || row.method == "MemoryService.ProvisionMemory") {
      const gate::Ended ended = Ask(client.connection, row.method, *Request(client, row, kMaxBatchItems));
      EXPECT_EQ(ended.code, absl::StatusCode::kOk);
      EXPECT_EQ(Outcomes(row, ended.response).size(), static_cast<size_t>(kMaxBatchItems)) << row.method;
    }
  }
}

TEST_F(Batches, DoItemsThatNameTheSameObjectInOrder) {
  const std::pair<std::string_view, ErrorReason> again[] = {
      {"MemoryService.BatchRegisterMr", ErrorReason::REGION_ALREADY_REGISTERED},
      {"MemoryService.BatchDeregisterMr", ErrorReason::REGION_NOT_REGISTERED},
      {"MemoryService.BatchInitializeFastRegisterMr", ErrorReason::REGION_ALREADY_INITIALIZED},
      {"MemoryService.BatchSealMemory", ErrorReason::MEMORY_ALREADY_SEALED}};
  for (const BatchRow& row : kBatches) {
    for (const auto& [method, reason] : again) {
      if (row.method == method) {
        const std::string item = "items { " + std::string(row.good_item) + " }";
        EXPECT_THAT(Outcomes(row, Ask(NewClient(), method, item + item).response),
                    testing::ElementsAre("ok", testing::StartsWith(std::string(RowOf(reason).name) + " of items[1].")));
      }
    }
  }
}

// An error without a field is the item's.
TEST_F(Batches, NameTheItemWhereNoFieldIsAtFault) {
  EXPECT_EQ(ErrorOfItem(3, MakeError(ErrorReason::QUOTA_REGIONS)).field(), "items[3]");
  EXPECT_EQ(ErrorOfItem(3, MakeError(ErrorReason::LENGTH_ZERO, "length")).field(), "items[3].length");
}

}  // namespace
}  // namespace rnicd::service
