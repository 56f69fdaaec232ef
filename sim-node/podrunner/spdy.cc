#include "sim-node/podrunner/spdy.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kHeadBytes = 8;
// Clients send at most 32 KiB of data at once, and headers of a few words.
constexpr std::size_t kDataFrameMost = std::size_t{256} << 10U;
constexpr std::size_t kControlFrameMost = std::size_t{16} << 10U;
constexpr std::size_t kHeaderBlockMost = std::size_t{16} << 10U;
constexpr std::uint32_t kControlBit = 0x80000000U;
constexpr std::uint16_t kVersion = 3;
constexpr std::uint16_t kSynStream = 1;
constexpr std::uint16_t kSynReply = 2;
constexpr std::uint16_t kRstStream = 3;
constexpr std::uint16_t kPing = 6;
constexpr std::uint8_t kFin = 1;

// The words of the dictionary that both sides know before the first header, each with its length
// before it, and the text after them.
constexpr std::array<std::string_view, 65> kWords = {"options",
                                                     "head",
                                                     "post",
                                                     "put",
                                                     "delete",
                                                     "trace",
                                                     "accept",
                                                     "accept-charset",
                                                     "accept-encoding",
                                                     "accept-language",
                                                     "accept-ranges",
                                                     "age",
                                                     "allow",
                                                     "authorization",
                                                     "cache-control",
                                                     "connection",
                                                     "content-base",
                                                     "content-encoding",
                                                     "content-language",
                                                     "content-length",
                                                     "content-location",
                                                     "content-md5",
                                                     "content-range",
                                                     "content-type",
                                                     "date",
                                                     "etag",
                                                     "expect",
                                                     "expires",
                                                     "from",
                                                     "host",
                                                     "if-match",
                                                     "if-modified-since",
                                                     "if-none-match",
                                                     "if-range",
                                                     "if-unmodified-since",
                                                     "last-modified",
                                                     "location",
                                                     "max-forwards",
                                                     "pragma",
                                                     "proxy-authenticate",
                                                     "proxy-authorization",
                                                     "range",
                                                     "referer",
                                                     "retry-after",
                                                     "server",
                                                     "te",
                                                     "trailer",
                                                     "transfer-encoding",
                                                     "upgrade",
                                                     "user-agent",
                                                     "vary",
                                                     "via",
                                                     "warning",
                                                     "www-authenticate",
                                                     "method",
                                                     "get",
                                                     "status",
                                                     "200 OK",
                                                     "version",
                                                     "HTTP/1.1",
                                                     "url",
                                                     "public",
                                                     "set-cookie",
                                                     "keep-alive",
                                                     "origin"};
constexpr std::string_view kText =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 "
    "Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service "
    "UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, "
    "Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

void AppendNumber(std::string& to, std::uint32_t number, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) {
    to += static_cast<char>((number >> (8U * static_cast<unsigned>(i))) & 0xffU);
  }
}

// The first `bytes` bytes, which must be there, the highest first.
std::uint32_t NumberAt(std::string_view from, std::size_t bytes) {
  std::uint32_t number = 0;
  for (const char c : from.substr(0, bytes)) {
    number = (number << 8U) | static_cast<std::uint8_t>(c);
  }
  return number;
}

const std::string& Dictionary() {
  static const std::string dictionary = [] {
    std::string text;
    for (const std::string_view word : kWords) {
      AppendNumber(text, static_cast<std::uint32_t>(word.size()), 4);
      text += word;
    }
    text += kText;
    return text;
  }();
  return dictionary;
}

const Bytef* BytesOf(const std::string& text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

}  // namespace

// The headers of all streams are one compressed text in each direction.
struct SpdyFrames::Compression {
  Compression() {
    TAHOMA_CHECK(inflateInit(&in) == Z_OK);
    TAHOMA_CHECK(deflateInit(&out, Z_BEST_SPEED) == Z_OK);
    TAHOMA_CHECK(deflateSetDictionary(&out, BytesOf(Dictionary()),
                                      static_cast<uInt>(Dictionary().size())) == Z_OK);
  }
  ~Compression() {
    inflateEnd(&in);
    deflateEnd(&out);
  }
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;

  absl::StatusOr<std::string> Read(std::string_view block) {
    std::string compressed(block);
    std::string text(kHeaderBlockMost, '\0');
    in.next_in = reinterpret_cast<Bytef*>(compressed.data());
    in.avail_in = static_cast<uInt>(compressed.size());
    in.next_out = reinterpret_cast<Bytef*>(text.data());
    in.avail_out = static_cast<uInt>(text.size());
    int result = inflate(&in, Z_SYNC_FLUSH);
    if (result == Z_NEED_DICT) {
      inflateSetDictionary(&in, BytesOf(Dictionary()), static_cast<uInt>(Dictionary().size()));
      result = inflate(&in, Z_SYNC_FLUSH);
    }
    if ((result != Z_OK && result != Z_BUF_ERROR) || in.avail_in != 0 || in.avail_out == 0) {
      return InvalidArgument("SPDY headers are not compressed as they must be, or are too long");
    }
    text.resize(text.size() - in.avail_out);
    return text;
  }

