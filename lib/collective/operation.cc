#include "lib/collective/operation.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <string>

#include "lib/base/status.h"

namespace tahoma::collective {
namespace {

struct OperationName {
  Operation operation;
  std::string_view name;
};
constexpr std::array kNames = {
    OperationName{Operation::kAllReduce, "all_reduce"},
    OperationName{Operation::kAllReduce, "allreduce"},
    OperationName{Operation::kAllReduce, "allr"},
    OperationName{Operation::kAllGather, "all_gather"},
    OperationName{Operation::kAllGather, "allgather"},
    OperationName{Operation::kAllGather, "allg"},
    OperationName{Operation::kReduceScatter, "reduce_scatter"},
    OperationName{Operation::kReduceScatter, "reducescatter"},
    OperationName{Operation::kReduceScatter, "redsct"},
    OperationName{Operation::kAllToAll, "all_to_all"},
    OperationName{Operation::kAllToAll, "alltoall"},
    OperationName{Operation::kSendReceive, "sendrecv"},
    OperationName{Operation::kPermute, "permute"},
    OperationName{Operation::kBroadcast, "broadcast"},
};
// In the order of Algorithm.
constexpr std::array<std::string_view, 6> kAlgorithmNames = {"mesh",      "rdh",  "ring",
                                                             "kangaring", "tree", "hier"};

}  // namespace

std::string_view Name(Operation operation) {
  for (const OperationName& row : kNames) {
    if (row.operation == operation) return row.name;
  }
  return "";
}

absl::StatusOr<Operation> ParseOperation(std::string_view name) {
  std::string known;
  // Other tools' spellings: "all-reduce", "AllReduce".
  std::string plain = absl::AsciiStrToLower({name.data(), name.size()});
  std::ranges::replace(plain, '-', '_');
  for (const OperationName& row : kNames) {
    if (row.name == name) return row.operation;
    if (row.name == plain) {
      return InvalidArgument("unknown operation \"{}\"; did you mean {}?", name, row.name);
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return InvalidArgument("unknown operation \"{}\"; expected one of {}", name, known);
}

std::vector<Phase> PhasesOf(Operation operation) {
  std::vector<Phase> phases;
  if (Combines(operation)) phases.push_back(Phase::kReduceScatter);
  if (operation != Operation::kReduceScatter) phases.push_back(Phase::kAllGather);
  return phases;
}

Operation OperationOf(Phase phase) {
  return phase == Phase::kReduceScatter ? Operation::kReduceScatter : Operation::kAllGather;
}

std::string_view Name(Algorithm algorithm) {
  return kAlgorithmNames.at(static_cast<std::size_t>(algorithm));
}

absl::StatusOr<Algorithm> ParseAlgorithm(std::string_view name) {
  std::string known;
  for (const Algorithm algorithm : kAllAlgorithms) {
    if (Name(algorithm) == name) return algorithm;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", Name(algorithm));
  }
  return InvalidArgument("unknown algorithm \"{}\"; expected one of {}", name, known);
}

double BusFactor(Operation operation, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case Operation::kAllReduce:
      return 2 * share;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
      return share;
    default:
      return 1;
  }
}

bool IsExchange(Operation operation) {
  return operation == Operation::kAllToAll || operation == Operation::kSendReceive ||
         operation == Operation::kPermute;
}

bool Combines(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter;
}

}  // namespace tahoma::collective
