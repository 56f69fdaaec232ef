// Programs of a NeuronCore, as text or as the body of the binary form, which gets a checksum. A
// program of one form is the same in the other. A checked program is assembled: each buffer
// has an address, and instructions wait for earlier ones only.

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/isa/assemble.h"
#include "lib/isa/binary.h"
#include "lib/isa/check.h"
#include "lib/isa/text.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma;
using namespace tahoma::isa;

constexpr char kBinary = '\0';  // begins an input whose rest is a body

std::string WithHeader(std::string_view body) {
  std::string bytes(kBinaryMagic);
  bytes += static_cast<char>(kBinaryVersion);
  bytes += '\0';
  for (const std::uint8_t byte : Sha256(body)) bytes += static_cast<char>(byte);
  return bytes.append(body);
}

void CheckSound(const Program& program) {
  TAHOMA_CHECK_OK(CheckProgram(program));
  for (const Buffer& buffer : program.buffers) TAHOMA_CHECK(buffer.address.has_value());
}

void FuzzProgram(const Program& program) {
  const auto decoded = Decode(Encode(program));
  TAHOMA_CHECK_OK(decoded.status());
  TAHOMA_CHECK(*decoded == program);
  if (!CheckProgram(program).ok()) return;
  const std::string text = FormatText(program);
  const auto read = ParseText(text, program.name);
  TAHOMA_CHECK_OK(read.status());
  TAHOMA_CHECK(FormatText(*read) == text);
  TAHOMA_CHECK(read->buffers == program.buffers);
  for (std::size_t at = 0; at < program.instructions.size(); ++at) {
    TAHOMA_CHECK(read->instructions[at].operands == program.instructions[at].operands);
  }
  const auto assembled = Assemble(program);
  if (!assembled.ok()) {
    TAHOMA_CHECK(absl::IsResourceExhausted(assembled.status()));
    return;
  }
  CheckSound(assembled->program);
  TAHOMA_CHECK(assembled->waits.size() == program.instructions.size());
  for (std::size_t at = 0; at < assembled->waits.size(); ++at) {
    for (const std::uint32_t earlier : assembled->waits[at]) TAHOMA_CHECK(earlier < at);
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  if (!input.starts_with(kBinary)) {
    if (const auto program = ParseText(input, "fuzz"); program.ok()) FuzzProgram(*program);
    return;
  }
  const std::string bytes = WithHeader(input.substr(1));
  const auto program = Decode(bytes);
  if (!program.ok()) return;
  TAHOMA_CHECK(Encode(*program) == bytes);
  FuzzProgram(*program);
}
