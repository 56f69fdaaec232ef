#include "controller/ctl/app/move_commands.h"

#include <fmt/format.h>

#include <utility>

#include "controller/core/facts/defragmentation.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

int ShowMoves(const MoveCommandOptions& options, const CommandTarget& target) {
  const auto transport = Connect(target);
  if (!transport.ok()) return Fail(transport.status());
  const absl::StatusOr<Json> list = ListDefragmentations(**transport);
  if (!list.ok()) return Fail(list.status());
  if (!options.output.empty()) return PrintValue(*list, options.output);
  if (kube::ListAt(*list, {"items"}).empty()) {
    Warn("there are no Defragmentations; --shape, --ultra-servers or --for-gang asks for a place");
    return 0;
  }
  return PrintText(target, DefragmentationsText(*list));
}

int PlanOnly(const MoveCommandOptions& options, const Json& spec, const CommandTarget& target) {
  auto access = AdminAccess(options.admin, target);
  if (!access.ok()) return Fail(access.status());
  const auto admin = kube::HttpTransport::Create(*std::move(access), {}, Warn);
  if (!admin.ok()) return Fail(admin.status());
  const auto plan = PlanDefragmentation(**admin, spec);
  if (!plan.ok()) return Fail(plan.status());
  return options.output.empty() ? PrintText(target, MovePlanText(**plan))
                                : PrintValue(**plan, options.output);
}

int ApplyPlan(const MoveCommandOptions& options, Json spec, const CommandTarget& target) {
  const auto transport = Connect(target);
  if (!transport.ok()) return Fail(transport.status());
  if (options.wish.per_hour != 0) spec["movesPerHour"] = options.wish.per_hour;
  const auto name = ApplyDefragmentation(**transport, std::move(spec));
  if (!name.ok()) return Fail(name.status());
  return PrintText(target, fmt::format("{} moves gangs: kubectl tahoma defragment shows how far "
                                       "they are, and --abort {} ends it\n",
                                       *name, *name));
}

int AbortMoves(const MoveCommandOptions& options, const CommandTarget& target) {
  const auto transport = Connect(target);
  if (!transport.ok()) return Fail(transport.status());
  const absl::Status aborted = AbortDefragmentation(**transport, options.abort);
  if (!aborted.ok()) return Fail(aborted);
  return PrintText(target, fmt::format("{} begins no more moves\n", options.abort));
}

}  // namespace

std::vector<config::Command> MoveCommands(MoveCommandOptions& options) {
  using Wish = DefragmentationSpec;
  return {{.name = kDefragmentCommand,
           .summary = "Shows which gangs would move for a place, and moves them.",
           .declare =
               [&options](config::Spec& spec) {
                 DefragmentWish& wish = options.wish;
                 spec.String("shape", &wish.shape, "a place for this box, such as 4x4x4");
                 spec.Int("slices", &wish.slices, {.min = 0, .max = Wish::kSlicesMost},
                          "so many such boxes; 0: one");
                 spec.Int("ultra-servers", &wish.ultra_servers,
                          {.min = 0, .max = Wish::kSlicesMost},
                          "or so many more whole UltraServers that are free");
                 spec.String("for-gang", &wish.for_gang,
                             "or a place for this gang that waits, NAME or NAMESPACE/NAME");
                 spec.Int("moves", &wish.moves, {.min = 0, .max = Wish::kMovesMost},
                          "the most gangs that move; 0: ten");
                 spec.Int("per-hour", &wish.per_hour, {.min = 0, .max = Wish::kPerHourMost},
                          "the most moves that begin in an hour; 0: six");
                 spec.Bool("apply", &options.apply, "move the gangs; without it nothing moves");
                 spec.String("abort", &options.abort,
                             "begin no more moves of the Defragmentation of that name");
                 spec.String("output", &options.output, "another form; empty: text",
                             {"", "json", "yaml"});
                 spec.Alias("-o", "output");
                 DeclareAdmin(spec, options.admin);
               },
           .examples = "kubectl tahoma defragment --shape 4x4x4\n"
                       "kubectl tahoma defragment --ultra-servers 1 --apply --per-hour 2\n"
                       "kubectl tahoma defragment\n"
                       "kubectl tahoma defragment --abort defragment-x7k2p"}};
}

int RunDefragment(const MoveCommandOptions& options, const CommandTarget& target) {
  if (!options.abort.empty()) return AbortMoves(options, target);
  if (!options.wish.any()) {
    if (!options.apply) return ShowMoves(options, target);
    return Fail(InvalidArgument("--apply needs --shape, --ultra-servers or --for-gang"));
  }
  const Json spec = SpecOfWish(options.wish, target.ns.empty() ? "default" : target.ns);
  return options.apply ? ApplyPlan(options, spec, target) : PlanOnly(options, spec, target);
}

}  // namespace tahoma::controller
