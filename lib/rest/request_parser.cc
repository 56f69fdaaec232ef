#include "lib/rest/request_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/check.h"
#include "lib/base/utf8.h"

namespace tahoma::rest {
namespace {

constexpr std::size_t kRequestLineBytes = 8192;
constexpr std::size_t kFieldsMost = 200;
// The longest line before a chunk: the chunk's size in hexadecimal, and extensions, used by nobody.
constexpr std::size_t kChunkLineBytes = 256;
constexpr std::size_t kChunkDigitsMost = 8;
// The bound of all chunks' lines and line ends together.
constexpr std::size_t kFramingBytes = 64 << 10;
constexpr std::string_view kMalformed =
    "the request is not well-formed HTTP/1.1, or its method is unknown";
constexpr std::string_view kMalformedChunks = "the body is not in well-formed chunks";
// TRACE and QUERY are known methods, so a path without them answers 405.
constexpr std::array<std::string_view, 9> kMethods = {"GET",    "HEAD",    "POST",  "PUT",  "PATCH",
                                                      "DELETE", "OPTIONS", "TRACE", "QUERY"};

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// RFC 9110, 5.6.2: token.
bool IsTokenByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// Whether the text may go into names, logs and stored objects.
bool IsClean(std::string_view text) {
  return std::ranges::none_of(text, IsControl) && IsUtf8(text);
}

// Whether the text is clean before and after percent-decoding.
bool IsCleanDecoded(std::string_view text, bool plus_is_space) {
  if (!IsClean(text)) return false;
  if (text.find('%') == std::string_view::npos) return true;
  const std::optional<std::string> decoded = PercentDecode(text, plus_is_space);
  return decoded && IsClean(*decoded);
}

}  // namespace

void RequestParser::Refuse(int status, std::string reason) {
  if (state_ == State::kRefused) return;
  state_ = State::kRefused;
  refusal_status_ = status;
  refusal_ = std::move(reason);
}

std::size_t RequestParser::Consume(std::string_view bytes) {
  switch (state_) {
    case State::kHead:
      return ConsumeHead(bytes);
    case State::kBody:
      return chunked_ ? ConsumeChunks(bytes) : ConsumeBody(bytes);
    default:
      return 0;
  }
}

// Returns the next whole line without its end; `line_` keeps a part for the next call. Takes at
// most `most` bytes: a line beyond a bound is refused for its length alone, however the bytes are
// cut.
std::optional<std::string_view> RequestParser::NextLine(std::string_view& rest, std::size_t most) {
  const std::string_view bytes = rest.substr(0, most);
  const std::size_t end = bytes.find('\n');
  std::string_view line = bytes.substr(0, end == std::string_view::npos ? end : end + 1);
  rest.remove_prefix(line.size());
  if (end == std::string_view::npos || !line_.empty()) line = line_ += line;
  if (end == std::string_view::npos) return std::nullopt;
  if (!line.ends_with("\r\n")) {
    Refuse(400, std::string(kMalformed));
    return std::nullopt;
  }
  return line.substr(0, line.size() - 2);
}

std::size_t RequestParser::ConsumeHead(std::string_view bytes) {
  const std::size_t given = bytes.size();
  if (head_bytes_ == 0 && !bytes.empty() && !IsTokenByte(bytes.front())) {
    Refuse(400, std::string(kMalformed));  // TLS, for example, may never send a line
  }
  while (state_ == State::kHead && !bytes.empty()) {
    const std::size_t before = bytes.size();
    const bool first = request_.method.empty();
    const std::size_t bound =
        first ? std::min(kRequestLineBytes, limits_.head_bytes) : limits_.head_bytes;
    const std::optional<std::string_view> line = NextLine(bytes, bound + 1 - head_bytes_);
    head_bytes_ += before - bytes.size();
    if (first && head_bytes_ > kRequestLineBytes) {
      Refuse(414, fmt::format("the request line is longer than {} bytes", kRequestLineBytes));
    }
    if (head_bytes_ > limits_.head_bytes) {
      Refuse(431, fmt::format("the head is longer than {} bytes", limits_.head_bytes));
    }
    if (!line || state_ != State::kHead) continue;
    if (first) {
      ParseRequestLine(*line);
    } else if (!line->empty()) {
      ParseField(*line);
    } else {
      EndHead();
    }
    line_.clear();
  }
  return given - bytes.size();
}

// RFC 9112, 3: method, target and version, separated by single spaces.
void RequestParser::ParseRequestLine(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last == std::string_view::npos ? 0 : last + 1);
  is_http_1_0_ = version == "HTTP/1.0";
  keeps_alive_ = !is_http_1_0_;
  if (first == last || std::ranges::find(kMethods, method) == kMethods.end() ||
      (version != "HTTP/1.1" && !is_http_1_0_)) {
    Refuse(400, std::string(kMalformed));
    return;
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view path = target.substr(0, target.find('?'));
  const std::string_view query = target.substr(std::min(path.size() + 1, target.size()));
  request_.method = method;
  request_.target = target;
  request_.path = path;
  request_.query = query;
  if (target.find(' ') != std::string_view::npos) {
    Refuse(400, std::string(kMalformed));
  } else if (!path.starts_with('/')) {
    Refuse(400, "the path must begin with a slash");
  } else if (!IsCleanDecoded(path, false) || !IsCleanDecoded(query, true)) {
    Refuse(400,
           "path and query must be UTF-8 without control characters, also when decoded, and a % "
           "must stand before two hexadecimal digits");
  }
}

void RequestParser::ParseField(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || name.empty() || !std::ranges::all_of(name, IsTokenByte)) {
    Refuse(400, std::string(kMalformed));
    return;
  }
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (!std::ranges::all_of(value, [](char c) { return c == '\t' || !IsControl(c); }) ||
      !IsUtf8(value)) {
    Refuse(400, fmt::format("the header {} must be UTF-8 without control characters", name));
    return;
  }
  if (request_.headers.size() >= kFieldsMost) {
    Refuse(431, fmt::format("the head has more than {} fields", kFieldsMost));
  } else if (EqualsIgnoringCase(name, "Content-Length")) {
    ParseLength(value);
  } else if (EqualsIgnoringCase(name, "Transfer-Encoding")) {
    if (chunked_) Refuse(400, "Transfer-Encoding must stand once");
    chunked_ = EqualsIgnoringCase(value, "chunked");
    if (value.empty()) Refuse(400, std::string(kMalformed));
    if (!chunked_) Refuse(501, "the only Transfer-Encoding is chunked");
  } else if (EqualsIgnoringCase(name, "Content-Encoding")) {
    if (!EqualsIgnoringCase(value, "identity")) Refuse(415, "bodies must not be compressed");
  } else if (EqualsIgnoringCase(name, "Host")) {
    if (std::exchange(has_host_, true)) Refuse(400, "Host must stand once");
  } else if (EqualsIgnoringCase(name, "Connection")) {
    ParseConnection(value);
  } else if (EqualsIgnoringCase(name, "Expect")) {
    expects_continue_ = EqualsIgnoringCase(value, "100-continue");
    if (!expects_continue_) Refuse(417, "the only expectation is 100-continue");
  }
  request_.headers.emplace_back(name, value);
}

