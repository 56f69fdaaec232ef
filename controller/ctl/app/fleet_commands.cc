#include "controller/ctl/app/fleet_commands.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "controller/core/facts/queue_object.h"
#include "controller/ctl/domain_reader.h"
#include "controller/ctl/draw.h"
#include "controller/ctl/fleet_reader.h"
#include "controller/ctl/gang_list.h"
#include "controller/ctl/published_summary.h"
#include "controller/ctl/summary.h"
#include "controller/ctl/table.h"
#include "controller/ctl/why_service.h"
#include "controller/model/gang.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/kube/answer.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

using Need = config::Spec::Need;

constexpr const char* kValueForms = "for programs; empty: text";

void DeclareOutput(config::Spec& spec, std::string* output, std::vector<std::string> forms,
                   const std::string& description) {
  spec.String("output", output, description, std::move(forms));
  spec.Alias("-o", "output");
}

absl::StatusOr<std::string> NamespaceOf(const CommandTarget& target) {
  if (!target.ns.empty()) return target.ns;
  TAHOMA_ASSIGN_OR_RETURN(const kube::ServerAccess access, AccessOf(target));
  return access.default_namespace;
}

// A driver that publishes its devices anew writes one slice after the other, and meanwhile none of
// its generations is complete: a domain that is not there is looked for again.
absl::StatusOr<Fleet> FindDomain(kube::Transport& transport, const std::string& name) {
  constexpr int kLooks = 4;
  constexpr std::chrono::milliseconds kPause(250);
  absl::StatusOr<Fleet> fleet = ReadDomain(transport, name);
  for (int look = 1; look < kLooks && fleet.ok() && !DomainJson(fleet->cluster, name); ++look) {
    std::this_thread::sleep_for(kPause);
    fleet = ReadDomain(transport, name);
  }
  return fleet;
}

int PrintDomain(kube::Transport& transport, const FleetCommandOptions& options,
                const CommandTarget& target) {
  const absl::StatusOr<Fleet> fleet = FindDomain(transport, options.name);
  if (!fleet.ok()) return Fail(fleet.status());
  if (!options.output.empty()) {
    if (const auto value = DomainJson(fleet->cluster, options.name)) {
      return PrintValue(*value, options.output);
    }
  } else if (const auto text = DrawDomain(fleet->cluster, fleet->notes, options.name)) {
    return PrintText(target, *text);
  }
  return Fail(NotFound("no UltraServer, instance or node {} with devices", options.name));
}

int RunTopology(kube::Transport& transport, const FleetCommandOptions& options,
                const CommandTarget& target) {
  if (!options.name.empty()) return PrintDomain(transport, options, target);
  if (!options.all) {
    const absl::StatusOr<PublishedSummary> published = ReadPublishedSummary(transport);
    if (published.ok() && !options.output.empty()) {
      return PrintValue(SummaryJson(published->summary), options.output);
    }
    if (published.ok()) {
      return PrintText(target, PublishedSummaryText(*published, SystemClock().WallNow()));
    }
    Warn(fmt::format("reading the whole fleet: {}", Message(published.status())));
  }
  const absl::StatusOr<Fleet> fleet = ReadFleet(transport);
  if (!fleet.ok()) return Fail(fleet.status());
  if (!options.output.empty()) {
    return PrintValue(
        options.all ? TopologyJson(fleet->cluster) : SummaryJson(SummarizeFleet(fleet->cluster)),
        options.output);
  }
  return PrintText(target, options.all ? DrawTopology(fleet->cluster, fleet->notes)
                                       : SummarizeTopology(fleet->cluster));
}

int FollowGangs(kube::Transport& transport, const std::string& ns, const Json& list,
                const std::function<int(const Json& gang)>& show) {
  int status = 0;
  const absl::Status watched = WatchGangs(transport, ns, list, [&](const Json& gang) {
    status = show(gang);
    return status == 0;
  });
  return watched.ok() ? status : Fail(watched);
}

