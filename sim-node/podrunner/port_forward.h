// A session that joins a client to ports of a pod: kubectl's SPDY streams within a WebSocket
// (SPDY/3.1+portforward.k8s.io), and the channels of v4.channel.k8s.io, which other clients use: of
// the i-th port channel 2i is the data and 2i+1 the errors, each begun by the port, low byte first.
//
// Source: k8s.io/kubernetes pkg/kubelet, k8s.io/cri-streaming pkg/streaming/portforward.
//
// The processes of a pod have the machine's network here, so a port is a socket that listens on
// this machine for the pod's user; ports of other users are not reached. A session has at most 128
// connections, and holds at most 1 MiB for programs that do not read.
//
// Thread safety: Step from one thread.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file_descriptor.h"
#include "lib/rest/upgrade.h"
#include "lib/rest/websocket.h"
#include "sim-node/podrunner/spdy.h"

namespace tahoma::sim {

inline constexpr std::string_view kSpdyPortForward = "SPDY/3.1+portforward.k8s.io";

class PortForward {
 public:
  struct Options {
    std::string pod{};                   // for messages
    uid_t user = 0;                      // of the pod's processes
    bool spdy = true;                    // else channels
    std::vector<std::uint16_t> ports{};  // of channels
  };

  explicit PortForward(Options options);
  PortForward(const PortForward&) = delete;
  PortForward& operator=(const PortForward&) = delete;

  // As rest::UpgradeStep.
  bool Step(rest::Upgraded& peer, std::chrono::milliseconds wait);

 private:
  // A connection to a port, with the client's streams for it.
  struct Joined {
    std::optional<std::uint32_t> data{};
    std::optional<std::uint32_t> error{};
    std::uint16_t port = 0;
    FileDescriptor socket{-1};
    std::string to_pod{};
    bool client_ended = false;
    bool told_end = false;  // the pod has been told that the client has ended
    bool over = false;
  };

  void Receive(std::string_view piece, bool begins);
  void OnStream(std::uint32_t stream, const std::map<std::string, std::string>& headers);
  void OnData(std::uint32_t stream, std::string_view bytes, bool end);
  void OnReset(std::uint32_t stream);
  void OpenChannels();
  void Open(Joined& joined);
  void Fail(Joined& joined, std::string_view why);
  void Move(Joined& joined, bool takes_out);
  void Write(Joined& joined);
  void Emit(std::uint32_t stream, std::string_view bytes, bool end);
  std::size_t held() const;

  const Options options_;
  SpdyFrames frames_;
  rest::WebSocket socket_;
  bool begun_ = false;
  std::uint8_t channel_ = 0;
  std::map<std::string, Joined> joined_;  // by the client's number of the connection
};

}  // namespace tahoma::sim
