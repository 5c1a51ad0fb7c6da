#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/request/maybe_pending.h"
#include "daemon/core/request/object_table.h"
#include "daemon/core/request/session_requests.h"

namespace rnicd::core {

// The objects of one kind that a session owns, by id. Every object is found through the session that owns it, so that
// the ids of another session name nothing.
// Lifetime: a part of its session, reached through a SessionGuard; the session empties it at its end.
// Threads:  safe.
template <typename Id, typename T>
class SessionObjects {
 public:
  using Table = ObjectTable<Id, T>;

  // For objects of other kinds, which name these.
  const Table& table() const { return table_; }

 protected:
  explicit SessionObjects(SessionRequests& requests)
      : lease_(requests.lease()),
        requests_(requests),
        node_(requests.node()),
        ledger_(lease_.shared_ledger()),
        table_(node_.random.Next()) {}
  ~SessionObjects() = default;

  // Closes an object whose id is dead already.
  MaybePending<> CloseRemoved(T& object, Done<> report) {
    RNICD_ASSIGN_OR_RETURN(const Closable::CloseResult result,
                           object.Close([report = std::move(report)] { report(absl::OkStatus()); }));
    return result == Closable::CloseResult::kPending ? MaybePending<>::Pending() : absl::OkStatus();
  }

  // Closes an object whose id stays in the table until the close is complete, so that a late child gets OBJECT_CLOSING.
  MaybePending<> CloseThenRemove(Id id, T& object, Done<> report) {
    MaybePending<> closed = CloseRemoved(
        object, [this, self = lease_.shared_from_this(), id, report = std::move(report)](const absl::Status& status) {
          table_.Remove(id);
          report(status);
        });
    if (closed.succeeded()) {
      table_.Remove(id);
    }
    return closed;
  }

  // The callback that reports a close. A close can never fail, so it takes no charge of its own: the object's slot
  // stays charged until the completion is fetched.
  Done<> ReportClose(RequestKind kind, Id id, PendingChoice choice, const T& object, const Done<>& done) {
    return requests_.Report<void>(kind, id.value, choice, object.charge(), done);
  }

  Lease& lease_;
  SessionRequests& requests_;
  Node& node_;
  const std::shared_ptr<Ledger>& ledger_;
  Table table_;

 private:
  friend class Session;
  // Removes and returns all objects, at the end of the session.
  typename Table::Entries TakeAll() { return table_.TakeAll(); }
  template <typename Wanted>
  typename Table::Entries TakeIf(const Wanted& wanted) {
    return table_.TakeIf(wanted);
  }
};

}  // namespace rnicd::core
