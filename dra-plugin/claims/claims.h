// Prepares and unprepares claims: the plugin's last line of defence against two claims on one core.
//
//   Claims claims(options, state_folder, cdi_folder, node, source, clock);
//   TAHOMA_RETURN_IF_ERROR(claims.Start());
//   absl::StatusOr<std::vector<PreparedDevice>> devices = claims.Prepare(claim);
//
// Prepare: the stored answer when there is one; else read the claim, check it against the node and
// every other prepared claim, apply it to sim-node, write the CDI file, and at last the checkpoint,
// which is the commit: a crash before it leaves only what Start and Reconcile undo. Unprepare
// undoes in the other order and needs nothing from the API server.
//
// The checkpoint is read anew at every call, because during a rolling update two plugins work
// alternately; the caller holds the lock between processes.
//
// Each claim prepared, restored or unprepared leaves a line in the log, with its devices and the
// time; a refusal goes to the caller.
//
// Scope: the state machine. Threads, sockets and locks are dra-plugin/kubelet and app.
//
// Thread safety: one call at a time.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "dra-plugin/claims/allocation.h"
#include "dra-plugin/claims/checkpoint.h"
#include "dra-plugin/claims/files.h"
#include "lib/base/clock.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {

// Whether a call failed because sim-node or the API server did not answer: asking again may help.
bool IsAway(const absl::Status& status);

// The calls to sim-node that the state machine needs. Failures of transport are kUnavailable or
// kDeadlineExceeded.
class NodePort {
 public:
  virtual ~NodePort() = default;
  virtual absl::StatusOr<wire::Inventory> GetInventory() = 0;
  // `token` empty: sim-node chooses one. Gives the token. Idempotent.
  virtual absl::StatusOr<std::string> Apply(const wire::ClaimGrant& grant,
                                            const std::string& token) = 0;
  virtual absl::Status Release(const std::string& claim_uid) = 0;
  virtual absl::StatusOr<std::vector<wire::ClaimGrant>> List() = 0;
};

// The source of ResourceClaims.
class ClaimSource {
 public:
  virtual ~ClaimSource() = default;
  // The object's JSON; kNotFound when there is none.
  virtual absl::StatusOr<std::string> Get(const std::string& name_space,
                                          const std::string& name) = 0;
};

// How much is prepared.
struct PreparedCount {
  std::size_t claims = 0;
  std::size_t chips = 0;  // devices, by what they are
  std::size_t cores = 0;
  std::size_t nodes = 0;

  bool operator==(const PreparedCount&) const = default;
};

class Claims {
 public:
  struct Options {
    std::string node_name;
    std::string node_socket;   // where the plugin reaches sim-node; no container may
    std::string boot_id = {};  // of this boot of the machine; empty: it is not known
  };

  // All ports must outlive this object.
  Claims(Options options, Files& state, Files& cdi, NodePort& node, ClaimSource& source,
         const Clock& clock)
      : options_(std::move(options)),
        state_(state),
        cdi_(cdi),
        node_(node),
        source_(source),
        clock_(clock) {}

  // Checks the checkpoint, writes CDI files that are missing and removes those of this node that no
  // prepared claim has. kDataLoss for a damaged checkpoint: it names the file and what to do, and
  // nothing was changed.
  absl::Status Start();

  // Makes sim-node hold exactly the prepared claims: after a (re)connect. Gives how many of them it
  // refused because a chip broke meanwhile; those are logged, and given to it by a later call.
  absl::StatusOr<std::size_t> Reconcile();

  // kAlreadyExists when another claim holds a core of it. Idempotent.
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef& claim);

  // Unknown claims succeed. While sim-node is away the claim is forgotten here and released there
  // by the next Reconcile.
  absl::Status Unprepare(const ClaimRef& claim);

  // The prepared claims that no pod can use any more: the API server has no such claim, another of
  // that name, or one without this allocation. It is asked for each; its failure is passed on.
  // Needs no lock, since nothing is changed.
  absl::StatusOr<std::vector<PreparedClaim>> FindStale(const Checkpoint& checkpoint);

  // Whether the machine has started again since the claim was prepared.
  bool IsOfEarlierBoot(const PreparedClaim& claim) const;

  // Unprepares a stale claim, unless it has been prepared anew meanwhile.
  absl::Status Drop(const PreparedClaim& stale);

  // Loads the claims that are prepared now.
  absl::StatusOr<Checkpoint> Load();

  // The prepared claims and devices at the end of the last call.
  const PreparedCount& prepared() const { return prepared_; }

 private:
  absl::StatusOr<PreparedClaim> PrepareNew(const ClaimRef& claim, const Checkpoint& checkpoint);
  absl::Status Commit(const PreparedClaim& claim, Checkpoint& checkpoint);
  // Puts back what an interrupted call or a reboot may have taken from a prepared claim.
  absl::Status Restore(const PreparedClaim& claim);
  absl::Status Save(const Checkpoint& checkpoint);
  absl::Status MarkBoot(const std::string& uid, Checkpoint& checkpoint);
  double MsSince(MonotonicTime begin) const;
  // Whether an answer of the source says that the claim is not that claim any more.
  static bool IsStale(const PreparedClaim& claim, const absl::StatusOr<std::string>& object);
  absl::Status WriteMissingCdi(const Checkpoint& checkpoint);
  absl::Status RemoveOrphanCdi(const Checkpoint& checkpoint);

  const Options options_;
  Files& state_;
  Files& cdi_;
  NodePort& node_;
  ClaimSource& source_;
  const Clock& clock_;
  PreparedCount prepared_;
};

}  // namespace tahoma::dra
