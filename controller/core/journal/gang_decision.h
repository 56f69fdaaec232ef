// The controller's decision for one gang: which pod goes where, and which devices each claim gets.
//
//   GangDecision decision{.key = {"default", "train"}, .uid = gang_uid};
//   decision.pods.push_back({.name = "train-0", .uid = pod_uid, .node = "node-a"});
//   decision.claims.push_back({.name = "train-0-chips", .uid = claim_uid, .consumers = {0},
//                              .allocation = std::move(allocation)});
//
// A decision is complete: it holds everything that is written to the API for the gang, so that it
// can be written again after a crash without planning anew.
//
// Scope: names as Kubernetes knows them; no index or pointer that has a meaning only in memory.
//
// Thread safety: values.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/claim.h"
#include "controller/model/ids.h"
#include "lib/base/clock.h"

namespace tahoma::controller {

struct GangSpec;   // controller/model/gang.h
struct Placement;  // controller/plan/decision.h
struct SlicePlacement;

// The annotation of a bound pod that says when the pod's Capacity Block takes the hardware back, or
// from when on the pod's queue may have to give the hardware back.
inline constexpr const char* kReclaimAnnotation = "tahoma.dev/reclaim-timestamp";
// Returns the moment in the form of that annotation, in milliseconds since 1970.
inline std::int64_t ReclaimTimestamp(WallTime reclaim) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(reclaim.time_since_epoch()).count();
}

struct DecidedClaim {
  std::string name;  // in the gang's namespace
  std::string uid;
  std::vector<std::uint32_t> consumers;  // indexes into GangDecision::pods
  Allocation allocation;
  // The claim was allocated before this decision, for other pods: only reservations are added, and
  // `allocation` holds nothing but the node.
  bool allocated_before = false;

  friend bool operator==(const DecidedClaim&, const DecidedClaim&) = default;
};

struct DecidedPod {
  std::string name;  // in the gang's namespace
  std::string uid;
  std::string node;
  std::uint32_t rank = 0;
  std::uint32_t slice = 0;  // index into GangDecision::slices

  friend bool operator==(const DecidedPod&, const DecidedPod&) = default;
};

struct DecidedSlice {
  std::string domain;  // UltraServer or node with the slice; empty: no chips, or several domains
  std::string shape;   // as placed, "4x4x2"; empty when the chips form no box
  std::string origin;  // "0,0,2"
  std::vector<std::string> nodes;

  friend bool operator==(const DecidedSlice&, const DecidedSlice&) = default;
};

struct GangDecision {
  GangKey key;                      // of the Gang, or of the pod when it is a gang of one
  std::string uid;                  // likewise
  bool single = false;              // a pod without a Gang
  std::optional<WallTime> end;      // the latest time at which it has ended, if that is known
  std::optional<WallTime> reclaim;  // when its Capacity Block takes the hardware back
  std::string reservation;          // of that block; empty: it runs in none
  // Whose queue its chips are counted for; empty in records of earlier versions.
  std::string queue = {};
  std::optional<WallTime> placed;  // when it was decided; nullopt in records of earlier versions
  // How long it may run after its last pod was bound; nullopt: for ever.
  std::optional<std::chrono::seconds> max_runtime;
  bool preemptible = false;  // may be ended when others need its hardware
  std::int32_t priority = 0;
  std::chrono::seconds grace{30};  // the longest of its pods' termination grace periods
  std::vector<DecidedPod> pods;
  std::vector<DecidedClaim> claims;
  std::vector<DecidedSlice> slices;

  friend bool operator==(const GangDecision&, const GangDecision&) = default;
};

// Returns the slice in the form of a decision.
DecidedSlice DecidedSliceOf(const SlicePlacement& slice);

// Returns the decision that carries out the planner's placement of the gang. `now` is the time of
// the decision, from which the gang may run for its maxRuntimeSeconds.
GangDecision DecisionOf(const GangSpec& spec, const Placement& placement, WallTime now);

// Returns whether the decision has allocated the claim, for the pod alone. `pod` is an index into
// GangDecision::pods.
bool IsOwnClaim(const DecidedClaim& claim, std::uint32_t pod);
// Returns the pod's own claims, as indexes into GangDecision::claims.
std::vector<std::uint32_t> OwnClaims(const GangDecision& decision, std::uint32_t pod);
// Returns how long a pod that joins now may run until the end: a second at least.
std::chrono::seconds RuntimeUntil(WallTime end, WallTime now);

// Lets the driver of the allocation's node tell the pods' programs when the hardware is taken back.
void SayReclaim(WallTime reclaim, Allocation& allocation);

// Returns "us-0 4x4x2+0,0,2"; just the domain without a shape, "" without a domain
// (docs/design/0001-seams.md, annotation tahoma.dev/placement).
std::string PlacementText(const DecidedSlice& slice);
// Reads domain, shape and origin from such a text, which does not name nodes. A text of another
// form is taken for a domain: anybody may write the annotation.
DecidedSlice ParsePlacement(std::string_view text);

}  // namespace tahoma::controller
