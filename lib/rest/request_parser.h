// HTTP/1.1 requests from bytes as they come: head, framing, body; written as RFC 9112 demands.
//
// The end of a request must be stated by one header only, or the request is refused: what a proxy
// in front took for a body must not become the next request here. So there are no bare line feeds,
// folded lines, doubled or decorated lengths, trailers or encodings but chunked. Path, query and
// fields are UTF-8 without control characters, also when their percent-encoding is undone.
//
// Scope: form and bounds; what a request means is the handlers' business. No sockets, no clock.
//
// Thread safety: one thread per object.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/rest/message.h"

namespace tahoma::rest {

class RequestParser {
 public:
  struct Limits {
    std::size_t head_bytes = 64 << 10;
    std::size_t body_bytes = 3 << 20;
  };
  enum class State {
    kHead,      // more of the head is to come
    kHeadRead,  // the head has come; takes nothing until ReadBody
    kBody,      // more of the body is to come
    kWhole,     // the request has come
    kRefused,   // it never will: refusal_status() and refusal() say why
  };

  explicit RequestParser(Limits limits) : limits_(limits) {}

  // Returns how many of the bytes belong to this request as far as it may be read now.
  std::size_t Consume(std::string_view bytes);
  // Goes on from kHeadRead to kBody, or to kWhole when there is no body.
  void ReadBody();
  // Makes the parser ready for another request.
  void Reset() { *this = RequestParser(limits_); }

  State state() const { return state_; }
  Request& request() { return request_; }
  const Request& request() const { return request_; }
  int refusal_status() const { return refusal_status_; }
  const std::string& refusal() const { return refusal_; }

  // Some of the request has come.
  bool has_begun() const { return head_bytes_ > 0; }
  // Known from kHeadRead on.
  bool has_body() const { return chunked_ || length_ > 0; }
  bool expects_continue() const { return expects_continue_; }
  bool is_http_1_0() const { return is_http_1_0_; }
  // Whether the client wants to go on with this connection after the answer.
  bool keeps_alive() const { return keeps_alive_; }
  // The bytes of the request that this object holds.
  std::size_t held_bytes() const { return head_bytes_ + request_.body.size(); }

 private:
  enum class Chunk { kSize, kData, kDataEnd, kEnd };

  void Refuse(int status, std::string reason);
  std::size_t ConsumeHead(std::string_view bytes);
  std::size_t ConsumeBody(std::string_view bytes);
  std::size_t ConsumeChunks(std::string_view bytes);
  std::optional<std::string_view> NextLine(std::string_view& rest, std::size_t most);
  void ParseRequestLine(std::string_view line);
  void ParseField(std::string_view line);
  void ParseLength(std::string_view value);
  void ParseConnection(std::string_view value);
  void EndHead();
  void ParseChunkLine(std::string_view line);

  Limits limits_;
  State state_ = State::kHead;
  Request request_;
  int refusal_status_ = 0;
  std::string refusal_;

  std::string line_;  // the line that is being read, without its end
  std::size_t head_bytes_ = 0;
  bool has_host_ = false;
  bool has_length_ = false;
  bool expects_continue_ = false;
  bool is_http_1_0_ = false;
  bool keeps_alive_ = true;
  std::uint64_t length_ = 0;  // of the body or, with chunks, what is left of the chunk
  bool chunked_ = false;
  Chunk chunk_ = Chunk::kSize;
  std::size_t framing_bytes_ = 0;  // of the chunks, beside their data
};

}  // namespace tahoma::rest
