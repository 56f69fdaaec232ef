#include "controller/ctl/app/ask_commands.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "controller/ctl/promise_list.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"

namespace tahoma::controller {
namespace {

constexpr int kWrongValue = 2;
constexpr int kDoesNotFit = 3;

// The admin API, and the namespace that the kubeconfig or the flags name.
struct Reached {
  std::unique_ptr<kube::HttpTransport> admin;
  std::string ns;
};

absl::StatusOr<Reached> Reach(const AdminFlags& flags, const CommandTarget& target) {
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access, AdminAccess(flags, target));
  Reached reached;
  reached.ns = target.ns.empty() ? access.default_namespace : target.ns;
  TAHOMA_ASSIGN_OR_RETURN(reached.admin, kube::HttpTransport::Create(std::move(access), {}, Warn));
  return reached;
}

int RunFit(const AskCommandOptions& options, const CommandTarget& target) {
  const absl::StatusOr<Reached> reached = Reach(options.admin, target);
  if (!reached.ok()) return Fail(reached.status());
  const absl::StatusOr<Json> answer = AskFit(*reached->admin, reached->ns, options.asked);
  if (absl::IsInvalidArgument(answer.status())) {
    Fail(answer.status());
    return kWrongValue;
  }
  if (!answer.ok()) return Fail(answer.status());
  const int printed = options.output.empty() ? PrintText(target, FitText(*answer))
                                             : PrintValue(*answer, options.output);
  if (printed != 0) return printed;
  return Fits(*answer) ? 0 : kDoesNotFit;
}

int RunPlan(const AskCommandOptions& options, const CommandTarget& target) {
  const absl::StatusOr<Reached> reached = Reach(options.admin, target);
  if (!reached.ok()) return Fail(reached.status());
  const absl::StatusOr<Json> plan = ReadPromises(*reached->admin, target.ns);
  if (!plan.ok()) return Fail(plan.status());
  return options.output.empty() ? PrintText(target, PlanText(*plan))
                                : PrintValue(*plan, options.output);
}

void DeclareForm(config::Spec& spec, AskCommandOptions& options) {
  spec.String("output", &options.output, "for programs; empty: text", {"", "json", "yaml"});
  spec.Alias("-o", "output");
  DeclareAdmin(spec, options.admin);
}

void DeclareFit(config::Spec& spec, AskCommandOptions& options) {
  constexpr std::int64_t kMost = 65536;
  constexpr std::int64_t kPriorityMost = 2'000'000'000;
  FitAsked& asked = options.asked;
  spec.Word("SHAPE", &asked.shape, "the box of a slice, such as 4x4x2; or --chips says its size",
            config::Spec::Need::kOptional);
  spec.Int("chips", &asked.chips, {.min = 0, .max = kMost}, "chips of a slice, instead of a shape");
  spec.Int("ultraServers", &asked.ultra_servers, {.min = 0, .max = kMost / 64},
           "or whole UltraServers of a slice");
  spec.Int("slices", &asked.slices, {.min = 0, .max = 1024}, "equal pieces; 0: one");
  spec.Int("members", &asked.members, {.min = 0, .max = 4096},
           "pods; 0: as few as can hold the chips");
  spec.String("maxRuntime", &asked.max_runtime,
              "such as 8h; empty: as the queue says, or for ever");
  spec.String("queue", &asked.queue, "the queue; empty: that of the namespace");
  spec.String("instanceType", &asked.instance_type, "of the nodes; empty: any");
  spec.Int("priority", &asked.priority, {.min = -kPriorityMost, .max = kPriorityMost},
           "the gang's priority");
  spec.Bool("preemptible", &asked.preemptible, "the gang may be ended for others");
  spec.Bool("moves", &asked.moves, "look, too, for gangs that would have to move");
  spec.String("capacityBlock", &asked.block, "the CapacityBlock in which it would run");
  DeclareForm(spec, options);
}

}  // namespace

std::vector<config::Command> AskCommands(AskCommandOptions& options) {
  config::Command fit = {
      .name = "fit",
      .summary = "Says where a gang would go, when, who would end, and the cheapest change.",
      .declare = [&options](config::Spec& spec) { DeclareFit(spec, options); },
      .examples =
          "kubectl tahoma fit 4x4x4 --max-runtime 8h\n"
          "kubectl tahoma fit --chips 16 --queue research --priority 10 -o json",
      .exits = {{kDoesNotFit, "the gang does not fit now: it says why, and what would help"}}};
  config::Command plan = {
      .name = "plan",
      .summary =
          "Shows what is promised: who starts when and where, and who waits without a promise.",
      .declare = [&options](config::Spec& spec) { DeclareForm(spec, options); },
      .examples =
          "kubectl tahoma plan\n"
          "kubectl tahoma plan -n team -o json"};
  return {std::move(fit), std::move(plan)};
}

int RunAskCommand(std::string_view command, const AskCommandOptions& options,
                  const CommandTarget& target) {
  return command == "fit" ? RunFit(options, target) : RunPlan(options, target);
}

}  // namespace tahoma::controller
