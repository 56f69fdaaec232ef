// Which loans of hardware end when a gang of the lending Capacity Block needs it.
//
//   const std::vector<Loan> loans = {{.chips = 64, .work = 9000}, {.chips = 16, .work = 100}};
//   const auto chosen = ChooseLoans(loans, [&](const std::vector<std::size_t>& ended) {
//     return FitsWithout(ended);
//   });
//
// As few gangs as can be are ended and, among as few, those that lose least work. Loans end whole.
//
// Scope: the choice. What would fit is for who asks to find out.
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

// What a preemptible gang has borrowed.
struct Loan {
  std::int64_t chips = 0;
  std::int64_t work = 0;  // lost when it is ended: chip-seconds
};

// How often `suffices` is called at most to find the best choice. With more choices than that the
// one that is found may end more gangs than necessary, but none of those could stay.
inline constexpr std::size_t kChoicesMost = 256;

// Returns the loans to be ended, ascending; empty when none has to be, nullopt when not even ending
// all of them helps. `suffices` says whether there is room when these loans (ascending) are ended;
// what suffices does so with more loans, too.
std::optional<std::vector<std::size_t>> ChooseLoans(
    std::span<const Loan> loans, absl::FunctionRef<bool(const std::vector<std::size_t>&)> suffices);

}  // namespace tahoma::controller
