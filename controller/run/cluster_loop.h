// The core loop on a cluster's API server, begun anew when that server was restored from a backup.
//
//   ClusterLoop loop(access, journal, clock, options);
//   TAHOMA_RETURN_IF_ERROR(loop.Start());
//   while (!signalled) TAHOMA_RETURN_IF_ERROR(loop.Tend());    // often
//   loop.Stop();
//
// The journal wins over a restored API (docs/design/0011-restored-api.md): a loop whose API lost
// its history ends with everything it has learnt, and its successor does what a restarted
// controller does. There are no requests of the loop before any more when the next one begins.
//
// Thread safety: Start, Tend and Stop from one thread; the rest from any.

#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <variant>

#include "controller/core/journal/journal.h"
#include "controller/core/snapshot.h"
#include "controller/run/core_loop.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/kube/http_transport.h"

namespace tahoma::controller {

class ClusterLoop {
 public:
  // Journal and clock must outlive it.
  ClusterLoop(kube::ServerAccess access, Journal& journal, const Clock& clock,
              CoreLoopOptions options);
  ~ClusterLoop() { Stop(); }
  ClusterLoop(const ClusterLoop&) = delete;
  ClusterLoop& operator=(const ClusterLoop&) = delete;

  // kDataLoss when the journal is damaged; kInvalidArgument for an address or key of no use.
  absl::Status Start();
  // Begins anew when the API lost its history. Not OK when the program must end.
  absl::Status Tend();
  void Stop();

  // The API lost its history, as somebody else found out.
  void LoseHistory(const std::string& why);
  // As CoreLoop's; kUnavailable before Start.
  absl::StatusOr<std::shared_ptr<const Block>> Order(
      std::variant<PurchaseOrder, ExtensionOrder> order);
  void EndOrders();
  // Empty before Start.
  std::shared_ptr<const Snapshot> snapshot() const;
  // Returns the loop's CoreTrouble; empty before Start.
  std::string CoreTrouble() const;
  std::string PublisherTrouble() const;

 private:
  const kube::ServerAccess access_;
  Journal& journal_;
  const Clock& clock_;
  const CoreLoopOptions options_;

  // The thread of Start, Tend and Stop changes the two; others read the second.
  std::unique_ptr<kube::HttpTransport> transport_;
  mutable Mutex mutex_;
  std::shared_ptr<CoreLoop> loop_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::controller
