// The times that phases of a collective over several topology domains take inside the domains.
//
// Domains with the same chips in full health count once. The rules are the emulator's
// (sim-node/emulator/collective): every part of the buffer is planned as if all blocks in the part
// were as long as the longest; parts with blocks of the same lengths take steps together, other
// parts take the same steps beside them; all parts together decide on the algorithm. The stages in
// which ranks of a chip combine or copy serve part after part.
//
// Thread safety: an InsideDomains belongs to one thread.

#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/check.h"
#include "lib/collective/chains.h"
#include "lib/collective/closed_form.h"
#include "lib/collective/predict_domains.h"

namespace tahoma::collective {

// Returns the elements of the longest of so many parts as equal as can be.
inline std::uint64_t CeilOf(std::uint64_t elements, std::uint64_t parts) {
  TAHOMA_CHECK(parts > 0);  // else nobody has the elements
  return (elements + parts - 1) / parts;
}

// A part of a buffer that every domain reduces or gathers among its chips; or several alike.
struct InsidePart {
  // The chips of the domain that has the blocks of the part; 0: blocks have no home, and each
  // domain cuts the part among the domain's chips.
  std::uint64_t chips_at_home = 0;
  std::uint64_t block = 0;     // elements of the longest of those blocks
  std::uint64_t elements = 0;  // of all
  std::uint64_t count = 1;     // of parts alike
};

class InsideDomains {
 public:
  struct Domain {
    torus::ChipMask chips = 0;
    std::unique_ptr<const DomainLinks> links;
    std::unique_ptr<const SetLoads> own;  // nullptr: a table has them
    const SetLoads* loads = nullptr;      // of a healthy box those of any box of its size
  };

  // Errors as of PredictOverDomains.
  static absl::StatusOr<InsideDomains> Of(std::span<const DomainPart> domains,
                                          const hw::ChipModel& chip);

  // The domains that differ; the root is in the first.
  const std::vector<Domain>& distinct() const { return distinct_; }
  // The time of each distinct domain. The request has the ranks and the size of an element.
  std::vector<Picoseconds> PhaseTimes(Phase phase, const std::vector<InsidePart>& parts,
                                      const FormRequest& request) const;
  // The same for scattering so many elements; 0 for all domains but the root's.
  std::vector<Picoseconds> ScatterTimes(std::uint64_t elements, const FormRequest& request) const;

 private:
  std::vector<Domain> distinct_;
};

}  // namespace tahoma::collective
