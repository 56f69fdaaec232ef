#include "lib/wire/call.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/wire/server.h"

namespace tahoma::wire {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kSoon(5000);

// Answers "echo" with what it got and everything else with an error.
absl::StatusOr<Reply> Echo(const Request& request) {
  if (request.method == "echo") return Reply{.result = request.params, .payload = request.payload};
  if (request.method == "large") {
    return Reply{.result = "{}", .payload = std::string(kMaxPayloadBytes + 1, 'x')};
  }
  return NotFound("no method {}", request.method);
}

std::unique_ptr<Server> StartEcho() { return *Server::Start("127.0.0.1:0", {}, Echo); }

TEST(CallTest, RequestsAndRepliesComeBackAsTheyWere) {
  const auto frame =
      EncodeRequest(7, {.method = "devices", .params = R"({"token":"t"})", .payload = "p"});
  ASSERT_TRUE(frame.ok());
  const auto request = DecodeRequest(*frame);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->id, 7u);
  EXPECT_EQ(request->request.method, "devices");
  EXPECT_EQ(request->request.params, R"({"token":"t"})");
  EXPECT_EQ(request->request.payload, "p");
}

TEST(CallTest, ErrorsKeepCodeAndMessage) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "because");
    EXPECT_EQ(DecodeReply(3, *EncodeReply(3, status)).status(), status);
  }
}

TEST(CallTest, AReplyToAnotherCallIsRefused) {
  EXPECT_EQ(Message(DecodeReply(4, *EncodeReply(3, Reply{})).status()),
            "the reply answers call 3; expected call 4");
}

TEST(CallTest, DamagedHeadersAreRefusedPrecisely) {
  const auto why = [](std::string header) {
    return std::string(Message(DecodeRequest({.header = header, .payload = ""}).status()));
  };
  EXPECT_EQ(why("nonsense"), "the request's header is not valid JSON");
  EXPECT_EQ(why("{}"), "request.id is missing");
  EXPECT_EQ(why(R"({"id":-1,"method":"m"})"),
            "request.id is -1; expected 0 to 9223372036854775807");
  EXPECT_EQ(why(R"({"id":1,"method":""})"), "request.method has 0 bytes; expected 1 to 64");
  EXPECT_EQ(why(R"({"id":1,"method":"m","params":[]})"),
            "request.params is of type array; expected an object");
  EXPECT_EQ(Message(DecodeReply(1, {.header = R"({"id":1})", .payload = ""}).status()),
            "reply has neither result nor error");
}

TEST(CallTest, DamagedHeadersNeverCrash) {
  Rng rng(17);
  const std::string request = EncodeRequest(1, {.method = "m", .params = "{}"})->header;
  const std::string reply = EncodeReply(1, NotFound("x"))->header;
  for (int round = 0; round < 5'000; ++round) {
    std::string text = rng.Chance(1, 2) ? request : reply;
    text[rng.Below(text.size())] = static_cast<char>(rng.Below(256));
    (void)DecodeRequest({.header = text, .payload = ""}).status();
    (void)DecodeReply(1, {.header = text, .payload = ""}).status();
  }
}

TEST(ServerTest, AnswersOneCallAfterTheOther) {
  const auto server = StartEcho();
  Client client(server->address().ToString());
  for (int i = 0; i < 3; ++i) {
    const std::string params = fmt::format(R"({{"i":{}}})", i);
    const auto reply = client.Call({.method = "echo", .params = params, .payload = "raw"}, kSoon);
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->result, params);
    EXPECT_EQ(reply->payload, "raw");
  }
  EXPECT_EQ(client.Call({.method = "other"}, kSoon).status(), NotFound("no method other"));
  EXPECT_TRUE(client.Call({.method = "echo"}, kSoon).ok()) << "an error reply ends nothing";
}

