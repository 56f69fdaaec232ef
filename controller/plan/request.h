// A gang's request, checked and compiled as far as possible without the fleet.
//
// Scope: the request alone. search.h decides whether hardware for the request exists.
//
// Thread safety: a Compiler belongs to one thread; CompiledGang is immutable.

#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/allocate/wanted.h"
#include "controller/model/gang.h"
#include "lib/base/check.h"
#include "lib/kube/cel/device_selector.h"
#include "lib/torus/shape.h"

namespace tahoma::controller {

// The compiled selectors of one request. Equal sets are shared, so the pointer identifies them.
struct SelectorSet {
  std::vector<std::shared_ptr<const kube::DeviceSelector>> selectors;  // class's first
  // An attribute that has one of these values on every selected device.
  struct Pin {
    QualifiedName attribute;
    std::vector<AttributeValue> values;
  };
  std::vector<Pin> pins;
  std::string driver;  // of every selected device, where a selector says the driver

  // Returns whether the selection may depend on an attribute with that id.
  bool MayRead(std::string_view id) const;
};

struct CompiledAlternative {
  const DeviceRequest* spec = nullptr;
  std::string name;  // "r" or "r/sub"
  std::shared_ptr<const SelectorSet> selectors;
  int lnc = 0;    // from a NeuronConfig that applies: 1 or 2; 0 without one
  int nodes = 0;  // UltraServer size from an UltraServerConfig: 1, 2 or 4; 0 without one
};

struct CompiledRequest {
  std::string name;
  std::vector<CompiledAlternative> alternatives;
};

struct CompiledConstraint {
  QualifiedName attribute;
  bool distinct = false;
  const Constraint* spec = nullptr;
  // Returns whether the constraint applies to a result of that name.
  bool Covers(const std::string& request, const std::string& result) const;
};

struct CompiledClaim {
  const ClaimSpec* spec = nullptr;
  std::vector<CompiledRequest> requests;  // for devices of AWS's driver
  std::vector<CompiledConstraint> constraints;
  // The requests for devices of other drivers, with all constraints; nullptr: there are none.
  allocate::WantedPtr others;
};

struct CompiledMember {
  const MemberSpec* spec = nullptr;
  std::vector<CompiledClaim> claims;  // claims that are not allocated yet
  // Uids of claims that are allocated already. The first member lists a claim that members share.
  std::vector<std::string> kept;
  std::string pinned_node;          // the node of the allocated claims; empty without them
  std::vector<std::size_t> beside;  // earlier members that list a shared claim
  std::size_t alike = 0;            // the first member of the gang with equal requests
  bool tolerates = false;           // some request tolerates taints of devices
  bool chooses = false;             // some request has several alternatives
  int nodes = 0;                    // the most nodes in an UltraServerConfig

  // Returns whether some claim asks for devices of other drivers.
  bool wants_others() const {
    return std::ranges::any_of(claims, [](const auto& claim) { return claim.others != nullptr; });
  }
};

struct CompiledGang {
  std::shared_ptr<const GangSpec> spec;
  absl::Status valid;
  std::vector<CompiledMember> members;
  // Boxes wanted, each of one of these shapes; fastest first. Empty: no box.
  std::vector<torus::Shape> shapes;
  int boxes = 0;
  int boxes_per_slice = 1;
  bool shape_given = false;
  std::string signature;  // equal for gangs with equal requests

  int chips_per_box() const { return shapes.empty() ? 0 : shapes.front().chip_count(); }
  std::size_t members_per_box() const {
    TAHOMA_CHECK(boxes > 0);  // only an invalid gang has no boxes
    return members.size() / static_cast<std::size_t>(boxes);
  }
  // "4x4x4 = 64 chips of one topology domain", "2 x 4x4 = 32 chips", "4 chips".
  std::string Describe() const;
};

class Compiler {
 public:
  // Never fails: errors are in `valid`.
  std::shared_ptr<const CompiledGang> Compile(std::shared_ptr<const GangSpec> spec);

 private:
  absl::Status CompileMember(const MemberSpec& spec, CompiledGang& gang);
  absl::StatusOr<CompiledClaim> CompileClaim(const ClaimSpec& spec);
  absl::StatusOr<bool> IsForOthers(const ClaimRequest& request);
  absl::StatusOr<CompiledRequest> CompileRequest(const ClaimSpec& claim,
                                                 const ClaimRequest& request);
  absl::StatusOr<CompiledAlternative> CompileAlternative(const ClaimSpec& claim,
                                                         const ClaimRequest& request,
                                                         const DeviceRequest& spec);
  absl::StatusOr<std::shared_ptr<const SelectorSet>> Select(const DeviceRequest& spec);
  absl::StatusOr<std::shared_ptr<const kube::DeviceSelector>> Selector(const std::string& source);

  absl::flat_hash_map<std::string, absl::StatusOr<std::shared_ptr<const kube::DeviceSelector>>>
      selectors_;
  absl::flat_hash_map<std::string, std::shared_ptr<const SelectorSet>> sets_;
  absl::flat_hash_map<const GangSpec*, std::shared_ptr<const CompiledGang>> gangs_;
};

}  // namespace tahoma::controller
