// kubectl-tahoma: a plugin of kubectl that shows what kubectl cannot draw, and buys Capacity
// Blocks. In PATH it is called as `kubectl tahoma`. Under the name kubectl_complete-tahoma it
// completes that command's line, as kubectl asks its plugins to.

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/ctl/app/ask_commands.h"
#include "controller/ctl/app/block_commands.h"
#include "controller/ctl/app/completion.h"
#include "controller/ctl/app/fleet_commands.h"
#include "controller/ctl/app/move_commands.h"
#include "controller/ctl/app/queue_commands.h"
#include "controller/ctl/app/target.h"
#include "lib/base/status.h"
#include "lib/config/commands.h"

namespace tahoma::controller {
namespace {

constexpr int kWrongLine = 2;

// A file descriptor that is closed would be given to the next socket, and output would go there.
bool HasOutput() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    if (fd == STDOUT_FILENO) return false;
    if (open("/dev/null", O_RDWR) != fd) return false;
  }
  return true;
}

int Main(const std::string& program, std::vector<std::string> arguments) {
  if (!HasOutput()) return Fail(FailedPrecondition("stdout is closed"));
  CommandTarget target;
  FleetCommandOptions fleet;
  BlockCommandOptions blocks;
  QueueCommandOptions queues;
  MoveCommandOptions moves;
  AskCommandOptions asks;
  CompletionOptions completion;
  std::vector<config::Command> commands = FleetCommands(fleet);
  for (config::Command& command : QueueCommands(queues)) commands.push_back(std::move(command));
  for (config::Command& command : MoveCommands(moves)) commands.push_back(std::move(command));
  for (config::Command& command : AskCommands(asks)) commands.push_back(std::move(command));
  for (config::Command& command : BlockCommands(blocks)) commands.push_back(std::move(command));
  commands.push_back(CompletionCommand(completion));
  const config::Commands line(
      {.program = "kubectl tahoma",
       .summary = "Shows the torus, why gangs wait, and sells Capacity Blocks."},
      [&](config::Spec& spec) { DeclareTarget(spec, target); }, std::move(commands));

  if (program.ends_with("kubectl_complete-tahoma")) return CompleteLine(line, target, arguments);
  if (!arguments.empty() && arguments.front() == kCompleteCommand) {
    arguments.erase(arguments.begin());
    return CompleteLine(line, target, arguments);
  }
  const auto parsed = line.Parse(arguments);
  if (!parsed.ok()) {
    Warn(std::string(Message(parsed.status())));
    return kWrongLine;
  }
  if (parsed->command == nullptr) {
    const absl::Status printed = Print(parsed->text);
    return printed.ok() ? 0 : Fail(printed);
  }
  const std::string& name = parsed->command->name;
  if (name == kCompletion) return PrintCompletion(completion);
  for (const config::Command& command : FleetCommands(fleet)) {
    if (command.name == name) return RunFleetCommand(name, fleet, target);
  }
  for (const config::Command& command : QueueCommands(queues)) {
    if (command.name == name) return RunQueueCommand(name, queues, target);
  }
  if (name == kDefragmentCommand) return RunDefragment(moves, target);
  for (const config::Command& command : AskCommands(asks)) {
    if (command.name == name) return RunAskCommand(name, asks, target);
  }
  return RunBlockCommand(name, blocks, target);
}

}  // namespace
}  // namespace tahoma::controller

int main(int argc, char** argv) {
  return tahoma::controller::Main(argc > 0 ? argv[0] : "",
                                  std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
