#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace rnicd::fuzz {

// The name under which values of a field are kept. Fields that accept each other's values share it: "cq_id" for
// CreateQp's receive_cq_id. Empty for a field that takes no value from a response.
std::string PoolOf(const google::protobuf::FieldDescriptor* field);

// Values in the responses of a run: ids, tokens, addresses, secrets. References in requests are looked up here.
// Threads: safe.
class WirePool {
 public:
  void Learn(const google::protobuf::Message& answer);
  // Replaces references by values; by 0 or "" if no response had one.
  void Resolve(google::protobuf::Message& request) const;
  // The value of this number of a pool; 0 if no response had one.
  uint64_t Value(const std::string& pool, size_t index) const;
  // Secrets of grants, in the order of the responses.
  std::vector<std::string> secrets() const;

 private:
  void LearnField(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field)
      RNICD_REQUIRES(mutex_);
  void LearnNumber(const std::string& pool, uint64_t value) RNICD_REQUIRES(mutex_);
  uint64_t Number(const google::protobuf::FieldDescriptor* field, uint64_t value) const RNICD_REQUIRES(mutex_);
  std::string Text(const google::protobuf::FieldDescriptor* field, const std::string& value) const
      RNICD_REQUIRES(mutex_);
  void ResolveField(google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field) const
      RNICD_REQUIRES(mutex_);
  void ResolveMessage(google::protobuf::Message& message) const RNICD_REQUIRES(mutex_);
  void LearnMessage(const google::protobuf::Message& message) RNICD_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, std::vector<uint64_t>> numbers_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::string>> texts_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::fuzz
