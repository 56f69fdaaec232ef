// Prepares and unprepares claims: the plugin's last line of defence against two claims on a core.
//
//   Claims claims(options, state_folder, cdi_folder, node, source, clock);
//   TAHOMA_RETURN_IF_ERROR(claims.Start());
//   absl::StatusOr<std::vector<PreparedDevice>> devices = claims.Prepare(claim);
//
// Prepare returns the stored answer, if any. Otherwise Prepare reads the claim, checks the claim
// against the node and every other prepared claim, applies it to sim-node, writes the CDI file, and
// at last the checkpoint. The checkpoint is the commit: after an earlier crash, Start and Reconcile
// undo the rest. Unprepare undoes the steps in reverse and needs nothing from the API server.
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

// The state machine's calls to sim-node. Failures of transport are kUnavailable or
// kDeadlineExceeded.
class NodePort {
 public:
  virtual ~NodePort() = default;
  virtual absl::StatusOr<wire::Inventory> GetInventory() = 0;
  // Applies the grant and returns the token; with an empty `token` sim-node chooses a token.
  // Idempotent.
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
  std::size_t chips = 0;  // devices, by kind
  std::size_t cores = 0;
  std::size_t nodes = 0;

  bool operator==(const PreparedCount&) const = default;
};

class Claims {
 public:
  struct Options {
    std::string node_name;
    std::string node_socket;   // where the plugin reaches sim-node; no container may
    std::string boot_id = {};  // of this boot of the machine; empty: unknown
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

  // Checks the checkpoint, writes missing CDI files and removes CDI files of this node without a
  // prepared claim. kDataLoss for a damaged checkpoint names the file and the remedy; nothing was
  // changed.
  absl::Status Start();

  // Makes sim-node hold exactly the prepared claims, after a (re)connect. Returns the number of
  // claims that sim-node refused because a chip broke meanwhile; such claims are logged, and
  // applied by a later call.
  absl::StatusOr<std::size_t> Reconcile();

  // kAlreadyExists when another claim holds a core of this claim. Idempotent.
  absl::StatusOr<std::vector<PreparedDevice>> Prepare(const ClaimRef& claim);

  // Unknown claims succeed. While sim-node is away the claim is forgotten here and released there
  // by the next Reconcile.
  absl::Status Unprepare(const ClaimRef& claim);

  // Returns the prepared claims that no pod can use any more: the API server has no such claim,
  // another claim of the same name, or the claim without this allocation. Reads each claim and
  // passes failures on. Needs no lock, because nothing is changed.
  absl::StatusOr<std::vector<PreparedClaim>> FindStale(const Checkpoint& checkpoint);

  // Whether the machine has started again since the claim was prepared.
  bool IsOfEarlierBoot(const PreparedClaim& claim) const;

  // Unprepares a stale claim, unless prepared anew meanwhile.
  absl::Status Drop(const PreparedClaim& stale);

  // Loads the prepared claims.
  absl::StatusOr<Checkpoint> Load();

  // The prepared claims and devices at the end of the last call.
  const PreparedCount& prepared() const { return prepared_; }

 private:
  absl::StatusOr<PreparedClaim> PrepareNew(const ClaimRef& claim, const Checkpoint& checkpoint);
  absl::Status Commit(const PreparedClaim& claim, Checkpoint& checkpoint);
  // Restores the parts of a prepared claim that an interrupted call or a reboot may have taken
  // away.
  absl::Status Restore(const PreparedClaim& claim);
  absl::Status Save(const Checkpoint& checkpoint);
  absl::Status MarkBoot(const std::string& uid, Checkpoint& checkpoint);
  double MsSince(MonotonicTime begin) const;
  // Whether the source's answer shows that the claim is gone or replaced.
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
