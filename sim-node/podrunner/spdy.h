// SPDY/3.1 frames, as far as kubectl's port-forward needs them: streams that the client opens,
// their data and ends, resets and pings. No stream has a window, as with the client's own library.
//
// Source: the SPDY protocol, drafts 3 and 3.1 (chromium.org/spdy); github.com/moby/spdystream is
// the client's side.
//
// Scope: bytes to frames and back. port_forward.h joins streams to ports.
//
// Thread safety: one thread at a time.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace tahoma::sim {

class SpdyFrames {
 public:
  struct Handlers {
    // Header names are in lower case.
    std::function<void(std::uint32_t stream, const std::map<std::string, std::string>& headers)>
        opened;
    std::function<void(std::uint32_t stream, std::string_view bytes, bool end)> data;
    std::function<void(std::uint32_t stream)> reset;
  };

  explicit SpdyFrames(Handlers handlers);
  ~SpdyFrames();
  SpdyFrames(const SpdyFrames&) = delete;
  SpdyFrames& operator=(const SpdyFrames&) = delete;

  // Calls a handler for each whole frame; answers pings. After an error, kInvalidArgument, the
  // connection cannot go on: a frame that is too long or broken.
  absl::Status Receive(std::string_view bytes);

  void Reply(std::uint32_t stream);
  void Data(std::uint32_t stream, std::string_view bytes, bool end);
  // `code` 1: broken protocol; 2: not of this kind; 3: refused; 5: no longer wanted.
  void Reset(std::uint32_t stream, std::uint32_t code);
  // Returns the frames to send since the last call.
  std::string TakeOut();

 private:
  struct Compression;

  absl::Status ReceiveControl(std::uint16_t type, std::string_view payload);
  absl::Status OpenStream(std::string_view payload);

  const Handlers handlers_;
  const std::unique_ptr<Compression> compression_;
  std::string in_;
  std::string out_;
};

}  // namespace tahoma::sim