int RunGangs(kube::Transport& transport, const FleetCommandOptions& options,
             const CommandTarget& target) {
  std::string ns;
  if (!options.all_namespaces) {
    absl::StatusOr<std::string> given = NamespaceOf(target);
    if (!given.ok()) return Fail(given.status());
    ns = *std::move(given);
  }
  const absl::StatusOr<Json> list = ListGangs(transport, ns);
  if (!list.ok()) return Fail(list.status());
  const std::string& form = options.output;
  if (form == "json" || form == "yaml") {
    if (!options.watch) return PrintValue(*list, form);
    const auto show = [&](const Json& gang) {
      if (form == "yaml") {
        if (const absl::Status begun = Print("---\n"); !begun.ok()) return Fail(begun);
      }
      return PrintValue(gang, form);
    };
    for (const Json& gang : (*list)["items"]) {
      if (const int status = show(gang); status != 0) return status;
    }
    return FollowGangs(transport, ns, *list, show);
  }
  GangTable table(form == "wide" ? GangColumns::kWide : GangColumns::kUsual,
                  options.all_namespaces);
  std::vector<const Json*> gangs;
  for (const Json& gang : (*list)["items"]) gangs.push_back(&gang);
  if (gangs.empty()) {
    Warn(ns.empty() ? "there are no gangs" : fmt::format("there are no gangs in namespace {}", ns));
    if (!options.watch) return 0;
  }
  if (const int status = PrintText(target, table.Text(gangs)); status != 0) return status;
  if (!options.watch) return 0;
  return FollowGangs(transport, ns, *list,
                     [&](const Json& gang) { return PrintText(target, table.Row(gang)); });
}

// Returns the admin API's part; nullopt where nobody says where the API is. Warns of an API that
// does not answer.
std::optional<Json> ServiceOf(const Why& why, const std::string& ns,
                              const FleetCommandOptions& options, const CommandTarget& target) {
  auto access = AdminAccess(options.admin, target);
  if (!access.ok()) return std::nullopt;
  const auto admin = kube::HttpTransport::Create(*std::move(access), {}, Warn);
  const Json& named = why.gang != nullptr ? *why.gang : *why.pod;
  const absl::StatusOr<Json> service =
      admin.ok() ? ReadService(**admin, ns, std::string(kube::NameOf(named))) : admin.status();
  if (service.ok()) return *service;
  if (!absl::IsNotFound(service.status())) {
    Warn(fmt::format("queue and promises are not shown: {}", Message(service.status())));
  }
  return std::nullopt;
}

int RunWhy(kube::Transport& transport, const FleetCommandOptions& options,
           const CommandTarget& target) {
  const absl::StatusOr<std::string> ns = NamespaceOf(target);
  if (!ns.ok()) return Fail(ns.status());
  const absl::StatusOr<Why> why = ReadWhy(transport, *ns, options.name);
  if (!why.ok()) return Fail(why.status());
  const std::optional<Json> service = ServiceOf(*why, *ns, options, target);
  if (options.output.empty()) {
    return PrintText(target, WhyText(*why) + (service ? ServiceText(*service) : ""));
  }
  Json shown = WhyJson(*why);
  if (service) shown["service"] = ServiceJson(*service);
  return PrintValue(shown, options.output);
}

int RunVersion(const FleetCommandOptions& options, const CommandTarget& target) {
  Json versions = {{"clientVersion", kVersion}};
  absl::Status failed;
  if (!options.client) {
    const auto transport = Connect(target);
    const absl::StatusOr<kube::Response> answer =
        transport.ok() ? (*transport)->Send({.target = "/version"}) : transport.status();
    failed = kube::StatusOf(answer);
    if (failed.ok()) {
      versions["serverVersion"] = kube::StringAt(*answer->Json(), {"gitVersion"});
    }
  }
  std::string text = fmt::format("Client: {}\n", kVersion);
  if (versions.contains("serverVersion")) {
    text += fmt::format("Kubernetes: {}\n", versions["serverVersion"].get<std::string>());
  }
  const int status =
      options.output.empty() ? PrintText(target, text) : PrintValue(versions, options.output);
  return failed.ok() ? status : Fail(failed);
}

