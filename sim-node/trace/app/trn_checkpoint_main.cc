// The program trn-checkpoint: prints how long a checkpoint takes.

#include <iostream>

#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "sim-node/trace/checkpoint_options.h"

int main(int argc, char** argv) {
  using namespace tahoma;
  sim::CheckpointOptions options;
  const config::Spec spec = sim::DeclareCheckpointOptions(options);
  if (const auto exit = config::Parse(argc, argv, spec)) return *exit;
  const auto cost = sim::CostOf(options);
  if (cost.ok()) {
    std::cout << cost->text;
    return 0;
  }
  std::cerr << "trn-checkpoint: " << Message(cost.status()) << "\n";
  return cost.status().code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
}
