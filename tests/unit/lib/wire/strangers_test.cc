// A server that strangers reach: the parameter "token" of a call names the caller.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "lib/base/file_descriptor.h"
#include "lib/base/json.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/wire/call.h"
#include "lib/wire/server.h"

namespace tahoma::wire {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kSoon(20'000);

class StrangersTest : public ::testing::Test {
 protected:
  ~StrangersTest() override { Open(); }

  void Start(Server::Options options) {
    options.introduce = [](const Request& request) -> absl::StatusOr<CallerOf> {
      EXPECT_EQ(request.payload, "");
      const Json params = TryParseJson(request.params);
      const Json* token = FindMember(params, "token");
      if (token == nullptr || *token == "bad") return PermissionDenied("no good token");
      return CallerOf{.name = token->get<std::string>()};
    };
    server_ = *Server::Start("127.0.0.1:0", std::move(options),
                             [this](const Request& request) { return Answer(request); });
  }
  absl::StatusOr<Reply> Answer(const Request& request) {
    ++calls_;
    if (request.method == "wait") {
      const MutexLock lock(mutex_);
      ++waiting_;
      changed_.NotifyAll();
      while (!open_) changed_.Wait(mutex_);
    }
    return Reply{.payload = request.payload};
  }
  void AwaitWaiting(int calls) {
    const MutexLock lock(mutex_);
    while (waiting_ < calls) changed_.Wait(mutex_);
  }
  // Lets calls of "wait" end.
  void Open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

  std::unique_ptr<Connection> Dial() {
    return *Connection::Dial(server_->address().ToString(), kSoon);
  }
  static Request As(std::string_view token, std::string payload = "", std::string method = "echo") {
    return {.method = std::move(method),
            .params = Json{{"token", token}}.dump(),
            .payload = std::move(payload)};
  }
  // Waits until the server has hung up.
  static absl::Status AwaitEnd(Connection& connection) {
    return connection.Receive(kSoon).status();
  }

  // Whether the server hangs up on a client that sends these bytes and then nothing.
  bool IsCutOffAfter(const std::string& bytes) const {
    const FileDescriptor fd(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(server_->address().port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const void* raw = &to;
    EXPECT_EQ(connect(fd.get(), static_cast<const sockaddr*>(raw), sizeof to), 0);
    EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    pollfd end = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    char byte = 0;
    return poll(&end, 1, kSoon.count()) == 1 && read(fd.get(), &byte, 1) <= 0;
  }

  std::atomic<int> calls_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Server> server_;
};

TEST_F(StrangersTest, APayloadWithoutATokenIsReadAndForgotten) {
  Start({});
  const auto connection = Dial();
  const std::string large(8 << 20, 'x');
  EXPECT_EQ(Call(*connection, 1, As("bad", large), kSoon).status(),
            PermissionDenied("no good token"));
  EXPECT_EQ(calls_, 0);
  const auto reply = Call(*connection, 2, As("a", large), kSoon);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->payload, large);
}

TEST_F(StrangersTest, AConnectionWithoutAnIntroductionIsClosedAtItsDeadline) {
  Start({.introduction = milliseconds(20)});
  const auto silent = Dial();
  EXPECT_TRUE(absl::IsUnavailable(AwaitEnd(*silent)));
  // A stranger that never stops talking is cut off, too.
  const auto talkative = Dial();
  absl::Status status = PermissionDenied("no good token");
  for (std::uint64_t id = 1; absl::IsPermissionDenied(status); ++id) {
    status = Call(*talkative, id, As("bad"), kSoon).status();
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(StrangersTest, AKnownCallerMayBeSilentForever) {
  Start({.introduction = milliseconds(1000)});
  const auto known = Dial();
  ASSERT_TRUE(Call(*known, 1, As("a"), kSoon).ok());
  const auto stranger = Dial();  // younger than the known connection, and yet cut off first
  EXPECT_TRUE(absl::IsUnavailable(AwaitEnd(*stranger)));
  EXPECT_TRUE(Call(*known, 2, As("a"), kSoon).ok());
}

TEST_F(StrangersTest, WhoseTokenIsNoLongerGoodIsAStrangerAgain) {
  Start({.introduction = milliseconds(1000)});
  const auto connection = Dial();
  ASSERT_TRUE(Call(*connection, 1, As("a"), kSoon).ok());
  EXPECT_FALSE(Call(*connection, 2, As("bad"), kSoon).ok());
  EXPECT_TRUE(absl::IsUnavailable(AwaitEnd(*connection)));
}

TEST_F(StrangersTest, HalfAFrameIsCutOffInTime) {
  Start({.head_timeout = milliseconds(20), .payload_timeout = milliseconds(20)});
  const std::string frame = *EncodeFrame(*EncodeRequest(1, As("a", "payload")));
  const std::size_t header = frame.size() - std::string("payload").size();
  for (const std::size_t bytes : {std::size_t{1}, kPrefixBytes, header - 1, header, header + 1}) {
    EXPECT_TRUE(IsCutOffAfter(frame.substr(0, bytes))) << bytes;
  }
  EXPECT_EQ(calls_, 0);
}

TEST_F(StrangersTest, SilentConnectionsKeepNobodyOut) {
  Start({.max_connections = 8, .max_strangers = 4});
  const auto known = Dial();
  ASSERT_TRUE(Call(*known, 1, As("a"), kSoon).ok());
  std::vector<std::unique_ptr<Connection>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(Dial());
  EXPECT_TRUE(Call(*Dial(), 1, As("b"), kSoon).ok());
  EXPECT_TRUE(Call(*known, 2, As("a"), kSoon).ok());
  EXPECT_TRUE(absl::IsUnavailable(AwaitEnd(*silent.front()))) << "the oldest made room";
}

TEST_F(StrangersTest, OneCallerCannotTakeAllConnections) {
  Start({.max_connections = 6, .max_strangers = 2});
  std::vector<std::unique_ptr<Connection>> own;
  int served = 0;
  for (int i = 0; i < 12; ++i) {
    own.push_back(Dial());
    if (Call(*own.back(), 1, As("greedy"), kSoon).ok()) ++served;
  }
  EXPECT_EQ(served, 4);
  EXPECT_TRUE(Call(*own.front(), 2, As("greedy"), kSoon).ok()) << "the older ones are at work";
  EXPECT_TRUE(Call(*Dial(), 1, As("honest"), kSoon).ok());
}

TEST_F(StrangersTest, LargeCallsWaitForRoomAndSmallOnesDoNot) {
  constexpr std::size_t kLarge = std::size_t{1} << 20U;
  Start({.room = {.bytes = kLarge, .bytes_per_caller = kLarge}});
  std::thread first([&] {
    EXPECT_TRUE(Call(*Dial(), 1, As("a", std::string(kLarge, 'x'), "wait"), kSoon).ok());
  });
  AwaitWaiting(1);
  std::thread second(
      [&] { EXPECT_TRUE(Call(*Dial(), 1, As("b", std::string(kLarge, 'x')), kSoon).ok()); });
  EXPECT_TRUE(Call(*Dial(), 1, As("c", "small"), kSoon).ok());
  EXPECT_EQ(calls_, 2) << "the second large call has not begun";
  Open();
  first.join();
  second.join();
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(Message(Call(*Dial(), 1, As("a", std::string(kLarge + 1, 'x')), kSoon).status()),
            "the call and its reply take 1048577 bytes; at most 1048576 are allowed");
}

TEST_F(StrangersTest, AFrameOverTheSocketsOwnBoundsEndsTheConnection) {
  Start({.frame = {.header_bytes = 200, .payload_bytes = 10}});
  EXPECT_TRUE(Call(*Dial(), 1, As("a", "0123456789"), kSoon).ok());
  EXPECT_TRUE(absl::IsUnavailable(Call(*Dial(), 1, As("a", "01234567890"), kSoon).status()));
  EXPECT_TRUE(absl::IsUnavailable(Call(*Dial(), 1, As(std::string(200, 'a')), kSoon).status()));
}

}  // namespace
}  // namespace tahoma::wire
