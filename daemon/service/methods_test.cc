// Every method with a request that succeeds, and from those: what holds for every id, number and enum of every request.
#include "daemon/service/methods.h"

#include <google/protobuf/descriptor.h>

#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/service/service_fixture_test.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::service {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct CallRow {
  std::string_view method;
  // With the names of a Household.
  std::string_view request;
  // Fields of the answer; for a stream, of its first message.
  std::string_view answer;
};

constexpr CallRow kCalls[] = {
    {"SessionService.OpenSession", "label: 'job' grant: '$secret'", "session_id ndk_version fd_socket_name tenant"},
    {"SessionService.JoinSession", "session_id: $session", ""},
    {"SessionService.GetSession", "", "session_id label resources tenant tenant_resources"},
    {"SessionService.WatchEvents", "", "sequence cq_notification"},
    {"SessionService.CloseSession", "", "reclaimed_regions reclaimed_pinned_bytes reclaimed_memory_bytes"},

    {"AdapterService.ListAdapters", "", "adapters"},
    {"AdapterService.OpenAdapter", "adapter_name: 'soft0' version { major: 1 minor: 2 }",
     "adapter_id version adapter_name"},
    {"AdapterService.OpenAdapter", "", "adapter_id version adapter_name"},
    {"AdapterService.QueryAdapterInfo", "adapter_id: $adapter", "info"},
    {"AdapterService.CloseAdapter", "adapter_id: $spare_adapter", ""},

    {"MemoryService.AllocateMemory", "size: 4096 page_size: PAGE_SIZE_4KIB",
     "memory_id fd_ticket ticket_lifetime_ms page_size"},
    {"MemoryService.ImportMemory", "size: 4096", "memory_id fd_ticket ticket_lifetime_ms"},
    {"MemoryService.SealMemory", "memory_id: $fetched", "size page_size"},
    {"MemoryService.ReleaseMemory", "memory_id: $spare_memory", ""},
    {"MemoryService.CreatePd", "adapter_id: $adapter", "pd_id"},
    {"MemoryService.ClosePd", "pd_id: $spare_pd", ""},
    {"MemoryService.CreateMr", "pd_id: $pd", "mr_id"},
    {"MemoryService.RegisterMr",
     "mr_id: $mr mdl_chain { memory_id: $memory byte_count: 4096 virtual_address: 65536 } length: 4096 flags: 5",
     "registration"},
    {"MemoryService.DeregisterMr", "mr_id: $registered", ""},
    {"MemoryService.InitializeFastRegisterMr", "mr_id: $fast adapter_page_count: 4 remote_access: true", ""},
    {"MemoryService.GetLocalToken", "mr_id: $registered", "local_token"},
    {"MemoryService.GetRemoteToken", "mr_id: $registered", "remote_token"},
    {"MemoryService.CloseMr", "mr_id: $registered", ""},
    {"MemoryService.BuildLam",
     "adapter_id: $adapter mdl_chain { memory_id: $memory byte_offset: 8 byte_count: 8 virtual_address: 65544 } "
     "length: 8",
     "lam_id adapter_page_array fbo"},
    {"MemoryService.ReleaseLam", "lam_id: $lam", ""},
    {"MemoryService.BatchCreateMr", "items { pd_id: $pd }", "outcomes"},
    {"MemoryService.BatchRegisterMr",
     "items { mr_id: $mr mdl_chain { memory_id: $memory byte_count: 4096 virtual_address: 65536 } length: 4096 }",
     "outcomes"},
    {"MemoryService.BatchDeregisterMr", "items { mr_id: $registered }", "outcomes"},
    {"MemoryService.BatchInitializeFastRegisterMr", "items { mr_id: $fast adapter_page_count: 4 }", "outcomes"},
    {"MemoryService.BatchCloseMr", "items { mr_id: $mr }", "outcomes"},
    {"MemoryService.BatchAllocateMemory", "items { size: 4096 }", "outcomes"},
    {"MemoryService.BatchSealMemory", "items { memory_id: $fetched }", "outcomes"},
    {"MemoryService.ProvisionMemory",
     "memory_id: $memory pd_id: $pd items { byte_offset: 4096 length: 4096 virtual_address: 65536 flags: 5 }",
     "outcomes size page_size"},

    {"QueueService.CreateCq", "adapter_id: $adapter cq_depth: 8 cq_context: 7", "cq_id"},
    {"QueueService.CreateCq", "adapter_id: $adapter cq_depth: 8 mapped: true mapped_depth_max: 16", "cq_id mapped"},
    {"QueueService.ResizeCq", "cq_id: $cq cq_depth: 32", ""},
    {"QueueService.ArmCq", "cq_id: $cq type: CQ_NOTIFY_TYPE_SOLICITED", ""},
    {"QueueService.GetCqResults", "cq_id: $cq max_results: 4", "results"},
    {"QueueService.GetCqResultsEx", "cq_id: $cq max_results: 4", "results"},
    {"QueueService.CloseCq", "cq_id: $spare_cq", ""},
    {"QueueService.CreateQp",
     "pd_id: $pd receive_cq_id: $cq initiator_cq_id: $spare_cq qp_context: 7 receive_queue_depth: 2 "
     "initiator_queue_depth: 2 max_receive_request_sge: 1 max_initiator_request_sge: 1 inline_data_size: 8",
     "qp_id address without_outcome"},
    {"QueueService.QueryQp", "qp_id: $qp", "state address"},
    {"QueueService.ConnectQp", "qp_id: $qp peer_address: '$address'", ""},
    {"QueueService.DisconnectQp", "qp_id: $connected", ""},
    {"QueueService.Flush", "qp_id: $qp", ""},
    {"QueueService.CloseQp", "qp_id: $qp", ""},
    {"QueueService.Post", "qp_id: $connected requests { request_context: 7 receive { } }", "posted"},
    {"QueueService.Post", "qp_id: $connected requests { invalidate { mw_id: $mw } }", "posted"},
    {"QueueService.Post", "qp_id: $connected requests { invalidate { mr_id: $initialized } }", "posted"},
    {"QueueService.Post",
     "qp_id: $connected requests { bind { mr_id: $bound mw_id: $spare_mw virtual_address: 139637976727552 length: 8 } "
     "}",
     "posted issued_tokens"},
    {"QueueService.Post",
     "qp_id: $connected requests { fast_register { mr_id: $initialized adapter_page_array: $page length: 4096 "
     "base_virtual_address: 4096 } }",
     "posted issued_tokens"},
    {"QueueService.CreateMw", "pd_id: $pd", "mw_id"},
    {"QueueService.GetRemoteTokenFromMw", "mw_id: $mw", "remote_token"},
    {"QueueService.CloseMw", "mw_id: $spare_mw", ""},
    {"QueueService.GetPrivilegedMemoryRegionToken", "pd_id: $pd", "privileged_token"},

    {"ConnectionService.CreateListener", "adapter_id: $adapter listener_context: 7", "listener_id"},
    {"ConnectionService.Listen", "listener_id: $spare_listener local { address: '198.18.0.1' } name: 'array'",
     "local full_name"},
    {"ConnectionService.ControlConnectEvents", "listener_id: $listener pause: true", ""},
    {"ConnectionService.GetListenerLocalAddress", "listener_id: $listener", "local"},
    {"ConnectionService.CloseListener", "listener_id: $spare_listener", ""},
    {"ConnectionService.CreateSharedEndpoint", "adapter_id: $adapter local { address: '198.18.0.1' }",
     "shared_endpoint_id local"},
    {"ConnectionService.CloseSharedEndpoint", "shared_endpoint_id: $endpoint", ""},
    {"ConnectionService.CreateConnector", "adapter_id: $adapter", "connector_id"},
    {"ConnectionService.Connect",
     "connector_id: $idle qp_id: $idle_qp peer_name: '$name' inbound_read_limit: 1 private_data: 'x' "
     "allow_pending: true",
     "ntstatus"},
    {"ConnectionService.CompleteConnect", "connector_id: $answered", ""},
    {"ConnectionService.Accept", "connector_id: $requested qp_id: $idle_qp allow_pending: true", "ntstatus"},
    {"ConnectionService.Reject", "connector_id: $requested private_data: 'x'", ""},
    {"ConnectionService.GetConnectionData", "connector_id: $requested",
     "private_data inbound_read_limit outbound_read_limit"},
    {"ConnectionService.GetConnectorAddresses", "connector_id: $requested", "local peer"},
    {"ConnectionService.Disconnect", "connector_id: $linked allow_pending: true", "ntstatus"},
    {"ConnectionService.CloseConnector", "connector_id: $idle", ""},

    {"RingService.OpenRing", "", "ring_id file_bytes memory_ticket doorbell_ticket pipe_ticket"},
    {"RingService.CloseRing", "ring_id: $ring", ""},

    {"AdminService.GetStatus", "",
     "version provider pid metrics_address connections sessions resources registered_pages fd_tickets device_regions "
     "open_fds threads resident_bytes policy_file tenants grants adapters generation"},
    {"AdminService.ListSessions", "page_size: 1", "sessions next_page_token"},
    {"AdminService.ListRegions", "page_size: 1", "regions next_page_token"},
    {"AdminService.ListListeners", "", "listeners"},
    {"AdminService.ListConnections", "page_size: 1", "connections next_page_token"},
    {"AdminService.ListTenants", "", "tenants"},
    {"AdminService.InspectSession", "session_id: $session", "session regions"},
    {"AdminService.DumpState", "", "json"},
    {"AdminService.EvictSession", "session_id: $session",
     "reclaimed_regions reclaimed_pinned_bytes reclaimed_memory_bytes"},
    {"AdminService.Drain", "", "draining sessions regions pinned_bytes"},
    {"AdminService.SetLogLevel", "level: 'debug'", "previous"},
    {"AdminService.ReloadPolicy", "", ""},
    {"AdminService.CreateGrant",
     "name: '$name' lifetime_ms: 1000 limits { regions: 4 pinned_bytes: 8192 } session_limits { regions: 3 } "
     "connections { connect { prefix: '10.98.0.0/16' first_port: 7000 last_port: 7010 } } "
     "devices { resource_name: 'example.com/memory' device_ids: 'm-0' }",
     "grant_id secret tenant"},
    {"AdminService.RevokeGrant", "grant_id: $grant", ""},
    {"AdminService.BindGrant", "grant_id: $grant pod_uid: '0123abcd-0123-4567-89ab-0123456789ab'", ""},
    {"AdminService.ListGrants", "", "grants"},
    {"AdminService.SetPods",
     "pods { uid: '0123abcd-0123-4567-89ab-0123456789ab' namespace: 'ml' name: 'train-0' labels { key: 'k' value: 'v' "
     "} "
     "containers { name: 'main' devices { resource_name: 'example.com/memory' device_ids: 'm-0' } } }",
     ""},

    {"Health.Check", "service: 'rnicd'", "status"},
    {"Health.Watch", "service: 'rnicd.live'", "status"},
};

