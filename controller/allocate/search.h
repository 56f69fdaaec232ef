// The search for devices of all claims of a pod on one node: the first choice, in the order of
// claims, requests, alternatives and devices, that meets everything.
//
// Thread safety: one thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "controller/allocate/candidate.h"
#include "controller/allocate/constraints.h"
#include "controller/allocate/features.h"
#include "controller/allocate/wanted.h"

namespace tahoma::controller::allocate {

// A device chosen for a request.
struct Choice {
  std::size_t request = 0;
  std::size_t alternative = 0;
  std::size_t candidate = 0;
  std::vector<kube::Quantity> consumed;  // of a shared device, by capacity
  bool took_counters = false;
};

class Search {
 public:
  // `given` is by claim, or empty. Everything given must outlive the search.
  Search(std::span<const WantedPtr> claims, std::span<const Given> given,
         std::span<const Pool> pools, NodeView node, const InUse& in_use, const Features& features,
         std::size_t steps_most);

  // Returns whether there is a choice. Errors: those of Allocator::AllocateOn.
  absl::StatusOr<bool> Run();

  // By claim, after Run returned true: the choices, in the order of requests.
  const std::vector<std::vector<Choice>>& choices() const { return choices_; }
  const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  enum class Outcome : std::uint8_t { kFound, kNone, kStopped };

  // An alternative of a request, on this node.
  struct Row {
    std::vector<std::int8_t> selected;  // by candidate: 1 yes, 0 no, -1 not looked at
    std::vector<std::size_t> all;       // of "all": the candidates that the request needs
    std::int64_t count = 0;             // the devices that the request needs
  };
  // A request that devices are chosen for.
  struct Place {
    std::size_t claim = 0;
    std::size_t request = 0;
    std::size_t alternative = 0;
  };

  const WantedClaim& ClaimOf(const Place& at) const { return *claims_[at.claim]; }
  const WantedRequest& RequestOf(const Place& at) const { return ClaimOf(at).requests[at.request]; }
  const Alternative& AlternativeOf(const Place& at) const {
    return RequestOf(at).alternatives[at.alternative];
  }
  Row& RowOf(const Place& at) { return rows_[at.claim][at.request][at.alternative]; }

  absl::Status MakeRows();
  absl::Status ListAll(const Place& at);
  absl::Status CheckLeast(std::size_t claim);
  bool AddGiven();
  Outcome ChooseRequest(Place at);
  Outcome ChooseDevices(const Place& at, std::size_t from, std::int64_t left);
  Outcome ChooseAll(const Place& at, std::int64_t left);
  Outcome TryDevice(const Place& at, std::size_t candidate, std::int64_t left);
  Outcome Stop(absl::Status why);
  bool IsLikeOneOf(const std::vector<std::size_t>& failed, std::size_t candidate);

  bool IsBlocked(const Place& at, std::size_t candidate) const;
  absl::StatusOr<bool> IsSelected(const Place& at, std::size_t candidate);
  bool Tolerates(const Alternative& alternative, const Candidate& candidate) const;
  // `violated`: a constraint is why the device was not taken.
  bool Take(const Place& at, std::size_t candidate, bool& violated);
  void Undo(const Place& at);
  bool AddToConstraints(const Place& at, const Candidate& candidate);
  bool AreAlike(std::size_t a, std::size_t b);

  std::span<const WantedPtr> claims_;
  std::span<const Given> given_;
  std::span<const Pool> pools_;
  NodeView node_;
  Features features_;
  std::size_t steps_left_;
  std::int64_t devices_ = 0;  // chosen for all claims
  CounterBook counters_;
  std::vector<Candidate> candidates_;
  std::vector<std::vector<std::vector<Row>>> rows_;        // by claim, request, alternative
  std::vector<std::vector<std::int64_t>> least_from_;      // by claim: devices from a request on
  std::vector<std::vector<ConstraintState>> constraints_;  // by claim
  std::vector<std::vector<Choice>> choices_;
  absl::Status stopped_;
};

}  // namespace tahoma::controller::allocate
