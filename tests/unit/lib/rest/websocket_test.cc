#include "lib/rest/websocket.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::rest {
namespace {

constexpr std::string_view kMask = "\x11\x22\x33\x44";

std::string Masked(std::string_view text) {
  std::string masked(text);
  for (std::size_t i = 0; i < masked.size(); ++i) {
    masked[i] = static_cast<char>(masked[i] ^ kMask[i % kMask.size()]);
  }
  return masked;
}

// A client's frame; `first` has the FIN bit and the opcode.
std::string Frame(unsigned first, std::string_view payload) {
  std::string frame(1, static_cast<char>(first));
  if (payload.size() < 126) {
    frame += static_cast<char>(0x80U | payload.size());
  } else {
    frame += static_cast<char>(0xfeU);
    frame += static_cast<char>(payload.size() >> 8U);
    frame += static_cast<char>(payload.size() & 0xffU);
  }
  return frame + std::string(kMask) + Masked(payload);
}

// A peer whose bytes come in the pieces that a test gives, and that takes `room` bytes.
class ScriptedPeer : public Upgraded {
 public:
  bool Read(std::string& out) override {
    if (pieces.empty()) return !gone;
    out += pieces.front();
    pieces.erase(pieces.begin());
    return true;
  }
  std::optional<std::size_t> Write(std::string_view bytes) override {
    const std::size_t taken = std::min(bytes.size(), room);
    got += bytes.substr(0, taken);
    room -= taken;
    return taken;
  }
  void Wait(short, std::span<pollfd>, std::chrono::milliseconds) const override {}

  std::vector<std::string> pieces;
  std::string got;
  std::size_t room = 1 << 20;
  bool gone = false;
};

class WebSocketTest : public ::testing::Test {
 protected:
  bool Run() {
    bool goes_on = true;
    do {
      goes_on = socket_.Advance(peer_, true, now_);
    } while (goes_on && !peer_.pieces.empty());
    return goes_on;
  }