  std::string Write(std::string text) {
    constexpr std::size_t kRoom = 64;
    std::string compressed(deflateBound(&out, text.size()) + kRoom, '\0');
    out.next_in = reinterpret_cast<Bytef*>(text.data());
    out.avail_in = static_cast<uInt>(text.size());
    out.next_out = reinterpret_cast<Bytef*>(compressed.data());
    out.avail_out = static_cast<uInt>(compressed.size());
    TAHOMA_CHECK(deflate(&out, Z_SYNC_FLUSH) == Z_OK && out.avail_out > 0);
    compressed.resize(compressed.size() - out.avail_out);
    return compressed;
  }

  z_stream in{};
  z_stream out{};
};

SpdyFrames::SpdyFrames(Handlers handlers)
    : handlers_(std::move(handlers)), compression_(std::make_unique<Compression>()) {}

SpdyFrames::~SpdyFrames() = default;

absl::Status SpdyFrames::Receive(std::string_view bytes) {
  in_ += bytes;
  std::size_t at = 0;
  while (in_.size() - at >= kHeadBytes) {
    const std::string_view head = std::string_view(in_).substr(at, kHeadBytes);
    const std::uint32_t first = NumberAt(head, 4);
    const bool control = (first & kControlBit) != 0;
    const bool end = (static_cast<std::uint8_t>(head[4]) & kFin) != 0;
    const std::size_t length = NumberAt(head.substr(5), 3);
    if (length > (control ? kControlFrameMost : kDataFrameMost)) {
      return InvalidArgument("a SPDY frame of {} bytes is too long", length);
    }
    if (in_.size() - at < kHeadBytes + length) break;
    const std::string payload = in_.substr(at + kHeadBytes, length);
    at += kHeadBytes + length;
    if (!control) {
      handlers_.data(first, payload, end);
      continue;
    }
    if (((first >> 16U) & 0x7fffU) != kVersion) {
      return InvalidArgument("a SPDY frame of version {}; 3 is known", (first >> 16U) & 0x7fffU);
    }
    TAHOMA_RETURN_IF_ERROR(ReceiveControl(static_cast<std::uint16_t>(first & 0xffffU), payload));
  }
  in_.erase(0, at);
  return absl::OkStatus();
}

// Frames of other types need no answer: settings, windows, and farewells.
absl::Status SpdyFrames::ReceiveControl(std::uint16_t type, std::string_view payload) {
  if (type == kSynStream) return OpenStream(payload);
  if (type == kRstStream || type == kPing) {
    if (payload.size() < 4) return InvalidArgument("a SPDY frame of type {} is too short", type);
    if (type == kRstStream) {
      handlers_.reset(NumberAt(payload, 4));
    } else {
      AppendNumber(out_, kControlBit | (std::uint32_t{kVersion} << 16U) | kPing, 4);
      AppendNumber(out_, 4, 4);
      out_ += payload.substr(0, 4);
    }
  }
  return absl::OkStatus();
}

absl::Status SpdyFrames::OpenStream(std::string_view payload) {
  constexpr std::size_t kBeforeHeaders = 10;  // stream, its parent, priority and slot
  if (payload.size() < kBeforeHeaders) return InvalidArgument("a SPDY stream without headers");
  const std::uint32_t stream = NumberAt(payload, 4) & ~kControlBit;
  TAHOMA_ASSIGN_OR_RETURN(const std::string block,
                          compression_->Read(payload.substr(kBeforeHeaders)));
  std::string_view rest = block;
  std::map<std::string, std::string> headers;
  const auto word = [&]() -> std::optional<std::string_view> {
    if (rest.size() < 4) return std::nullopt;
    const std::size_t length = NumberAt(rest, 4);
    rest.remove_prefix(4);
    if (length > rest.size()) return std::nullopt;
    const std::string_view text = rest.substr(0, length);
    rest.remove_prefix(length);
    return text;
  };
  if (rest.size() < 4) return InvalidArgument("the headers of a SPDY stream are cut short");
  const std::uint32_t count = NumberAt(rest, 4);
  rest.remove_prefix(4);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto name = word();
    const auto value = name ? word() : std::nullopt;
    if (!value) return InvalidArgument("the headers of a SPDY stream are cut short");
    std::string lower(*name);
    std::ranges::transform(lower, lower.begin(), AsciiLower);
    headers[lower] = std::string(*value);
  }
  handlers_.opened(stream, headers);
  return absl::OkStatus();
}

void SpdyFrames::Reply(std::uint32_t stream) {
  const std::string headers = compression_->Write(std::string(4, '\0'));
  AppendNumber(out_, kControlBit | (std::uint32_t{kVersion} << 16U) | kSynReply, 4);
  AppendNumber(out_, static_cast<std::uint32_t>(4 + headers.size()), 4);
  AppendNumber(out_, stream, 4);
  out_ += headers;
}

void SpdyFrames::Data(std::uint32_t stream, std::string_view bytes, bool end) {
  AppendNumber(out_, stream, 4);
  AppendNumber(out_, end ? kFin : 0, 1);
  AppendNumber(out_, static_cast<std::uint32_t>(bytes.size()), 3);
  out_ += bytes;
}

void SpdyFrames::Reset(std::uint32_t stream, std::uint32_t code) {
  AppendNumber(out_, kControlBit | (std::uint32_t{kVersion} << 16U) | kRstStream, 4);
  AppendNumber(out_, 8, 4);
  AppendNumber(out_, stream, 4);
  AppendNumber(out_, code, 4);
}

std::string SpdyFrames::TakeOut() { return std::exchange(out_, {}); }

}  // namespace tahoma::sim
