#include "lib/rest/websocket.h"

#include <absl/strings/escaping.h>
#include <openssl/sha.h>
#include <wslay/wslay.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::rest {
namespace {

// RFC 6455, 1.3.
constexpr std::string_view kHandshakeGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr auto kPingEvery = std::chrono::seconds(30);
// A program may do something else for long between two reads, and answers no ping meanwhile.
constexpr auto kSilentMost = std::chrono::minutes(10);
constexpr auto kCloseWait = std::chrono::seconds(2);
// Answers to pings wait for a peer that does not read; beyond these the peer is not read, either.
constexpr std::size_t kQueuedBytesMost = 256 << 10;
constexpr std::size_t kQueuedMessagesMost = 1024;
constexpr std::uint64_t kFrameBytesMost = std::uint64_t{1} << 40U;

// Calls `each` with the elements of a list in all fields of that name.
template <typename Each>
void ForEachElement(const Request& request, std::string_view field, const Each& each) {
  for (const auto& [name, list] : request.headers) {
    if (!EqualsIgnoringCase(name, field)) continue;
    for (std::string_view rest = list; !rest.empty();) {
      const std::string_view element = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), element.size() + 1));
      each(Trimmed(element));
    }
  }
}

bool HasElement(const Request& request, std::string_view field, std::string_view wanted) {
  bool found = false;
  ForEachElement(request, field, [&](std::string_view element) {
    found = found || EqualsIgnoringCase(element, wanted);
  });
  return found;
}

}  // namespace

bool AsksUpgrade(const Request& request, std::string_view protocol) {
  return HasElement(request, "Connection", "upgrade") && HasElement(request, "Upgrade", protocol);
}

absl::StatusOr<std::string> WebSocketProtocol(const Request& request,
                                              const std::vector<std::string>& known) {
  constexpr std::size_t kKeyBytes = 16;
  if (request.method != "GET" || !AsksUpgrade(request, "websocket")) {
    return InvalidArgument("Upgrade request required: this is served by WebSocket alone");
  }
  if (request.header("Sec-WebSocket-Version") != "13") {
    return InvalidArgument("Sec-WebSocket-Version must be 13");
  }
  const std::string_view key = request.header("Sec-WebSocket-Key");
  std::string bytes;
  if (!absl::Base64Unescape({key.data(), key.size()}, &bytes) || bytes.size() != kKeyBytes) {
    return InvalidArgument("Sec-WebSocket-Key must be 16 bytes in base64");
  }
  if (request.header("Sec-WebSocket-Protocol").empty()) return std::string();
  for (const std::string& protocol : known) {
    bool offered = false;
    ForEachElement(request, "Sec-WebSocket-Protocol",
                   [&](std::string_view element) { offered = offered || element == protocol; });
    if (offered) return protocol;
  }
  return InvalidArgument("no protocol of Sec-WebSocket-Protocol is known here; known are {}",
                         fmt::join(known, ", "));
}

Response AcceptWebSocket(const Request& request, const std::string& protocol) {
  std::string text(request.header("Sec-WebSocket-Key"));
  text += kHandshakeGuid;
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  Response answer;
  answer.status = 101;
  answer.headers = {
      {"Connection", "Upgrade"},
      {"Upgrade", "websocket"},
      {"Sec-WebSocket-Accept",
       absl::Base64Escape({reinterpret_cast<const char*>(digest.data()), digest.size()})}};
  if (!protocol.empty()) answer.headers.emplace_back("Sec-WebSocket-Protocol", protocol);
  return answer;
}

struct WebSocket::Callbacks {
  static WebSocket& Of(void* user) { return *static_cast<WebSocket*>(user); }

  static ssize_t Receive(wslay_event_context_ptr context, std::uint8_t* to, std::size_t size, int,
                         void* user) {
    WebSocket& self = Of(user);
    if (self.incoming_.empty()) {
      wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
      return -1;
    }
    const std::size_t taken = std::min(size, self.incoming_.size());
    std::copy_n(self.incoming_.begin(), taken, to);
    self.incoming_.erase(0, taken);
    return static_cast<ssize_t>(taken);
  }

