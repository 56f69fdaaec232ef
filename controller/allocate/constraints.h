// A claim's constraints on the attributes of its devices, while devices are chosen one by one.
//
// Thread safety: one thread.

#pragma once

#include <vector>

#include "controller/allocate/candidate.h"
#include "controller/allocate/wanted.h"

namespace tahoma::controller::allocate {

// matchAttribute: the devices have a value in common. distinctAttribute: no two devices have. An
// attribute that is a list has each of the list's values.
class ConstraintState {
 public:
  using Values = std::vector<const kube::AttributeValue*>;

  ConstraintState(const kube::Constraint& constraint, bool lists);

  bool AppliesTo(const WantedRequest& request, const Alternative& alternative) const {
    return Names(constraint_->requests, request, alternative);
  }
  // The device's values of the attribute; none when the device lacks the attribute.
  Values ValuesOf(const Candidate& candidate) const;

  // Returns false, and changes nothing, where the constraint forbids the device beside those
  // before. The candidate must outlive the state.
  bool Add(const Candidate& candidate) { return AddValues(ValuesOf(candidate)); }
  // As Add, for a device of which these values are known.
  bool AddValues(Values values);
  // Takes back the last device that was added.
  void RemoveLast() { chosen_.pop_back(); }

 private:
  const kube::Constraint* constraint_;
  kube::QualifiedName attribute_;
  bool lists_;
  // By device: the values that the device and all before have in common; for distinct, the
  // device's own.
  std::vector<Values> chosen_;
};

// Returns whether both lists have the same values, in the same order.
bool SameValues(const ConstraintState::Values& a, const ConstraintState::Values& b);

}  // namespace tahoma::controller::allocate
