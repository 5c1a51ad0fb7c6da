#include "daemon/gate/named_objects.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_split.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/connection_service.pb.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::gate {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Every message of rnicd.v1 that is linked into this program, found without naming a file.
std::vector<const Descriptor*> AllMessages() {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  std::vector<std::string> files;
  EXPECT_TRUE(google::protobuf::DescriptorPool::internal_generated_database()->FindAllFileNames(&files));
  std::vector<const Descriptor*> messages;
  for (const std::string& name : files) {
    const auto* file = pool->FindFileByName(name);
    for (int index = 0; file != nullptr && file->package() == "rnicd.v1" && index < file->message_type_count();
         ++index) {
      messages.push_back(file->message_type(index));
    }
  }
  return messages;
}

// A message with a recognizable value in every top-level field that is a number or a text.
std::unique_ptr<Message> Filled(const Descriptor& type) {
  std::unique_ptr<Message> message(google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
  const auto& reflection = *message->GetReflection();
  for (int index = 0; index < type.field_count(); ++index) {
    const FieldDescriptor* const field = type.field(index);
    if (field->is_repeated()) {
      continue;
    }
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection.SetUInt64(message.get(), field, 77);
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        reflection.SetUInt32(message.get(), field, 77);
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection.SetInt32(message.get(), field, 77);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(message.get(), field, 77);
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        reflection.SetString(message.get(), field, "Sesame");
        break;
      default:
        break;
    }
  }
  return message;
}

std::string NameOf(const std::string& word) { return word.substr(0, word.find('=')); }

TEST(NamedObjects, IdsOfTheRequestComeFirst) {
  v1::CreateMrRequest request;
  request.set_pd_id(4);
  v1::CreateMrResponse response;
  response.set_mr_id(UINT64_MAX);
  EXPECT_EQ(NamedObjects(&request, &response), "pd_id=4 mr_id=18446744073709551615");
  EXPECT_EQ(NamedObjects(&request, nullptr), "pd_id=4");
  EXPECT_EQ(NamedObjects(nullptr, &response), "mr_id=18446744073709551615");
  EXPECT_EQ(NamedObjects(nullptr, nullptr), "");
}

TEST(NamedObjects, AnIdThatIsZeroIsNoObject) {
  v1::CreateQpRequest request;
  request.set_pd_id(1);
  request.set_initiator_cq_id(2);
  EXPECT_EQ(NamedObjects(&request, nullptr), "pd_id=1 initiator_cq_id=2");
}

TEST(NamedObjects, WhatTheResponseRepeatsIsSaidOnce) {
  v1::OpenAdapterRequest request;
  request.set_adapter_name("soft0");
  v1::OpenAdapterResponse response;
  response.set_adapter_id(9);
  response.set_adapter_name("soft0");
  EXPECT_EQ(NamedObjects(&request, &response), "adapter_name=soft0 adapter_id=9");
}

TEST(NamedObjects, AGrantIsNamedButItsSecretIsNot) {
  v1::CreateGrantRequest request;
  request.set_name("pod-7");
  request.set_pod_uid("1b2c3d4e-0000-4000-8000-000000000001");
  v1::CreateGrantResponse response;
  response.set_grant_id(3);
  response.set_secret("Sesame");
  EXPECT_EQ(NamedObjects(&request, &response), "name=pod-7 pod_uid=1b2c3d4e-0000-4000-8000-000000000001 grant_id=3");
}

TEST(NamedObjects, AConnectionIsNamedByBothAddresses) {
  v1::ConnectRequest request;
  request.set_connector_id(7);
  request.mutable_local()->set_port(50000);
  request.mutable_peer()->set_address("fd00::1 x");
  request.mutable_peer()->set_port(7000);
  request.set_private_data("Sesame");
  EXPECT_EQ(NamedObjects(&request, nullptr), "connector_id=7 local=:50000 peer=fd00::1?x:7000");
}

TEST(NamedObjects, ATextCannotPassForSomethingElseAndIsShort) {
  v1::OpenAdapterRequest request;
  request.set_adapter_name("x mr_id=99\n\"\xff");
  EXPECT_EQ(NamedObjects(&request, nullptr), "adapter_name=x?mr_id?99???");
  request.set_adapter_name(std::string(1 << 20, 'x'));
  EXPECT_LT(NamedObjects(&request, nullptr).size(), 100u);
}

// For every message, present or future, only ids and harmless texts are named.
TEST(NamedObjects, NoMessageOfTheWireGivesMoreThanIdsAndHarmlessTexts) {
  const std::set<std::string> harmless = {"name",      "pod_uid",   "adapter_name", "level",
                                          "full_name", "peer_name", "local",        "peer"};
  std::set<std::string> seen;
  ASSERT_GT(AllMessages().size(), 100u);
  for (const Descriptor* const type : AllMessages()) {
    const std::unique_ptr<Message> message = Filled(*type);
    const std::string named = NamedObjects(message.get(), nullptr);
    if (named.empty()) {
      continue;
    }
    for (const std::string& word : std::vector<std::string>(absl::StrSplit(named, ' '))) {
      const std::string name = NameOf(word);
      seen.insert(name);
      EXPECT_TRUE(name.ends_with("_id") || harmless.contains(name)) << type->name() << " gives " << word;
      for (const char* const secret : {"token", "ticket", "secret", "label", "grant="}) {
        EXPECT_EQ(word.find(secret), std::string::npos) << type->name() << " gives " << word;
      }
    }
  }
  for (const char* const name : {"mr_id", "pd_id", "qp_id", "cq_id", "mw_id", "lam_id", "memory_id", "adapter_id",
                                 "session_id", "grant_id", "name", "pod_uid", "adapter_name", "level"}) {
    EXPECT_TRUE(seen.contains(name)) << name;
  }
}

// One by one, the messages that do carry a value that must not be disclosed.
TEST(NamedObjects, MessagesWithSecretsGiveTheirIdsOnly) {
  EXPECT_EQ(NamedObjects(Filled(*v1::OpenSessionRequest::descriptor()).get(), nullptr), "");
  EXPECT_EQ(NamedObjects(Filled(*v1::OpenSessionResponse::descriptor()).get(), nullptr), "session_id=77");
  EXPECT_EQ(NamedObjects(Filled(*v1::AllocateMemoryResponse::descriptor()).get(), nullptr), "memory_id=77");
  EXPECT_EQ(NamedObjects(Filled(*v1::ImportMemoryResponse::descriptor()).get(), nullptr), "memory_id=77");
  EXPECT_EQ(NamedObjects(Filled(*v1::CreateGrantResponse::descriptor()).get(), nullptr), "grant_id=77");
  for (const Descriptor* const type :
       {v1::RegisterMrResponse::descriptor(), v1::GetLocalTokenResponse::descriptor(),
        v1::GetRemoteTokenResponse::descriptor(), v1::GetRemoteTokenFromMwResponse::descriptor(),
        v1::GetPrivilegedMemoryRegionTokenResponse::descriptor()}) {
    EXPECT_EQ(NamedObjects(Filled(*type).get(), nullptr), "") << type->name();
  }
}

}  // namespace
}  // namespace rnicd::gate
