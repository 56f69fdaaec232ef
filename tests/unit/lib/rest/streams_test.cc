// Streams: many at once, slow readers, readers that leave, and the end of the server.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/rest/server.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma::rest {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RawClient;

// Lines for every open stream, in order.
class Feed {
 public:
  void Add(const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    }
    changed_.notify_all();
  }
  Response Open() {
    Count(1);
    return Response::Stream(
        "application/json",
        [this, next = std::size_t{0}](std::string& out, milliseconds wait) mutable {
          std::unique_lock lock(mutex_);
          changed_.wait_for(lock, wait, [&] { return next < lines_.size(); });
          while (next < lines_.size()) {
            out += lines_[next] + "\n";
            if (lines_[next++] == "end") return false;
          }
          return true;
        },
        [this] { Count(-1); });
  }
  int open() {
    const std::lock_guard lock(mutex_);
    return open_;
  }
  void WaitForOpen(int wanted) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(20), [&] { return open_ == wanted; });
  }

 private:
  void Count(int by) {
    {
      const std::lock_guard lock(mutex_);
      open_ += by;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  int open_ = 0;
};

constexpr std::string_view kWatch =
    "GET /watch HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
constexpr std::string_view kAskPlain = "GET /plain HTTP/1.1\r\nHost: localhost\r\n\r\n";

class StreamsTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options) {
    server_ = std::make_unique<Server>(std::move(options), metrics_);
    server_->Route("GET", "/watch", [this](const Request&) { return feed_.Open(); });
    server_->Route("GET", "/plain", [](const Request&) { return Response::Text(200, "plain"); });
    ASSERT_EQ(server_->Start(), absl::OkStatus());
  }

  Metrics metrics_;
  Feed feed_;
  std::unique_ptr<Server> server_;
};

TEST_F(StreamsTest, LinesArriveAsTheyAreMade) {
  Start({});
  RawClient client(server_->port());
  client.Send(kWatch);
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("Transfer-Encoding: chunked"), std::string::npos);
  feed_.Add("one");
  EXPECT_EQ(client.ReadUntil("\n\r\n"), "4\r\none\n\r\n");
  feed_.Add("two");
  EXPECT_EQ(client.ReadUntil("\n\r\n"), "4\r\ntwo\n\r\n");
  feed_.Add("end");
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "4\r\nend\n\r\n0\r\n\r\n");
  EXPECT_NE(client.Ask(kAskPlain).find("plain"), std::string::npos);
}

TEST_F(StreamsTest, AReaderThatLeavesIsNoticed) {
  Start({.stream_wait = milliseconds(10)});
  {
    RawClient client(server_->port());
    client.Send(kWatch);
    client.ReadUntil("\r\n\r\n");
    EXPECT_EQ(feed_.open(), 1);
  }
  feed_.WaitForOpen(0);
  EXPECT_EQ(feed_.open(), 0);
}

TEST_F(StreamsTest, StreamsNeverTakeTheLastThreads) {
  Start({.max_threads = 8, .reserved_threads = 3, .stream_wait = milliseconds(10)});
  std::vector<std::unique_ptr<RawClient>> readers;
  for (int i = 0; i < 5; ++i) {
    readers.push_back(std::make_unique<RawClient>(server_->port()));
    readers.back()->Send(kWatch);
    readers.back()->ReadUntil("\r\n\r\n");
  }
  const std::string refused = RawClient(server_->port()).Ask(kWatch);
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 ")) << refused;
  EXPECT_NE(refused.find("Retry-After: 1"), std::string::npos);
  EXPECT_NE(RawClient(server_->port()).Ask(kAskPlain).find("plain"), std::string::npos);
  readers.clear();
  feed_.WaitForOpen(0);
  RawClient again(server_->port());
  again.Send(kWatch);
  EXPECT_NE(again.ReadUntil("\r\n\r\n").find("200 OK"), std::string::npos);
}

TEST_F(StreamsTest, StoppingEndsStreamsInOrder) {
  Start({.stream_wait = milliseconds(10)});
  RawClient client(server_->port());
  client.Send(kWatch);
  client.ReadUntil("\r\n\r\n");
  server_->Stop();
  EXPECT_EQ(client.ReadAll(), "0\r\n\r\n");
  EXPECT_EQ(feed_.open(), 0);
}

TEST_F(StreamsTest, AThousandStreamsAndSlowReadersLeaveRoomForRequests) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Start({.write_timeout = milliseconds(1000), .stream_wait = milliseconds(200)});
  constexpr int kStreams = 1000;
  constexpr int kSlow = 20;
  std::vector<std::unique_ptr<RawClient>> readers, slow;
  for (int i = 0; i < kStreams + kSlow; ++i) {
    auto& group = i < kStreams ? readers : slow;
    group.push_back(std::make_unique<RawClient>(server_->port(), i < kStreams ? 0 : 4096));
    ASSERT_TRUE(group.back()->Send(kWatch));
  }
  for (auto& reader : readers) ASSERT_NE(reader->ReadUntil("\r\n\r\n"), "");
  feed_.WaitForOpen(kStreams + kSlow);
  feed_.Add("first");
  for (auto& reader : readers) ASSERT_EQ(reader->ReadUntil("first\n\r\n"), "6\r\nfirst\n\r\n");
  readers.resize(1);
  feed_.WaitForOpen(1 + kSlow);
  std::string all;
  std::thread reading([&] { all = readers.front()->ReadUntil("end\n\r\n0\r\n\r\n"); });
  // Far more than the kernel's buffers of a connection.
  for (int i = 0; i < 16; ++i) feed_.Add(std::string(1 << 20, 'x'));
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(RawClient(server_->port()).Ask(kAskPlain).find("plain"), std::string::npos);
  }
  feed_.Add("end");
  reading.join();
  EXPECT_TRUE(all.ends_with("end\n\r\n0\r\n\r\n")) << all.size();
  EXPECT_GT(all.size(), std::size_t{16} << 20);
  feed_.WaitForOpen(0);
  EXPECT_EQ(feed_.open(), 0);  // the slow streams were cut
}

}  // namespace
}  // namespace tahoma::rest
