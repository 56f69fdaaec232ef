// The records that the controller writes into its journal: one per step of a gang's commit.
//
//   const std::string bytes = EncodeRecord(GangAllocated{.run = 17});
//   TAHOMA_ASSIGN_OR_RETURN(const Record record, DecodeRecord(bytes));
//
// The records are:
//
//   GangPrepared   the decision; its journal sequence number is the run's id from here on
//   GangAllocated  every claim is allocated and reserved; pods may be bound
//   GangBound      every pod is bound
//   ClaimReleased  one claim of a bound gang was de-allocated; its devices are free
//   MemberReplaced a pod has the place of a lost one in a bound gang, on the same chips or others
//   MemberAdded    a bound gang with minMembers has another pod
//   GangUndoing    something failed; everything is being taken back
//   GangReleased   nothing of the run is left; all its records are dropped (never stored itself)
//
// The stored form is described in docs/formats/ledger.md.
//
// Thread safety: values; functions from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "controller/core/journal/gang_decision.h"
#include "controller/core/journal/journal.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

// One attempt to commit a gang: the sequence number of its GangPrepared.
using RunId = Sequence;

struct GangPrepared {
  std::shared_ptr<const GangDecision> decision;  // never null
};
struct GangAllocated {
  RunId run = 0;
};
struct GangBound {
  RunId run = 0;
  std::optional<WallTime> at = {};  // when the last pod was; nullopt in records of earlier versions
};
struct ClaimReleased {
  RunId run = 0;
  std::uint32_t claim = 0;  // index into GangDecision::claims
};
// A pod takes the rank of a lost one, with claims of its own.
struct MemberReplaced {
  struct Claim {
    std::uint32_t index = 0;  // into GangDecision::claims; the lost pod alone has used it
    std::string name;
    std::string uid;
    Allocation allocation;
  };

  RunId run = 0;
  std::uint32_t pod = 0;  // index into GangDecision::pods
  std::string name;
  std::string uid;
  std::string node = {};  // empty: the lost pod's node, and the very chips of that pod
  WallTime at;
  std::vector<Claim> claims;
  std::optional<DecidedSlice> slice = {};  // the pod's slice from now on; nullopt: as before
};
// A bound gang has another pod, at the end of the decision's pods or in the place of a lost pod.
struct MemberAdded {
  RunId run = 0;
  std::uint32_t pod = 0;  // index into GangDecision::pods, or their number
  std::string name;
  std::string uid;
  std::string node;
  std::uint32_t rank = 0;
  WallTime at;
  // For the pod alone. The indexes ascend: released claims of the place, then new claims.
  std::vector<MemberReplaced::Claim> claims;
};
// Why a run is taken back.
enum class EndCause : std::uint8_t {
  kFailed,       // it could not be carried out
  kReclaimed,    // its Capacity Block ends
  kPreempted,    // a Capacity Block needs hardware that it had borrowed
  kRuntimeOver,  // it has run for its maxRuntime
  kMemberLost,   // a pod was lost: all pods begin again
  kGangFailed,   // a pod was lost: the gang ends for good
  kNotStarted,   // a pod was not ready within startWithin
  kMoved,        // it moves to another place so that hardware comes free
};

struct GangUndoing {
  RunId run = 0;
  std::string reason;
  std::optional<WallTime> by = {};  // when its pods must have ended; nullopt: as their grace says
  EndCause cause = EndCause::kFailed;
};
struct GangReleased {
  RunId run = 0;
};

using Record = std::variant<GangPrepared, GangAllocated, GangBound, ClaimReleased, MemberReplaced,
                            MemberAdded, GangUndoing, GangReleased>;

// Returns whether the record speaks of a pod of the decision, and of claims for that pod alone.
bool MayFollow(const MemberReplaced& record, const GangDecision& decision);
// Returns the decision with the pod and its claims in their places. MayFollow() holds.
GangDecision WithMember(GangDecision decision, const MemberReplaced& record);

// Returns whether the record adds a pod to the decision, and claims of the pod alone.
bool MayFollow(const MemberAdded& record, const GangDecision& decision);
// Returns the decision with the pod and the claims of the pod. MayFollow() holds.
GangDecision WithMember(GangDecision decision, const MemberAdded& record);

// Encodes a record. GangReleased has no stored form: handing it in is a mistake of ours.
std::string EncodeRecord(const Record& record);

// Decodes a record. kDataLoss for bytes that EncodeRecord of this or an earlier version did not
// write, and for a checksum that does not match; the message says which.
absl::StatusOr<Record> DecodeRecord(std::string_view bytes);

}  // namespace tahoma::controller