TEST(ServerTest, ServesManyClientsAtTheSameTime) {
  const auto server = StartEcho();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      Client client(server->address().ToString());
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(client.Call({.method = "echo", .params = "{}"}, kSoon).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ServerTest, AReplyOverTheBoundIsAnErrorReply) {
  const auto server = StartEcho();
  Client client(server->address().ToString());
  EXPECT_TRUE(absl::IsInvalidArgument(client.Call({.method = "large"}, kSoon).status()));
}

TEST(ServerTest, AClientSurvivesARestartOfTheServer) {
  std::string pattern = std::filesystem::temp_directory_path() / "wire-XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const std::string address = fmt::format("unix:{}/s", folder.string());
  Client client(address);
  for (int life = 0; life < 3; ++life) {
    const auto server = *Server::Start(address, {}, Echo);
    EXPECT_TRUE(client.Call({.method = "echo"}, kSoon).ok()) << life;
  }
  EXPECT_TRUE(absl::IsUnavailable(client.Call({.method = "echo"}, kSoon).status()));
  std::filesystem::remove_all(folder);
}

TEST(ServerTest, ConnectionsOverTheBoundAreClosed) {
  const auto server = *Server::Start("127.0.0.1:0", {.max_connections = 1}, Echo);
  Client first(server->address().ToString());
  ASSERT_TRUE(first.Call({.method = "echo"}, kSoon).ok());
  Client second(server->address().ToString());
  EXPECT_TRUE(absl::IsUnavailable(second.Call({.method = "echo"}, kSoon).status()));
  EXPECT_TRUE(first.Call({.method = "echo"}, kSoon).ok());
}

TEST(ServerTest, NonsenseEndsOnlyItsOwnConnection) {
  const auto server = StartEcho();
  Client good(server->address().ToString());
  ASSERT_TRUE(good.Call({.method = "echo"}, kSoon).ok());
  const auto bad = *Connection::Dial(server->address().ToString(), kSoon);
  ASSERT_TRUE(bad->Send({.header = "nonsense", .payload = ""}).ok());
  const auto answer = bad->Receive(kSoon);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeReply(0, *answer).status()));
  EXPECT_TRUE(absl::IsUnavailable(bad->Receive(kSoon).status()));
  EXPECT_TRUE(good.Call({.method = "echo"}, kSoon).ok());
}

TEST(ServerTest, StopEndsOpenConnectionsAndMayBeRepeated) {
  const auto server = StartEcho();
  const auto idle = *Connection::Dial(server->address().ToString(), kSoon);
  server->Stop();
  server->Stop();
  EXPECT_TRUE(absl::IsUnavailable(idle->Receive(kSoon).status()));
}

TEST(ClientTest, ASlowCallIsGivenUpAndTheNextCallWorks) {
  std::mutex mutex;
  std::condition_variable released;
  bool release = false;
  const auto server = *Server::Start("127.0.0.1:0", {}, [&](const Request& request) {
    std::unique_lock lock(mutex);
    released.wait(lock, [&] { return release || request.method == "fast"; });
    return absl::StatusOr<Reply>(Reply{});
  });
  Client client(server->address().ToString());
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Call({.method = "slow"}, milliseconds(5)).status()));
  EXPECT_TRUE(client.Call({.method = "fast"}, kSoon).ok());
  {
    const std::lock_guard lock(mutex);
    release = true;
  }
  released.notify_all();
}

TEST(ClientTest, CloseEndsARunningCall) {
  const auto listener = *Listener::Open("127.0.0.1:0");
  Client client(listener->address().ToString());
  std::thread closer([&] {
    const auto accepted = listener->Accept(kSoon);
    EXPECT_TRUE((*accepted)->Receive(kSoon).ok());
    client.Close();
  });
  EXPECT_TRUE(absl::IsUnavailable(client.Call({.method = "m"}, kSoon).status()));
  closer.join();
  EXPECT_TRUE(absl::IsUnavailable(client.Call({.method = "m"}, kSoon).status()));
}

}  // namespace
}  // namespace tahoma::wire