// The field's place in the message, "mdl_chain[0].memory_id", and its message.
struct FoundField {
  std::string path;
  Message* message;
  const FieldDescriptor* field;
};

// Every single field of the message and of the messages in it, set or not. None that stands for another of its oneof.
void FindFields(Message& message, const std::string& prefix, std::vector<FoundField>& found) {
  const auto* const reflection = message.GetReflection();
  for (int index = 0; index < message.GetDescriptor()->field_count(); ++index) {
    const FieldDescriptor* const field = message.GetDescriptor()->field(index);
    const bool is_message = field->type() == FieldDescriptor::TYPE_MESSAGE;
    const std::string path = prefix + field->name();
    if (field->is_repeated() && is_message) {
      for (int item = 0; item < reflection->FieldSize(message, field); ++item) {
        FindFields(*reflection->MutableRepeatedMessage(&message, field, item), path + "[" + std::to_string(item) + "].",
                   found);
      }
    } else if (is_message && reflection->HasField(message, field)) {
      FindFields(*reflection->MutableMessage(&message, field), path + ".", found);
    } else if (!is_message && !field->is_repeated() &&
               (field->real_containing_oneof() == nullptr || reflection->HasField(message, field))) {
      found.push_back({path, &message, field});
    }
  }
}

std::vector<FoundField> FieldsOf(Message& message) {
  std::vector<FoundField> found;
  FindFields(message, "", found);
  return found;
}

