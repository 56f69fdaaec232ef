// Opens many watches on one kind and counts how many events per second reach every one of them.
//
//   watch_fanout 127.0.0.1:PORT 1000 SECONDS      one line: events per second, each on all watches
//
// One thread reads all sockets with epoll; another patches one ConfigMap as fast as it is answered.
// Plain sockets, so that the client costs little of the machine that it shares with the server.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/check.h"
#include "lib/kube/http_transport.h"

namespace tahoma {
namespace {

using std::chrono::steady_clock;

constexpr const char* kConfigMaps = "/api/v1/namespaces/default/configmaps";
constexpr std::string_view kEvent = "{\"type\":\"MODIFIED\"";

int Connect(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  TAHOMA_CHECK(inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  TAHOMA_CHECK(fd >= 0);
  TAHOMA_CHECK(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

struct Watch {
  int fd;
  std::int64_t events = 0;
  std::string tail;  // the end of what was read, in case an event's beginning is cut

  void Count(std::string_view bytes) {
    tail.append(bytes);
    std::size_t at = 0;
    for (std::size_t found; (found = tail.find(kEvent, at)) != std::string::npos; at = found + 1) {
      ++events;
    }
    tail.erase(0, std::max(at, tail.size() - std::min(tail.size(), kEvent.size() - 1)));
  }
};

std::vector<Watch> OpenWatches(const std::string& host, int port, int count) {
  const std::string request = std::string("GET ") + kConfigMaps +
                              "?watch=true&resourceVersion=0 HTTP/1.1\r\nHost: " + host +
                              "\r\nAccept: application/json\r\n\r\n";
  std::vector<Watch> watches;
  for (int i = 0; i < count; ++i) {
    watches.push_back({.fd = Connect(host, port), .tail = {}});
    TAHOMA_CHECK(write(watches.back().fd, request.data(), request.size()) ==
                 static_cast<ssize_t>(request.size()));
    // The answer's head: the watch is open.
    std::array<char, 4096> buffer;
    TAHOMA_CHECK(read(watches.back().fd, buffer.data(), buffer.size()) > 0);
    TAHOMA_CHECK(fcntl(watches.back().fd, F_SETFL, O_NONBLOCK) == 0);
  }
  return watches;
}

void ReadUntil(std::vector<Watch>& watches, steady_clock::time_point end) {
  const int epoll = epoll_create1(0);
  for (std::size_t i = 0; i < watches.size(); ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    TAHOMA_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, watches[i].fd, &event) == 0);
  }
  std::vector<epoll_event> ready(watches.size());
  std::vector<char> buffer(1 << 16);
  while (steady_clock::now() < end) {
    const int count = epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()), 50);
    for (int i = 0; i < count; ++i) {
      Watch& watch = watches[ready[static_cast<std::size_t>(i)].data.u64];
      const ssize_t got = read(watch.fd, buffer.data(), buffer.size());
      TAHOMA_CHECK(got > 0 || errno == EAGAIN);
      if (got > 0) watch.Count({buffer.data(), static_cast<std::size_t>(got)});
    }
  }
  close(epoll);
}

int Run(const std::string& host, int port, int count, int seconds) {
  auto api = kube::HttpTransport::Create({.server = "http://" + host + ":" + std::to_string(port)});
  TAHOMA_CHECK_OK(api.status());
  const auto created = (*api)->Send(
      {.method = "POST",
       .target = kConfigMaps,
       .headers = {{"Content-Type", "application/json"}},
       .body = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fanout"}})"});
  TAHOMA_CHECK(created.ok() && created->status == 201);
  std::vector<Watch> watches = OpenWatches(host, port, count);
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (int i = 0; !done; ++i) {
      (void)(*api)->Send({.method = "PATCH",
                          .target = std::string(kConfigMaps) + "/fanout",
                          .headers = {{"Content-Type", "application/merge-patch+json"}},
                          .body = R"({"data":{"n":")" + std::to_string(i) + "\"}}"});
    }
  });
  const auto begin = steady_clock::now();
  ReadUntil(watches, begin + std::chrono::seconds(seconds));
  const std::chrono::duration<double> took = steady_clock::now() - begin;
  done = true;
  const auto slowest = std::min_element(watches.begin(), watches.end(),
                                        [](auto& a, auto& b) { return a.events < b.events; });
  std::printf("%.0f\n", static_cast<double>(slowest->events) / took.count());
  return slowest->events > 0 ? 0 : 1;
}

}  // namespace
}  // namespace tahoma

int main(int argc, char** argv) {
  const std::string address = argc == 4 ? argv[1] : "";
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    std::fprintf(stderr, "usage: watch_fanout HOST:PORT WATCHES SECONDS\n");
    return 2;
  }
  return tahoma::Run(address.substr(0, colon), std::atoi(address.c_str() + colon + 1),
                     std::atoi(argv[2]), std::atoi(argv[3]));
}