void RequestParser::ParseLength(std::string_view value) {
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, length_);
  if (error != std::errc() || rest != end || std::exchange(has_length_, true)) {
    Refuse(400, "Content-Length must be one number");
  } else if (length_ > limits_.body_bytes) {
    Refuse(413, fmt::format("the body is too large; at most {} bytes", limits_.body_bytes));
  }
}

// RFC 9110, 7.6.1: a list of options; only close and keep-alive matter to a connection.
void RequestParser::ParseConnection(std::string_view value) {
  while (!value.empty()) {
    const std::string_view option = value.substr(0, value.find(','));
    value.remove_prefix(std::min(option.size() + 1, value.size()));
    if (EqualsIgnoringCase(Trimmed(option), "close")) keeps_alive_ = false;
    if (is_http_1_0_ && EqualsIgnoringCase(Trimmed(option), "keep-alive")) keeps_alive_ = true;
  }
}

void RequestParser::EndHead() {
  if (!has_host_ && !is_http_1_0_) {
    Refuse(400, "HTTP/1.1 requests have the header Host");  // RFC 9112, 3.2
  } else if (chunked_ && has_length_) {
    Refuse(400, "Content-Length and Transfer-Encoding exclude each other");
  } else if (chunked_ && is_http_1_0_) {
    Refuse(400, "HTTP/1.0 has no chunks");
  } else {
    state_ = State::kHeadRead;
  }
}

void RequestParser::ReadBody() {
  TAHOMA_CHECK(state_ == State::kHeadRead);
  state_ = has_body() ? State::kBody : State::kWhole;
}

std::size_t RequestParser::ConsumeBody(std::string_view bytes) {
  bytes = bytes.substr(0, length_ - request_.body.size());
  if (request_.body.empty()) request_.body.reserve(length_);
  request_.body += bytes;
  if (request_.body.size() == length_) state_ = State::kWhole;
  return bytes.size();
}

// RFC 9112, 7.1.
std::size_t RequestParser::ConsumeChunks(std::string_view bytes) {
  const std::size_t given = bytes.size();
  while (state_ == State::kBody && !bytes.empty()) {
    if (chunk_ == Chunk::kData) {
      const std::string_view data = bytes.substr(0, length_);
      request_.body += data;
      length_ -= data.size();
      bytes.remove_prefix(data.size());
      if (length_ == 0) chunk_ = Chunk::kDataEnd;
      continue;
    }
    const std::size_t before = bytes.size();
    const std::optional<std::string_view> line =
        NextLine(bytes, kFramingBytes + 1 - framing_bytes_);
    framing_bytes_ += before - bytes.size();
    if (line_.size() > kChunkLineBytes + 2 || (line && line->size() > kChunkLineBytes)) {
      Refuse(400, fmt::format("the line before a chunk is longer than {} bytes", kChunkLineBytes));
    } else if (framing_bytes_ > kFramingBytes) {
      Refuse(413, "the body is too large; its chunks are too small");
    } else if (line) {
      ParseChunkLine(*line);
      line_.clear();
    }
  }
  return given - bytes.size();
}

void RequestParser::ParseChunkLine(std::string_view line) {
  if (chunk_ == Chunk::kDataEnd || chunk_ == Chunk::kEnd) {
    if (!line.empty()) {
      Refuse(400, chunk_ == Chunk::kEnd ? "fields after the last chunk are not taken"
                                        : "a chunk of the body is longer than it says");
    } else if (chunk_ == Chunk::kEnd) {
      state_ = State::kWhole;
    }
    chunk_ = Chunk::kSize;
    return;
  }
  const std::string_view digits = line.substr(0, line.find(';'));
  std::uint32_t size = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, size, 16);
  if (error != std::errc() || rest != end || digits.size() > kChunkDigitsMost || !IsClean(line)) {
    Refuse(400, std::string(kMalformedChunks));
  } else if (size > limits_.body_bytes - request_.body.size()) {
    Refuse(413, fmt::format("the body is too large; at most {} bytes", limits_.body_bytes));
  }
  length_ = size;
  chunk_ = size == 0 ? Chunk::kEnd : Chunk::kData;
}

}  // namespace tahoma::rest