  static ssize_t Transmit(wslay_event_context_ptr context, const std::uint8_t* bytes,
                          std::size_t size, int, void* user) {
    WebSocket& self = Of(user);
    const auto sent = self.peer_->Write({reinterpret_cast<const char*>(bytes), size});
    if (sent && *sent > 0) return static_cast<ssize_t>(*sent);
    self.gone_ = !sent;
    wslay_event_set_error(context, sent ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
  }

  static void FrameBegins(wslay_event_context_ptr, const wslay_event_on_frame_recv_start_arg* frame,
                          void* user) {
    WebSocket& self = Of(user);
    self.is_data_ = wslay_is_ctrl_frame(frame->opcode) == 0;
    if (self.is_data_ && frame->opcode != WSLAY_CONTINUATION_FRAME) self.begins_ = true;
  }

  static void FramePiece(wslay_event_context_ptr, const wslay_event_on_frame_recv_chunk_arg* piece,
                         void* user) {
    WebSocket& self = Of(user);
    if (!self.is_data_ || piece->data_length == 0 || self.closing_) return;
    self.sink_({reinterpret_cast<const char*>(piece->data), piece->data_length},
               std::exchange(self.begins_, false));
  }
};

void WebSocket::Free::operator()(wslay_event_context* context) const {
  wslay_event_context_free(context);
}

WebSocket::WebSocket(Sink sink) : sink_(std::move(sink)) {
  static constexpr wslay_event_callbacks kCallbacks = {
      .recv_callback = Callbacks::Receive,
      .send_callback = Callbacks::Transmit,
      .genmask_callback = nullptr,
      .on_frame_recv_start_callback = Callbacks::FrameBegins,
      .on_frame_recv_chunk_callback = Callbacks::FramePiece,
      .on_frame_recv_end_callback = nullptr,
      .on_msg_recv_callback = nullptr};
  wslay_event_context_ptr context = nullptr;
  TAHOMA_CHECK(wslay_event_context_server_init(&context, &kCallbacks, this) == 0);
  context_.reset(context);
  wslay_event_config_set_no_buffering(context, 1);
  wslay_event_config_set_max_recv_msg_length(context, kFrameBytesMost);
}

WebSocket::~WebSocket() = default;

bool WebSocket::MayRead() const {
  return queued() < kQueuedBytesMost &&
         wslay_event_get_queued_msg_count(context_.get()) < kQueuedMessagesMost;
}

bool WebSocket::Advance(Upgraded& peer, bool read, MonotonicTime now) {
  if (heard_ == MonotonicTime()) heard_ = pinged_ = now;
  peer_ = &peer;
  // A peer whose answer to our close frame is awaited may send whatever was under way.
  if ((read || closing_) && MayRead()) {
    if (!peer.Read(incoming_)) gone_ = true;
    if (!incoming_.empty()) heard_ = pinged_ = now;
    // An error has queued a close frame, or is the lack of memory.
    if (wslay_event_recv(context_.get()) != 0) gone_ = true;
  }
  if (!Transmit()) gone_ = true;
  peer_ = nullptr;
  return !gone_ && Keep(now);
}

// False when the conversation has ended.
bool WebSocket::Keep(MonotonicTime now) {
  if (wslay_event_get_close_received(context_.get()) != 0) closing_ = true;
  if (wslay_event_want_write(context_.get()) == 0 && wslay_event_want_read(context_.get()) == 0) {
    return false;
  }
  if (closing_) {
    // Messages that wait go first, as slowly as the peer reads.
    const bool sending = queued() > 0 && now - heard_ < kSilentMost;
    if (sending || closed_ == MonotonicTime()) closed_ = now;
    return now - closed_ < kCloseWait;
  }
  if (now - pinged_ >= kPingEvery) {
    pinged_ = now;
    const wslay_event_msg ping{.opcode = WSLAY_PING, .msg = nullptr, .msg_length = 0};
    wslay_event_queue_msg(context_.get(), &ping);
  }
  return now - heard_ < kSilentMost;
}

short WebSocket::events(bool read) const {
  short events = 0;
  if ((read || closing_) && MayRead()) events |= POLLIN;
  if (wslay_event_want_write(context_.get()) != 0 || close_code_ != 0) events |= POLLOUT;
  return events;
}

void WebSocket::Send(std::string_view head, std::string_view rest) {
  if (closing_) return;
  std::string text(head);
  text += rest;
  const wslay_event_msg message{.opcode = WSLAY_BINARY_FRAME,
                                .msg = reinterpret_cast<const std::uint8_t*>(text.data()),
                                .msg_length = text.size()};
  wslay_event_queue_msg(context_.get(), &message);
}

void WebSocket::Close(std::uint16_t code, std::string_view reason) {
  closing_ = true;
  close_code_ = code;
  close_reason_ = reason;
}

// wslay sends a close frame before the messages that wait.
bool WebSocket::Transmit() {
  const auto send = [this] {
    return wslay_event_want_write(context_.get()) == 0 || wslay_event_send(context_.get()) == 0;
  };
  if (!send()) return false;
  if (close_code_ == 0 || wslay_event_want_write(context_.get()) != 0) return true;
  wslay_event_queue_close(context_.get(), std::exchange(close_code_, 0),
                          reinterpret_cast<const std::uint8_t*>(close_reason_.data()),
                          close_reason_.size());
  return send();
}

std::size_t WebSocket::queued() const { return wslay_event_get_queued_msg_length(context_.get()); }

}  // namespace tahoma::rest
