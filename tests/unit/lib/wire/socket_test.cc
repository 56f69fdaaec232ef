#include "lib/wire/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kSocketWait(5000);

// A folder of its own, gone at the end.
class SocketTest : public testing::Test {
 protected:
  SocketTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "wire-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~SocketTest() override { std::filesystem::remove_all(folder_); }
  std::string UnixAddress(std::string_view name = "s") const {
    return fmt::format("unix:{}/{}", folder_.string(), name);
  }
  std::filesystem::path folder_;
};

struct Pair {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connection> near;
  std::unique_ptr<Connection> far;
};

Pair Connect(std::string_view address) {
  Pair pair;
  pair.listener = *Listener::Open(address);
  pair.near = *Connection::Dial(pair.listener->address().ToString(), kSocketWait);
  pair.far = *pair.listener->Accept(kSocketWait);
  return pair;
}

// Both ends of a socket pair: one to speak the protocol, one raw.
struct RawPair {
  RawPair() {
    int fds[2] = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    connection = std::make_unique<Connection>(fds[0], "the test");
    raw = fds[1];
  }
  ~RawPair() { close(raw); }
  void Write(std::string_view bytes) const {
    EXPECT_EQ(write(raw, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  std::unique_ptr<Connection> connection;
  int raw = -1;
};

TEST(AddressTest, BothKindsAreRead) {
  EXPECT_EQ(ParseAddress("unix:/run/a.sock")->path, "/run/a.sock");
  EXPECT_EQ(ParseAddress("/run/a.sock")->ToString(), "unix:/run/a.sock");
  EXPECT_EQ(ParseAddress("localhost:80")->port, 80);
  EXPECT_EQ(ParseAddress("[::1]:443")->host, "::1");
  for (const char* text : {"unix:/run/a.sock", "localhost:80", "[::1]:443"}) {
    EXPECT_EQ(ParseAddress(text)->ToString(), text);
  }
}

TEST(AddressTest, WrongOnesAreExplained) {
  const auto why = [](std::string text) {
    return std::string(Message(ParseAddress(text).status()));
  };
  EXPECT_EQ(why("localhost"), "address \"localhost\": expected host:port or unix:/path");
  EXPECT_EQ(why("h:65536"), "address \"h:65536\": port \"65536\" is not a number from 0 to 65535");
  EXPECT_EQ(why("::1:443"),
            "address \"::1:443\": an IPv6 address needs brackets, as in [::1]:8001");
  EXPECT_EQ(why(":443"), "address \":443\": expected host:port or unix:/path");
  EXPECT_EQ(why("unix:a"), "address \"unix:a\": expected an absolute path after \"unix:\"");
  EXPECT_TRUE(ParseAddress("unix:/" + std::string(106, 'p')).ok());
  EXPECT_NE(why("unix:/" + std::string(107, 'p'))
                .find("the path has 108 bytes; a unix socket's has at most 107"),
            std::string::npos);
}

TEST_F(SocketTest, FramesGoBothWaysOverUnixAndTcp) {
  for (const std::string& address : {UnixAddress(), std::string("127.0.0.1:0")}) {
    const Pair pair = Connect(address);
    const Frame small = {.header = "{}", .payload = ""};
    Frame large = {.header = R"({"id":1})", .payload = std::string(3'000'000, '\0')};
    for (std::size_t i = 0; i < large.payload.size(); ++i) large.payload[i] = char(i % 251);
    std::thread sender([&] {
      EXPECT_TRUE(pair.near->Send(small, kSocketWait).ok());
      EXPECT_TRUE(pair.near->Send(large, kSocketWait).ok());
    });
    EXPECT_EQ(*pair.far->Receive(kSocketWait), small);
    EXPECT_EQ(*pair.far->Receive(kSocketWait), large);
    sender.join();
    ASSERT_TRUE(pair.far->Send(small).ok());
    EXPECT_EQ(*pair.near->Receive(kSocketWait), small);
  }
}

TEST_F(SocketTest, TheSocketFileIsRemovedAtTheEnd) {
  { const auto listener = *Listener::Open(UnixAddress()); }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "s"));
}

TEST_F(SocketTest, ASocketThatADeadProgramLeftIsReplaced) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  (folder_ / "s").string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(dead);
  const Pair pair = Connect(UnixAddress());
  EXPECT_TRUE(pair.near->Send({.header = "{}", .payload = ""}).ok());
}

TEST_F(SocketTest, ASocketInUseIsLeftAlone) {
  const Pair pair = Connect(UnixAddress());
  const auto second = Listener::Open(UnixAddress());
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "s"));
}

