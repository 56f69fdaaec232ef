// Which loans of hardware end when a gang of the lending Capacity Block needs it.
//
//   const std::vector<Loan> loans = {{.chips = 64, .work = 9000}, {.chips = 16, .work = 100}};
//   const auto chosen = ChooseLoans(loans, [&](const std::vector<std::size_t>& ended) {
//     return FitsWithout(ended);
//   });
//
// The choice ends as few gangs as possible and, among such choices, loses least work. Loans end
// whole.
//
// Scope: the choice. The caller finds out whether gangs fit.
//
// Thread safety: a pure function.

#pragma once

#include <absl/functional/function_ref.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tahoma::controller {

// The loan of a preemptible gang.
struct Loan {
  std::int64_t chips = 0;
  std::int64_t work = 0;  // lost at its end: chip-seconds
};

// How often `suffices` is called at most to find the best choice. With more possible choices, the
// chosen loans may be more than necessary, but none of the chosen could stay.
inline constexpr std::size_t kChoicesMost = 256;

// Returns the loans to be ended, ascending; empty when no loan has to end, nullopt when not even
// ending all loans helps. `suffices` says whether there is room when these loans (ascending) are
// ended. A set that suffices must also suffice together with more loans.
std::optional<std::vector<std::size_t>> ChooseLoans(
    std::span<const Loan> loans, absl::FunctionRef<bool(const std::vector<std::size_t>&)> suffices);

}  // namespace tahoma::controller
