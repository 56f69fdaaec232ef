// kubectl-tahoma: what kubectl cannot draw. Install it in PATH and call `kubectl tahoma topology`.
//
// Ends with status 0, 1 when the cluster cannot be read or has no such gang, 2 for a wrong command
// line; offerings and book with 3 when there is nothing to buy, or it was not sold, and book with 4
// when that was not known in time.

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "controller/ctl/app/block_commands.h"
#include "controller/ctl/domain_reader.h"
#include "controller/ctl/draw.h"
#include "controller/ctl/fleet_reader.h"
#include "controller/ctl/published_summary.h"
#include "controller/ctl/summary.h"
#include "lib/base/clock.h"
#include "lib/base/environment.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "lib/config/spec.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/kubeconfig.h"

namespace tahoma::controller {
namespace {

struct CtlOptions {
  std::string command;
  std::string name;
  std::string kubeconfig;
  std::string context;
  std::string ns;
  bool all = false;
  BlockCommandOptions blocks;
};

std::string KubeconfigPaths(const CtlOptions& options) {
  if (!options.kubeconfig.empty()) return options.kubeconfig;
  if (std::string paths = FromEnvironment("KUBECONFIG"); !paths.empty()) return paths;
  return FromEnvironment("HOME") + "/.kube/config";
}

void Warn(const std::string& line) { fmt::print(stderr, "kubectl-tahoma: {}\n", line); }

absl::StatusOr<std::string> DrawNamed(kube::Transport& transport, const std::string& name) {
  TAHOMA_ASSIGN_OR_RETURN(const Fleet fleet, ReadDomain(transport, name));
  std::optional<std::string> domain = DrawDomain(fleet.cluster, fleet.notes, name);
  if (!domain) return NotFound("no UltraServer, instance or node {} with devices", name);
  return *std::move(domain);
}

absl::StatusOr<std::string> RunCommand(const CtlOptions& options) {
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access,
                          kube::LoadKubeconfig(KubeconfigPaths(options), options.context));
  const std::string ns = options.ns.empty() ? access.default_namespace : options.ns;
  TAHOMA_ASSIGN_OR_RETURN(const auto transport,
                          kube::HttpTransport::Create(std::move(access), {}, Warn));
  if (options.command == "gangs") return ReadGangs(*transport);
  if (options.command == "why") return ReadWhy(*transport, ns, options.name);
  if (!options.name.empty()) return DrawNamed(*transport, options.name);
  if (!options.all) {
    absl::StatusOr<std::string> text = ReadPublishedSummary(*transport, SystemClock().WallNow());
    if (text.ok()) return text;
    Warn(fmt::format("reading the whole fleet: {}", Message(text.status())));
  }
  TAHOMA_ASSIGN_OR_RETURN(const Fleet fleet, ReadFleet(*transport));
  return options.all ? DrawTopology(fleet.cluster, fleet.notes) : SummarizeTopology(fleet.cluster);
}

// Returns the mistake in the words of the command line; empty when there is none.
std::string Mistake(const CtlOptions& options) {
  const bool topology = options.command == "topology";
  if (options.command == "why") {
    return options.name.empty() ? "why needs the name of a gang or pod"
           : options.all        ? "--all is for topology"
                                : "";
  }
  if (IsBlockCommand(options.command)) {
    return options.all ? "--all is for topology"
                       : MistakeIn(options.command, options.name, options.blocks);
  }
  if (!topology && options.command != "gangs") {
    return fmt::format(
        "unknown command \"{}\"; there are topology, gangs, why, offerings, book, calendar, usage",
        options.command);
  }
  if (!topology && !options.name.empty()) return options.command + " takes no name";
  if (!topology && options.all) return "--all is for topology";
  if (options.all && !options.name.empty()) return "topology takes a name or --all, not both";
  return "";
}

int Main(int argc, char** argv) {
  CtlOptions options;
  config::Spec spec({.program = "kubectl-tahoma",
                     .kind = "",
                     .summary = "Shows the torus, why gangs wait, and sells Capacity Blocks."});
  spec.String("kubeconfig", &options.kubeconfig, "kubeconfig; empty: KUBECONFIG, ~/.kube/config");
  spec.String("context", &options.context, "context of the kubeconfig; empty: the current one");
  spec.String("namespace", &options.ns,
              "namespace; empty: the context's, and for calendar and usage all of them");
  spec.Bool("all", &options.all, "for topology: draw every UltraServer and instance");
  spec.Alias("-n", "namespace");
  using Need = config::Spec::Need;
  DeclareBlockOptions(spec, options.blocks);
  spec.Word("command", &options.command, "topology, gangs, why, offerings, book, calendar or usage",
            Need::kRequired);
  spec.Word("name", &options.name,
            "for why: a gang or a pod; for topology: an UltraServer or node; for book: an offering",
            Need::kOptional);
  // Called alone it says what it can do, as kubectl and its plugins do.
  std::string program = "kubectl-tahoma";
  std::string help = "--help";
  std::array<char*, 3> alone = {program.data(), help.data(), nullptr};
  if (argc == 1) {
    argc = 2;
    argv = alone.data();
  }
  if (const std::optional<int> exit = config::Parse(argc, argv, spec)) return *exit;
  if (const std::string mistake = Mistake(options); !mistake.empty()) {
    fmt::print(stderr, "kubectl-tahoma: {}\n", mistake);
    return 2;
  }
  if (IsBlockCommand(options.command)) {
    return RunBlockCommand(options.command, options.name, options.blocks,
                           {KubeconfigPaths(options), options.context, options.ns});
  }
  const absl::StatusOr<std::string> text = RunCommand(options);
  if (!text.ok()) {
    fmt::print(stderr, "kubectl-tahoma: {}\n", Message(text.status()));
    return 1;
  }
  fmt::print("{}", *text);
  return 0;
}

}  // namespace
}  // namespace tahoma::controller

int main(int argc, char** argv) { return tahoma::controller::Main(argc, argv); }
