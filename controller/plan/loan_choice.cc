#include "controller/plan/loan_choice.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tahoma::controller {
namespace {

using Choice = std::vector<std::size_t>;
using Suffices = absl::FunctionRef<bool(const Choice&)>;

std::int64_t WorkOf(std::span<const Loan> loans, const Choice& choice) {
  return std::accumulate(
      choice.begin(), choice.end(), std::int64_t{0},
      [&](std::int64_t sum, std::size_t loan) { return sum + loans[loan].work; });
}

// Returns the number of choices of k among n, or `most` + 1 when there are more than `most`.
std::size_t CountChoices(std::size_t n, std::size_t k, std::size_t most) {
  std::size_t count = 1;
  for (std::size_t i = 0; i < k; ++i) {
    count = count * (n - i) / (i + 1);
    if (count > most) return most + 1;
  }
  return count;
}

// Returns all choices of k among n, the choice that loses least work first.
std::vector<Choice> ChoicesOf(std::span<const Loan> loans, std::size_t k) {
  std::vector<Choice> all;
  Choice choice(k);
  std::iota(choice.begin(), choice.end(), std::size_t{0});
  for (;;) {
    all.push_back(choice);
    std::size_t i = k;
    while (i > 0 && choice[i - 1] == loans.size() - k + i - 1) --i;
    if (i == 0) break;
    ++choice[i - 1];
    for (; i < k; ++i) choice[i] = choice[i - 1] + 1;
  }
  std::stable_sort(all.begin(), all.end(), [&](const Choice& a, const Choice& b) {
    return WorkOf(loans, a) < WorkOf(loans, b);
  });
  return all;
}

// Begins with all loans and spares them one by one, in the order of `order`, where possible.
Choice SpareInOrder(std::span<const Loan> loans, const Choice& order, Suffices suffices) {
  Choice ended(loans.size());
  std::iota(ended.begin(), ended.end(), std::size_t{0});
  for (const std::size_t spared : order) {
    Choice rest = ended;
    std::erase(rest, spared);
    if (suffices(rest)) ended = std::move(rest);
  }
  return ended;
}

}  // namespace

std::optional<Choice> ChooseLoans(std::span<const Loan> loans, Suffices suffices) {
  Choice all(loans.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (suffices({})) return Choice{};
  if (all.empty() || !suffices(all)) return std::nullopt;
  std::size_t left = kChoicesMost;
  for (std::size_t k = 1; k < loans.size(); ++k) {
    const std::size_t count = CountChoices(loans.size(), k, left);
    if (count > left) break;
    left -= count;
    for (const Choice& choice : ChoicesOf(loans, k)) {
      if (suffices(choice)) return choice;
    }
    if (k + 1 == loans.size()) return all;
  }
  if (loans.size() == 1) return all;
  // Spares small loans first, to end few large loans; or the loans with most work.
  Choice by_chips = all, by_work = all;
  std::stable_sort(by_chips.begin(), by_chips.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(loans[a].chips, -loans[a].work) < std::pair(loans[b].chips, -loans[b].work);
  });
  std::stable_sort(by_work.begin(), by_work.end(),
                   [&](std::size_t a, std::size_t b) { return loans[a].work > loans[b].work; });
  const Choice few = SpareInOrder(loans, by_chips, suffices);
  const Choice young = SpareInOrder(loans, by_work, suffices);
  const auto cost = [&](const Choice& choice) {
    return std::pair(choice.size(), WorkOf(loans, choice));
  };
  return cost(few) <= cost(young) ? few : young;
}

}  // namespace tahoma::controller