// Path of the field that holds a number.
std::string PathOfNumber(Message& message, uint64_t number) {
  for (const FoundField& found : FieldsOf(message)) {
    if (found.field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64 &&
        found.message->GetReflection()->GetUInt64(*found.message, found.field) == number) {
      return found.path;
    }
  }
  return "";
}

// Sets an unsigned number to its maximum. False for any other field.
bool SetToTheMost(const FoundField& found) {
  const auto* const reflection = found.message->GetReflection();
  switch (found.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      reflection->SetUInt32(found.message, found.field, std::numeric_limits<uint32_t>::max());
      return true;
    case FieldDescriptor::CPPTYPE_UINT64:
      reflection->SetUInt64(found.message, found.field, std::numeric_limits<uint64_t>::max());
      return true;
    default:
      return false;
  }
}

// True for a field of the message, or of a message in it, or for a choice of fields: "items[3].length".
bool IsPathIn(const Descriptor* type, std::string_view path) {
  const FieldDescriptor* field = nullptr;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(std::string(path), '.'))) {
    if (field != nullptr) {
      type = field->message_type();
    }
    const std::string name = part.substr(0, part.find('['));
    field = type == nullptr ? nullptr : type->FindFieldByName(name);
    if (field == nullptr) {
      return type != nullptr && type->FindOneofByName(name) != nullptr && path.ends_with(name);
    }
  }
  return true;
}

