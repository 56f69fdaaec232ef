// Frames of the wire: what is decoded encodes to the same bytes.

#include "lib/base/check.h"
#include "lib/wire/frame.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> FuzzSeeds() {
  using tahoma::wire::EncodeFrame;
  return {*EncodeFrame({}), *EncodeFrame({.header = R"({"id":1,"method":"inventory"})"}),
          *EncodeFrame({.header = "{}", .payload = std::string(100, 'x')})};
}

void FuzzOne(std::string_view input) {
  const auto frame = tahoma::wire::DecodeFrame(input);
  if (frame.ok()) TAHOMA_CHECK(*tahoma::wire::EncodeFrame(*frame) == input);
}
