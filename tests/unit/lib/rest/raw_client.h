// A client that can misbehave: bytes over a socket, and the answer's bytes.
//
// Scope: tests. Waits end after ten seconds, because a failing test must end.
//
// Thread safety: one thread per client.

#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tahoma::testing {

class RawClient {
 public:
  explicit RawClient(int port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void EndSending() const { ::shutdown(fd_, SHUT_WR); }

  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  bool WaitReadable(std::chrono::milliseconds wait) const {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(wait.count())) > 0;
  }

  // Receives until `text` has come; returns everything up to its end, or everything received when
  // the server closed first.
  std::string ReadUntil(std::string_view text) {
    for (std::size_t from = 0;;) {
      const std::size_t at = buffer_.find(text, from);
      if (at != std::string::npos) return Take(at + text.size());
      from = buffer_.size() < text.size() ? 0 : buffer_.size() - text.size();
      if (!Receive()) return Take(buffer_.size());
    }
  }
  std::string ReadAll() {
    while (Receive()) {
    }
    return Take(buffer_.size());
  }
  // Returns an answer with a Content-Length: head and body.
  std::string ReadAnswer() {
    std::string answer = ReadUntil("\r\n\r\n");
    const std::size_t at = answer.find("Content-Length: ");
    if (at == std::string::npos) return answer;
    const auto length =
        static_cast<std::size_t>(std::strtoull(answer.c_str() + at + 16, nullptr, 10));
    while (buffer_.size() < length && Receive()) {
    }
    return answer + Take(length);
  }
  std::string Ask(std::string_view bytes) {
    Send(bytes);
    return ReadAnswer();
  }

 private:
  bool Receive() {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, 10'000) <= 0) return false;
    char bytes[16'384];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  std::string Take(std::size_t size) {
    std::string taken = buffer_.substr(0, size);
    buffer_.erase(0, taken.size());
    return taken;
  }

  int fd_ = -1;
  bool connected_ = false;
  std::string buffer_;
};

}  // namespace tahoma::testing