config::Command TopologyCommand(FleetCommandOptions& options) {
  return {.name = "topology",
          .summary = "Shows nodes and chips: free, held, broken; or draws the torus.",
          .declare =
              [&options](config::Spec& spec) {
                spec.Bool("all", &options.all, "draw every UltraServer and instance");
                DeclareOutput(spec, &options.output, {"", "json", "yaml"}, kValueForms);
                spec.Word("NAME", &options.name,
                          "draw this UltraServer, or the one of this instance or node",
                          Need::kOptional);
              },
          .examples =
              "kubectl tahoma topology           # counts by network layer\n"
              "kubectl tahoma topology us-0      # one UltraServer, chip by chip\n"
              "kubectl tahoma topology --all -o json"};
}

config::Command GangsCommand(FleetCommandOptions& options) {
  return {.name = "gangs",
          .summary = "Lists gangs, and where they are.",
          .declare =
              [&options](config::Spec& spec) {
                spec.Bool("allNamespaces", &options.all_namespaces, "of all namespaces");
                spec.Alias("-A", "allNamespaces");
                DeclareOutput(spec, &options.output, {"", "wide", "json", "yaml"},
                              "more columns, or a List for programs; empty: a table");
                spec.Bool("watch", &options.watch, "then a row for each change, until interrupted");
                spec.Alias("-w", "watch");
              },
          .examples =
              "kubectl tahoma gangs -n team\n"
              "kubectl tahoma gangs -A -o wide\n"
              "kubectl tahoma gangs -w"};
}

}  // namespace

std::vector<config::Command> FleetCommands(FleetCommandOptions& options) {
  config::Command why = {
      .name = "why",
      .summary = "Says why a gang or a pod waits and for whom, or where it is.",
      .declare =
          [&options](config::Spec& spec) {
            DeclareOutput(spec, &options.output, {"", "json", "yaml"}, kValueForms);
            spec.Word("NAME", &options.name, "a gang, or else a pod", Need::kRequired);
            DeclareAdmin(spec, options.admin);
          },
      .examples =
          "kubectl tahoma why train\n"
          "kubectl tahoma why train-0 -n team -o json"};
  config::Command version = {
      .name = "version",
      .summary = "Shows the versions of this program and of the API server.",
      .declare =
          [&options](config::Spec& spec) {
            spec.Bool("client", &options.client, "of this program only; no server is asked");
            DeclareOutput(spec, &options.output, {"", "json", "yaml"}, kValueForms);
          },
      .examples = "kubectl tahoma version --client"};
  return {TopologyCommand(options), GangsCommand(options), std::move(why), std::move(version)};
}

int RunFleetCommand(std::string_view command, const FleetCommandOptions& options,
                    const CommandTarget& target) {
  if (command == "version") return RunVersion(options, target);
  if (options.all && !options.name.empty()) {
    Warn("topology takes a name or --all, not both");
    return 2;
  }
  const auto transport = Connect(target);
  if (!transport.ok()) return Fail(transport.status());
  if (command == "gangs") return RunGangs(**transport, options, target);
  if (command == "why") return RunWhy(**transport, options, target);
  return RunTopology(**transport, options, target);
}

std::vector<std::string> ValuesOf(const config::Commands::Completion& wanted,
                                  const CommandTarget& target) {
  const auto transport = Connect(target);
  const absl::StatusOr<std::string> ns = NamespaceOf(target);
  if (!transport.ok() || !ns.ok()) return {};
  std::vector<std::string> names;
  const auto add = [&](const kube::Resource& resource, const std::string& of) {
    ReadAll(**transport, resource,
            [&](const Json& object) {
              names.emplace_back(kube::StringAt(object, {"metadata", "name"}));
            },
            {.ns = of})
        .IgnoreError();
  };
  if (wanted.wanted == "namespace") add(kNamespaces, "");
  if (wanted.wanted == "NAME" && wanted.command == "why") {
    add(kGangs, *ns);
    add(kube::kPods, *ns);
  }
  if (wanted.wanted == "NAME" && wanted.command == "queue") add(kQueues, "");
  if (wanted.wanted == "NAME" && wanted.command == "topology") add(kube::kNodes, "");
  return names;
}

}  // namespace tahoma::controller
