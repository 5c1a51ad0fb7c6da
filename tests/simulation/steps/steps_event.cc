// The event stream: every due event comes exactly once.

#include <algorithm>
#include <string>

#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

// Removes the event from the due ones; returns its error, or an empty string.
struct Matcher {
  Client& client;

  std::string operator()(const core::RequestCompleted& event) {
    const auto due = std::find_if(client.completions.begin(), client.completions.end(), [&](const DueCompletion& each) {
      return each.kind == event.kind && each.object_id == event.object_id &&
             each.request_context == event.request_context && each.why.Allows(event.status);
    });
    const std::string text =
        "a completion of kind " + std::to_string(static_cast<int>(event.kind)) + " with " + TextOf(event.status);
    if (due == client.completions.end()) {
      return text + " is not due";
    }
    const bool same =
        due->registration.has_value() == event.registration.has_value() &&
        (!due->registration.has_value() || (due->registration->local_token == event.registration->local_token &&
                                            due->registration->remote_token == event.registration->remote_token &&
                                            due->registration->base_address == event.registration->base_address &&
                                            due->registration->length == event.registration->length));
    client.completions.erase(due);
    return same ? "" : text + " has another registration";
  }

  std::string operator()(const core::SessionEnding& event) {
    const bool due = client.ending_event_due && event.cause == client.cause && client.completions.empty();
    client.ending_event_due = false;
    return due ? ""
               : "the end of the session with cause " + std::string(core::EndCauseName(event.cause)) + " is not due";
  }

  std::string operator()(const core::CqNotified& event) {
    for (const auto& queue : client.completion_queues) {
      if (queue->id == event.queue) {
        const NtStatus status = queue->overrun ? NtStatus::kBufferOverflow : NtStatus::kSuccess;
        const bool due = queue->notifying && event.context == queue->context && event.status == status;
        queue->Fetched();
        return due ? "" : "a notification of cq" + std::to_string(queue->number) + " is not due";
      }
    }
    return "a notification of a queue that is gone";
  }

  std::string operator()(const core::QpDisconnected& event) {
    for (const auto& pair : client.queue_pairs) {
      if (pair->id == event.queue_pair) {
        const bool due = pair->disconnect_waits && event.context == pair->context;
        pair->disconnect_waits = false;
        return due ? "" : "the disconnection of qp" + std::to_string(pair->number) + " is not due";
      }
    }
    return "the disconnection of a queue pair that is gone";
  }

  // No client here listens or connects by address.
  std::string operator()(const core::ConnectRequested& /*event*/) { return "a request for a connection"; }
  std::string operator()(const core::ConnectorDisconnected& /*event*/) { return "the end of a connection"; }

  // No card here is removed.
  std::string operator()(const core::AdapterRemoved& /*event*/) { return "the removal of an adapter"; }

  // No allocation here asks for it, or takes long.
  std::string operator()(const core::MemoryProgress& /*event*/) { return "progress that nobody asked for"; }
};

bool IsAnythingDue(const Client& client) {
  return client.ending_event_due || !client.completions.empty() ||
         std::any_of(client.completion_queues.begin(), client.completion_queues.end(),
                     [](const auto& queue) { return queue->notifying; }) ||
         std::any_of(client.queue_pairs.begin(), client.queue_pairs.end(),
                     [](const auto& pair) { return pair->disconnect_waits; });
}

}  // namespace

// Checks that no event comes twice, none is missing, and their numbers have no gap.
void FetchEvent(Scene& scene, Client& client) {
  scene.trace.BeginStep("s" + std::to_string(client.number) + " fetches an event");
  const std::optional<core::Event> event = client.session->events().Pop();
  if (!event.has_value()) {
    scene.trace.Add(" -> none");
    if (IsAnythingDue(client)) {
      scene.findings.Report("EventsComeOnce", "an event is due and there is none");
    }
    return;
  }
  scene.trace.Add(" -> " + std::to_string(event->sequence) + " of sort " + std::to_string(event->body.index()));
  std::string wrong = std::visit(Matcher{client}, event->body);
  if (event->sequence != client.next_sequence++) {
    wrong =
        "event " + std::to_string(event->sequence) + " came after event " + std::to_string(client.next_sequence - 2);
  }
  if (!wrong.empty()) {
    scene.findings.Report("EventsComeOnce", wrong);
  }
}

std::vector<ClientStep> EventSteps() {
  return {{FetchEvent, [](const Client& client) -> uint64_t { return IsAnythingDue(client) ? 40 : 3; }}};
}

}  // namespace rnicd::simulation
