#pragma once

#include <memory>

#include "tests/simulation/model/scene.h"

namespace rnicd::simulation {

// Checks whether a close must be refused, and sets `must_pend` if it must pend.
template <typename T>
Refusals CheckClose(const Client& client, const std::shared_ptr<T>& object, bool& must_pend) {
  Refusals why;
  why.If(object == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(object != nullptr && object->closing.begun, ErrorReason::OBJECT_CLOSING);
  must_pend = object != nullptr && Model::IsHeld(client, *object);
  return why;
}

template <typename T>
void Close(Scene& scene, Client& client, T& object, bool pends, const Report& report) {
  object.closing.begun = true;
  if (pends) {
    object.closing.report = report;
  }
  (void)scene.model.Settle(client);
}

}  // namespace rnicd::simulation
