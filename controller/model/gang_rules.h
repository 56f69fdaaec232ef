// The rules that a valid Gang meets, and the boxes that it asks for.
//
//   const GangRequest request{.members = 4, .shape = "3x5x2"};
//   const std::vector<GangFault> faults = FaultsOf(request);
//   Describe(faults);   // "shape 3x5x2: each side must be 1, 2 or 4; 3 and 5 are not"
//
//   BoxesOf({.members = 4, .chips = 128}).per_slice;   // 2, of 64 chips each
//
// The CustomResourceDefinition (charts/tahoma/crds) states the same rules in its schema and in CEL;
// an API server refuses a Gang by the definition. The controller asks the rules of this file
// about gangs that no API server has seen (what-if questions) and about Gangs that are older than a
// rule. The test GangCrdTest checks that both agree.
//
// Scope: the user's Gang. controller/plan/request.h checks the claims; the schema alone checks the
// name of the queue and the priority.
//
// Thread safety: pure functions.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/field.h"
#include "lib/torus/shape.h"

namespace tahoma::controller {

// The values of spec.preemptionPolicy.
inline constexpr std::string_view kPreemptsLower = "PreemptLowerPriority";
inline constexpr std::string_view kPreemptsNobody = "Never";

// The fields of spec that the rules cover.
struct GangRequest {
  std::int64_t members = 1;
  std::optional<std::int64_t> min_members = {};  // the gang may run with as few; nullopt: with all
  std::string shape = {};                        // as the user wrote it; empty when there is none
  std::optional<std::int64_t> chips = {};        // chips of one slice
  std::int64_t slices = 1;
  std::string max_runtime = {};        // as the user wrote it; empty when there is none
  std::string min_runtime = {};        // likewise
  std::string preemption_policy = {};  // empty: that of the pods
  std::string failure_policy = "RestartAll";
  std::string start_within = "10m";
};

// The fate of a gang that runs and loses a member.
enum class FailurePolicy : std::uint8_t {
  kRestartAll,  // all pods are ended, and the gang is placed again when next pods exist
  kReplace,     // a new pod takes the place of the lost member while the gang goes on
  kFail,        // the gang ends for good
};
// Returns nullopt unless the text is RestartAll, Replace or Fail.
std::optional<FailurePolicy> ParsePolicy(std::string_view text);

// How long the members of a gang may take to become ready, unless its spec says it.
inline constexpr std::chrono::seconds kStartWithin{600};

// Reads them from a Gang's spec, with the defaults of those that are absent.
GangRequest ParseGangRequest(kube::Field spec);

struct GangFault {
  std::string field;  // the name that the user knows: "maxRuntime"
  std::string value;
  std::string why;  // "must be 1 to 4096"
};

// Returns the request's faults, at most one for each field and one more for chips beside a shape.
// Empty for a valid Gang.
std::vector<GangFault> FaultsOf(const GangRequest& request);

// Returns "slices 3: must divide spec.members (4): …; chips 12: …"; empty when there are none.
std::string Describe(const std::vector<GangFault>& faults);

struct GangBoxes {
  std::vector<torus::Shape> shapes;  // each box has one of these, the fastest first; empty: no box
  int per_slice = 1;
};

// Returns the boxes of a request, which must be valid.
GangBoxes BoxesOf(const GangRequest& request);

// Parses "90m" or "1h30m": a number of at most nine digits and h, m or s, repeated; at most 32
// characters.
std::optional<std::chrono::seconds> ParseRuntime(std::string_view text);

}  // namespace tahoma::controller
