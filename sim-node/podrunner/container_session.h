// One session of a client with a program: exec, whose program is the session's own, and attach,
// whose program is the container's first. Kubernetes' protocols v5.channel.k8s.io and
// v4.channel.k8s.io: the first byte of a message names the stream, 0 stdin, 1 stdout, 2 stderr, 3
// the v1 Status at the end, 4 the terminal's size as {"Width":80,"Height":24}, and 255 (v5 only)
// the end of the stream that the second byte names. Source: k8s.io/apimachinery
// pkg/util/remotecommand/constants.go.
//
// A session holds at most 64 KiB of stdin and 128 KiB of output: a client that does not read makes
// the program wait, and a program that does not read the client.
//
// Thread safety: Step from one thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/rest/upgrade.h"
#include "lib/rest/websocket.h"
#include "sim-node/podrunner/spawner.h"

namespace tahoma::sim {

// Returns the v1 Status for the end of a program: success, or NonZeroExitCode with the code.
std::string ExitStatus(const Exit& exit);
// Returns the v1 Status for a program that could not be started.
std::string FailedStatus(std::string_view message);

class ContainerSession {
 public:
  struct Options {
    bool in = false;
    bool out = false;
    bool err = false;
    bool tty = false;
    std::function<void()> on_end_in = {};  // called when the session ends its stdin, or itself
  };

  ContainerSession(Options options, std::unique_ptr<Process> program);
  ContainerSession(Options options, std::shared_ptr<Attachment> attachment);
  // Says why there is no program, as if one had ended.
  explicit ContainerSession(std::string status);
  ~ContainerSession();
  ContainerSession(const ContainerSession&) = delete;
  ContainerSession& operator=(const ContainerSession&) = delete;

  // As rest::UpgradeStep.
  bool Step(rest::Upgraded& peer, std::chrono::milliseconds wait);

 private:
  void Receive(std::string_view piece, bool begins);
  void ReadSize(std::string_view piece);
  void EndIn();
  int in() const;
  void WriteIn();
  void ReadOut();
  void ReadPipe(FileDescriptor& pipe, char channel);
  void TakeAttached();
  void Finish(const std::string& status);

  const Options options_;
  const std::unique_ptr<Process> program_;
  const std::shared_ptr<Attachment> attachment_;
  std::string status_;  // to be told
  rest::WebSocket socket_;
  bool greeted_ = false;
  std::uint8_t channel_ = 0;  // of the message that is being received
  std::string pending_in_;
  bool in_ended_ = false;  // by the client; the pipe closes after pending_in_
  std::string size_;
  bool at_rest_ = false;  // the last look at the program's output found none
};

}  // namespace tahoma::sim
