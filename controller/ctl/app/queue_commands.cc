#include "controller/ctl/app/queue_commands.h"

#include <utility>

#include "controller/ctl/queue_tree.h"
#include "lib/base/json.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

int RunQueues(const QueueCommandOptions& options, const CommandTarget& target) {
  const auto transport = Connect(target);
  if (!transport.ok()) return Fail(transport.status());
  const absl::StatusOr<Json> list = ListQueues(**transport);
  if (!list.ok()) return Fail(list.status());
  if (options.output == "json" || options.output == "yaml") {
    return PrintValue(*list, options.output);
  }
  if (kube::ListAt(*list, {"items"}).empty()) {
    Warn("there are no Queues: all gangs wait in one order");
    return 0;
  }
  return PrintText(target, QueueTreeText(*list, options.output == "wide" ? QueueColumns::kWide
                                                                         : QueueColumns::kUsual));
}

int RunQueue(const QueueCommandOptions& options, const CommandTarget& target) {
  auto access = AdminAccess(options.admin, target);
  if (!access.ok()) return Fail(access.status());
  const auto admin = kube::HttpTransport::Create(*std::move(access), {}, Warn);
  if (!admin.ok()) return Fail(admin.status());
  const absl::StatusOr<QueueRead> read = ReadQueue(**admin, options.name);
  if (!read.ok()) return Fail(read.status());
  return options.output.empty() ? PrintText(target, QueueText(*read))
                                : PrintValue(QueueJson(*read), options.output);
}

void DeclareQueueOutput(config::Spec& spec, QueueCommandOptions& options,
                        std::vector<std::string> forms) {
  spec.String("output", &options.output, "another form; empty: text", std::move(forms));
  spec.Alias("-o", "output");
}

}  // namespace

std::vector<config::Command> QueueCommands(QueueCommandOptions& options) {
  return {{.name = "queues",
           .summary = "Shows the queues as a tree: shares, chips, gangs, who is next.",
           .declare =
               [&options](config::Spec& spec) {
                 DeclareQueueOutput(spec, options, {"", "wide", "json", "yaml"});
               },
           .examples = "kubectl tahoma queues\n"
                       "kubectl tahoma queues -o wide"},
          {.name = "queue",
           .summary = "Shows a queue, and the gangs that wait there in the order of service.",
           .declare =
               [&options](config::Spec& spec) {
                 spec.Word("NAME", &options.name, "the queue", config::Spec::Need::kRequired);
                 DeclareQueueOutput(spec, options, {"", "json", "yaml"});
                 DeclareAdmin(spec, options.admin);
               },
           .examples = "kubectl tahoma queue research\n"
                       "kubectl tahoma queue research -o json"}};
}

int RunQueueCommand(std::string_view command, const QueueCommandOptions& options,
                    const CommandTarget& target) {
  return command == "queue" ? RunQueue(options, target) : RunQueues(options, target);
}

}  // namespace tahoma::controller
