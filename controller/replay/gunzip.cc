#include "controller/replay/gunzip.h"

#include <zlib.h>

#include <array>

#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header

// Ends the stream with its scope.
class Inflater {
 public:
  Inflater() { TAHOMA_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK); }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

}  // namespace

bool IsGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

absl::StatusOr<std::string> Gunzip(std::string_view bytes, std::size_t bytes_most) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::string input(bytes);  // zlib's input is not const
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  std::string text;
  std::array<char, 1U << 16U> chunk{};
  for (;;) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    text.append(chunk.data(), chunk.size() - stream.avail_out);
    if (text.size() > bytes_most) {
      return InvalidArgument("more than {} bytes when decompressed; cut the trace", bytes_most);
    }
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) return text;
      if (inflateReset(&stream) == Z_OK) continue;  // several files, one after the other
    }
    if (result != Z_OK || (stream.avail_in == 0 && stream.avail_out != 0)) {
      return InvalidArgument("the compressed file is damaged or cut off; compress it with gzip");
    }
  }
}

}  // namespace tahoma::controller