  MonotonicTime now_ = MonotonicTime() + std::chrono::hours(1);
  ScriptedPeer peer_;
  std::vector<std::string> messages_;
  WebSocket socket_{[this](std::string_view piece, bool begins) {
    if (begins) messages_.emplace_back();
    messages_.back() += piece;
  }};
};

Request Handshake() {
  Request request;
  request.method = "GET";
  request.headers = {{"Connection", "keep-alive, Upgrade"},
                     {"Upgrade", "websocket"},
                     {"Sec-WebSocket-Version", "13"},
                     {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                     {"Sec-WebSocket-Protocol", "b, a"}};
  return request;
}

std::string HeaderOf(const Response& response, std::string_view wanted) {
  for (const auto& [name, value] : response.headers) {
    if (name == wanted) return value;
  }
  return "";
}

// The sample of RFC 6455, 1.3.
TEST_F(WebSocketTest, AHandshakeIsAcceptedAsTheRfcShows) {
  const auto protocol = WebSocketProtocol(Handshake(), {"a", "b"});
  ASSERT_TRUE(protocol.ok());
  EXPECT_EQ(*protocol, "a");
  const Response answer = AcceptWebSocket(Handshake(), *protocol);
  EXPECT_EQ(answer.status, 101);
  EXPECT_EQ(HeaderOf(answer, "Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(HeaderOf(answer, "Sec-WebSocket-Protocol"), "a");
}

TEST_F(WebSocketTest, EachPartOfAHandshakeIsNeeded) {
  for (std::size_t i = 0; i < 4; ++i) {
    Request request = Handshake();
    request.headers.erase(request.headers.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(WebSocketProtocol(request, {"a"}).ok()) << i;
  }
  Request post = Handshake();
  post.method = "POST";
  EXPECT_FALSE(WebSocketProtocol(post, {"a"}).ok());
  EXPECT_FALSE(WebSocketProtocol(Handshake(), {"c"}).ok());
}

RC_GTEST_FIXTURE_PROP(WebSocketTest, MessagesComeWholeInWhateverPiecesAndFragments, ()) {
  const auto sent = *rc::gen::container<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::arbitrary<char>())));
  std::string bytes;
  for (const std::string& message : sent) {
    const std::size_t cut = *rc::gen::inRange<std::size_t>(0, message.size());
    bytes += Frame(0x02, message.substr(0, cut)) + Frame(0x89, "are you there") +
             Frame(0x80, message.substr(cut));
  }
  while (!bytes.empty()) {
    const std::size_t cut = *rc::gen::inRange<std::size_t>(1, bytes.size() + 1);
    peer_.pieces.push_back(bytes.substr(0, cut));
    bytes.erase(0, cut);
  }
  RC_ASSERT(Run());
  RC_ASSERT(messages_ == sent);
}

TEST_F(WebSocketTest, APingIsAnsweredWithItsText) {
  peer_.pieces = {Frame(0x89, "hello")};
  EXPECT_TRUE(Run());
  EXPECT_EQ(peer_.got, std::string("\x8a\x05hello"));
}

TEST_F(WebSocketTest, FramesThatBreakTheProtocolEndTheConversation) {
  const std::vector<std::string> bad = {
      std::string("\x82\x01x"),                                         // no mask
      Frame(0x85, "x"),                                                 // an unknown opcode
      Frame(0xc2, "x"),                                                 // a reserved bit
      Frame(0x80, "x"),                                                 // a continuation of nothing
      Frame(0x09, "x"),                                                 // a ping in fragments
      "\x82\xff" + std::string(8, '\x7f') + std::string(kMask) + "x",   // 2^63 bytes
      "\x89\xfe\x01\x00" + std::string(kMask) + std::string(256, 'x'),  // a long ping
  };
  for (const std::string& frame : bad) {
    ScriptedPeer peer;
    bool got = false;
    WebSocket socket([&](std::string_view, bool) { got = true; });
    peer.pieces = {frame};
    socket.Advance(peer, true, now_);
    socket.Advance(peer, true, now_);
    EXPECT_FALSE(got) << ::testing::PrintToString(frame);
    EXPECT_FALSE(socket.Advance(peer, true, now_ + std::chrono::seconds(3)))
        << ::testing::PrintToString(frame);
  }
}

TEST_F(WebSocketTest, ACloseIsAnsweredAndEndsIt) {
  peer_.pieces = {Frame(0x88, "\x03\xe8")};
  EXPECT_FALSE(Run());
  EXPECT_EQ(peer_.got, std::string("\x88\x02\x03\xe8"));
}

TEST_F(WebSocketTest, OurCloseWaitsForItsAnswerButNotForEver) {
  socket_.Send("a", "bc");
  socket_.Close();
  EXPECT_TRUE(Run());
  EXPECT_EQ(peer_.got, std::string("\x82\x03"
                                   "abc\x88\x02\x03\xe8"));
  EXPECT_TRUE(socket_.Advance(peer_, true, now_ + std::chrono::seconds(1)));
  EXPECT_FALSE(socket_.Advance(peer_, true, now_ + std::chrono::seconds(3)));
}

TEST_F(WebSocketTest, APeerThatIsSilentIsPingedAndThenGivenUp) {
  EXPECT_TRUE(Run());
  EXPECT_TRUE(socket_.Advance(peer_, true, now_ + std::chrono::seconds(31)));
  EXPECT_TRUE(socket_.Advance(peer_, true, now_ + std::chrono::seconds(32)));
  EXPECT_EQ(peer_.got, std::string("\x89\x00", 2));
  EXPECT_FALSE(socket_.Advance(peer_, true, now_ + std::chrono::minutes(11)));
}

TEST_F(WebSocketTest, APeerThatPingsAndDoesNotReadIsReadNoMore) {
  peer_.room = 0;
  for (int i = 0; i < 100; ++i) {
    std::string pings;
    for (int j = 0; j < 100; ++j) pings += Frame(0x89, "");
    peer_.pieces.push_back(pings);
  }
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(socket_.Advance(peer_, true, now_));
  EXPECT_GT(peer_.pieces.size(), 80U);
  EXPECT_EQ(socket_.events(true), POLLOUT);
}

}  // namespace
}  // namespace tahoma::rest