// The first error that a message holds: that of an item, or of a work request.
std::optional<v1::ErrorDetail> ErrorIn(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->type() != FieldDescriptor::TYPE_MESSAGE) {
      continue;
    }
    const Message& first = field->is_repeated() ? message.GetReflection()->GetRepeatedMessage(message, field, 0)
                                                : message.GetReflection()->GetMessage(message, field);
    if (const auto* const detail = dynamic_cast<const v1::ErrorDetail*>(&first); detail != nullptr) {
      return *detail;
    }
    if (std::optional<v1::ErrorDetail> inside = ErrorIn(first); inside.has_value()) {
      return inside;
    }
  }
  return std::nullopt;
}

std::string NamesOfFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return absl::StrJoin(fields, " ", [](std::string* out, const FieldDescriptor* field) { *out += field->name(); });
}

class EveryMethod : public ServiceTest {
 protected:
  // A connection that may make the call: the client's own, another of its process, or an operator's.
  std::shared_ptr<gate::ConnectionContext> ConnectionFor(const CallRow& row, const Household& client) {
    const core::Operation& rules = *MethodNamed(row.method).row;
    if (rules.needs == core::Needs::kSession) {
      return client.connection;
    }
    return rules.Allows(core::Role::kWorkload) ? Connect(client.process()) : Operator();
  }
  // The type of what is answered, also by a stream.
  std::unique_ptr<Message> AnswerOf(const CallRow& row, std::string_view bytes) {
    const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
    const std::string name = absl::StrReplaceAll(PathOf(row.method).substr(1), {{"/", "."}});
    const auto* const type = pool->FindMethodByName(name)->output_type();
    std::unique_ptr<Message> answer(google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    EXPECT_TRUE(answer->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    return answer;
  }
  // Reason and field of the call's error, or of that of its first item; "ok" without one.
  ErrorInfo ErrorOf(const CallRow& row, const Household& client, const Message& request) {
    std::shared_ptr<gate::Call> call;
    const auto end = Begin(ConnectionFor(row, client), row.method, request, &call);
    if (MethodNamed(row.method).shape == gate::Call::Shape::kStream && end->times() == 0) {
      call->Cancel();
      return {};
    }
    const gate::Ended ended = end->Get().value_or(gate::Ended{.error = {.reason = ErrorReason::REQUEST_TIMEOUT}});
    const auto inside = ErrorIn(*AnswerOf(row, ended.response));
    return inside.has_value()
               ? ErrorInfo{.reason = static_cast<ErrorReason>(inside->reason()), .field = inside->field()}
               : ended.error;
  }
  ErrorInfo ErrorOf(const CallRow& row, const Household& client, const std::string& text) {
    return ErrorOf(row, client, *RequestOf(row.method, text));
  }
  // Runs `check` for each row with a client of its own.
  void ForEachCall(const std::function<void(const CallRow&, const Household&)>& check) {
    uint64_t process = 1;
    for (const CallRow& row : kCalls) {
      SCOPED_TRACE(std::string(row.method) + " " + std::string(row.request));
      const Household client(world_, process++);
      check(row, client);
      world_.End(client.owner.session);
    }
  }
  // Runs `check` for each field of each row's request, with a client and a message of its own.
  void ForEachField(const std::function<void(const CallRow&, const Household&, Message&, const FoundField&)>& check) {
    uint64_t process = 1;
    for (const CallRow& row : kCalls) {
      for (size_t index = 0;; ++index) {
        const Household client(world_, process++);
        const std::unique_ptr<Message> request = RequestOf(row.method, client.Text(row.request));
        const std::vector<FoundField> fields = FieldsOf(*request);
        if (index < fields.size()) {
          SCOPED_TRACE(std::string(row.method) + " " + fields[index].path);
          check(row, client, *request, fields[index]);
        }
        world_.End(client.owner.session);
        if (index >= fields.size()) {
          break;
        }
      }
    }
  }
};

TEST_F(EveryMethod, HasAHandlerAndARequestThatSucceeds) {
  EXPECT_TRUE(methods_.Check().ok()) << methods_.Check();
  std::set<std::string> without_request;
  for (const core::Operation& row : core::kOperations) {
    without_request.emplace(row.name);
  }
  for (const CallRow& row : kCalls) {
    EXPECT_NE(MethodNamed(row.method).request, nullptr) << row.method;
    without_request.erase(std::string(row.method));
  }
  EXPECT_TRUE(without_request.empty()) << absl::StrJoin(without_request, ", ");
}

TEST_F(EveryMethod, AnswersWithItsFields) {
  ForEachCall([this](const CallRow& row, const Household& client) {
    std::shared_ptr<gate::Call> call;
    const auto end =
        Begin(ConnectionFor(row, client), row.method, *RequestOf(row.method, client.Text(row.request)), &call);
    if (MethodNamed(row.method).shape == gate::Call::Shape::kStream) {
      ASSERT_EQ(end->written().size(), 1u);
      EXPECT_EQ(NamesOfFields(*AnswerOf(row, end->written()[0])), row.answer);
      call->Cancel();
      return;
    }
    const gate::Ended ended = end->Get().value_or(gate::Ended{.code = absl::StatusCode::kDeadlineExceeded});
    EXPECT_EQ(ended.code, absl::StatusCode::kOk) << ReasonAndField(ended.error);
    const std::unique_ptr<Message> answer = AnswerOf(row, ended.response);
    EXPECT_EQ(NamesOfFields(*answer), row.answer);
    EXPECT_FALSE(ErrorIn(*answer).has_value()) << answer->ShortDebugString();
  });
}

TEST_F(EveryMethod, IsForTheRolesOfItsRowAndWithASessionWhereThatSaysSo) {
  for (const core::Operation& row : core::kOperations) {
    for (const core::Role role : {core::Role::kWorkload, core::Role::kOperator, core::Role::kDevicePlugin}) {
      SCOPED_TRACE(std::string(row.name) + " " + std::to_string(static_cast<int>(role)));
      std::shared_ptr<gate::Call> call;
      const auto end = Begin(Connect(1, role), row.name, *MethodNamed(row.name).request, &call);
      if (end->times() == 0) {
        call->Cancel();
      }
      const ErrorReason reason = end->Get()->error.reason;
      EXPECT_EQ(reason == ErrorReason::METHOD_NOT_PERMITTED, !row.Allows(role));
      EXPECT_EQ(reason == ErrorReason::SESSION_REQUIRED, row.Allows(role) && row.needs == core::Needs::kSession);
    }
  }
}

// The id of another client's object, of an object of another kind, and one that was never given out.
TEST_F(EveryMethod, TakesNoIdButThatOfAnObjectOfTheCallerOfItsKind) {
  constexpr uint64_t kMark = 0xabcdef0123456789;
  const Household client(world_, 1);
  const Household stranger(world_, 2);
  const std::string held = world_.Held();
  size_t tried = 0;
  for (const CallRow& row : kCalls) {
    for (const auto& [name, id] : client.names()) {
      const std::unique_ptr<Message> marked =
          RequestOf(row.method, client.Text(row.request, {{name, std::to_string(kMark)}}));
      const std::string path = PathOfNumber(*marked, kMark);
      if (path.empty()) {
        continue;
      }
      std::vector<std::string> others = {"0", "18446744073709551615",
                                         name.ends_with("pd") ? client["$cq"] : client["$pd"]};
      if (!MethodNamed(row.method).row->Allows(core::Role::kOperator)) {
        others.push_back(stranger[name]);
      }
      const ErrorReason reason = name == "$session" ? ErrorReason::SESSION_NOT_FOUND
                                 : name == "$grant" ? ErrorReason::GRANT_NOT_FOUND
                                                    : ErrorReason::OBJECT_NOT_FOUND;
      for (const std::string& other : others) {
        EXPECT_EQ(ReasonAndField(ErrorOf(row, client, client.Text(row.request, {{name, other}}))),
                  ReasonAndField({.reason = reason, .field = path}))
            << row.method << " with " << other << " for " << name;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 200u);
  EXPECT_EQ(world_.Held(), held) << "a refused call left something";
}

TEST_F(EveryMethod, ThatClosesMakesTheIdUnknown) {
  ForEachCall([this](const CallRow& row, const Household& client) {
    const std::string_view verb = row.method.substr(row.method.find('.') + 1);
    const bool closes = verb.starts_with("Close") || verb.starts_with("Release") || verb.starts_with("BatchClose");
    if (!closes || row.request.empty()) {
      return;
    }
    EXPECT_EQ(ReasonAndField(ErrorOf(row, client, client.Text(row.request))), "ok");
    const ErrorInfo again = ErrorOf(row, client, client.Text(row.request));
    EXPECT_EQ(again.reason, ErrorReason::OBJECT_NOT_FOUND);
    EXPECT_TRUE(again.field.ends_with("_id")) << again.field;
  });
}

// A senseless number is accepted or refused, but never causes a fault of the daemon; a refusal names a field of the
// request.
TEST_F(EveryMethod, TakesTheMostThatEachNumberCanSay) {
  ForEachField([this](const CallRow& row, const Household& client, Message& request, const FoundField& field) {
    if (!SetToTheMost(field)) {
      return;
    }
    const ErrorInfo error = ErrorOf(row, client, request);
    EXPECT_NE(error.reason, ErrorReason::INTERNAL_FAULT);
    EXPECT_NE(error.reason, ErrorReason::REQUEST_TIMEOUT) << "no answer";
    if (!error.field.empty()) {
      EXPECT_TRUE(IsPathIn(request.GetDescriptor(), error.field)) << error.field;
    }
  });
}

TEST_F(EveryMethod, RefusesAValueThatItsEnumDoesNotHave) {
  std::set<std::string> tried;
  ForEachField([&](const CallRow& row, const Household& client, Message& request, const FoundField& field) {
    if (field.field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
      return;
    }
    field.message->GetReflection()->SetEnumValue(field.message, field.field, 99);
    EXPECT_EQ(ReasonAndField(ErrorOf(row, client, request)),
              ReasonAndField({.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = field.path}));
    tried.insert(field.path);
  });
  EXPECT_EQ(tried, (std::set<std::string>{"items[0].page_size", "page_size", "type"}));
}

}  // namespace
}  // namespace rnicd::service