TEST_F(SocketTest, AFileThatIsNoSocketIsLeftAlone) {
  std::ofstream(folder_ / "s") << "precious";
  EXPECT_TRUE(absl::IsFailedPrecondition(Listener::Open(UnixAddress()).status()));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "s"), 8u);
}

TEST_F(SocketTest, ASuccessorsSocketFileIsNotRemoved) {
  auto first = *Listener::Open(UnixAddress());
  std::filesystem::remove(folder_ / "s");
  const auto second = *Listener::Open(UnixAddress());
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "s"));
}

TEST_F(SocketTest, ATcpPortInUseIsAPreciseError) {
  const auto first = *Listener::Open("127.0.0.1:0");
  EXPECT_NE(first->address().port, 0);
  const auto second = Listener::Open(first->address().ToString());
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
}

TEST_F(SocketTest, NobodyListeningIsUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(Connection::Dial(UnixAddress(), kSocketWait).status()));
}

TEST_F(SocketTest, CloseWakesAccept) {
  const auto listener = *Listener::Open(UnixAddress());
  std::thread closer([&] { listener->Close(); });
  EXPECT_TRUE(absl::IsUnavailable(listener->Accept(kSocketWait).status()));
  closer.join();
}

TEST_F(SocketTest, AcceptGivesUpInTime) {
  const auto listener = *Listener::Open(UnixAddress());
  EXPECT_TRUE(absl::IsDeadlineExceeded(listener->Accept(milliseconds(1)).status()));
}

TEST_F(SocketTest, ShutdownWakesReceive) {
  const Pair pair = Connect(UnixAddress());
  std::thread stopper([&] { pair.near->Shutdown(); });
  EXPECT_TRUE(absl::IsUnavailable(pair.near->Receive(kSocketWait).status()));
  stopper.join();
  EXPECT_TRUE(absl::IsUnavailable(pair.far->Receive(kSocketWait).status()));
}

TEST(ConnectionTest, WaitingInVainLeavesItUsable) {
  const RawPair pair;
  EXPECT_TRUE(absl::IsDeadlineExceeded(pair.connection->Receive(milliseconds(1)).status()));
  pair.Write(*EncodeFrame({.header = "{}", .payload = "late"}));
  EXPECT_EQ(pair.connection->Receive(kSocketWait)->payload, "late");
}

TEST(ConnectionTest, HalfAFrameInTimeEndsIt) {
  const RawPair pair;
  pair.Write("TAHO");
  EXPECT_TRUE(absl::IsDeadlineExceeded(pair.connection->Receive(milliseconds(1)).status()));
  EXPECT_FALSE(pair.connection->usable());
  EXPECT_TRUE(absl::IsUnavailable(pair.connection->Send({.header = "{}", .payload = ""})));
}

TEST(ConnectionTest, AnotherProtocolEndsTheConnection) {
  const RawPair pair;
  pair.Write("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::IsInvalidArgument(pair.connection->Receive(kSocketWait).status()));
  EXPECT_FALSE(pair.connection->usable());
}

TEST(ConnectionTest, APeerThatDoesNotReadIsGivenUp) {
  const RawPair pair;
  const Frame large = {.header = "{}", .payload = std::string(8'000'000, 'x')};
  EXPECT_TRUE(absl::IsDeadlineExceeded(pair.connection->Send(large, milliseconds(5))));
  EXPECT_FALSE(pair.connection->usable());
}

TEST(ConnectionTest, TooLargeAFrameIsRefusedAndNothingIsSent) {
  const RawPair pair;
  const Frame large = {.header = std::string(kMaxHeaderBytes + 1, 'x'), .payload = ""};
  EXPECT_TRUE(absl::IsInvalidArgument(pair.connection->Send(large)));
  EXPECT_TRUE(pair.connection->usable());
}

TEST(ConnectionTest, RandomBytesNeverCrashIt) {
  Rng rng(5);
  const std::string good = *EncodeFrame({.header = R"({"id":1})", .payload = "data"});
  for (int round = 0; round < 300; ++round) {
    const RawPair pair;
    std::string bytes = good + good;
    bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Below(256));
    pair.Write(bytes.substr(0, rng.Below(bytes.size() + 1)));
    shutdown(pair.raw, SHUT_WR);
    int frames = 0;
    while (pair.connection->Receive(kSocketWait).ok()) ++frames;
    EXPECT_LE(frames, 2);
    EXPECT_FALSE(pair.connection->usable());
  }
}

}  // namespace
}  // namespace tahoma::wire
