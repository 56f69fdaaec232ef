// The main function of a pod's program: options, then the claim, then the work.
//
// Scope: what the programs have alike: --version, and errors. Options have a member `help`.
//
// Thread safety: none; the environment belongs to the process.

#pragma once

#include <absl/status/statusor.h>

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"
#include "lib/base/version.h"
#include "sim-node/workload/app/pod_environment.h"

namespace tahoma::sim {

// Returns the exit status: that of `run`, or 2 after an error of the options, of the environment or
// of `run`, which is printed.
template <typename Parse, typename Help, typename Run>
int PodMain(std::string_view program, int argc, char** argv, Parse parse, Help help, Run run) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::cout << program << " " << kVersion << "\n";
    return 0;
  }
  const auto work = [&]() -> absl::StatusOr<int> {
    TAHOMA_ASSIGN_OR_RETURN(const auto options,
                            parse(std::vector<std::string>(argv + 1, argv + argc)));
    if (options.help) {
      std::cout << help();
      return 0;
    }
    TAHOMA_ASSIGN_OR_RETURN(const PodEnvironment pod, PodEnvironment::Read());
    return run(options, pod);
  };
  const absl::StatusOr<int> status = work();
  if (status.ok()) return *status;
  std::cerr << program << ": " << Message(status.status()) << "\n";
  return 2;
}

}  // namespace tahoma::sim
