// The binary form: read and written, and bytes that are no program.

#include "lib/isa/binary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "lib/base/digest.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/isa/check.h"
#include "tests/unit/lib/isa/random_program.h"

namespace tahoma::isa {
namespace {

using ::testing::HasSubstr;

std::string Sealed(std::string_view body) {
  std::string bytes = "TRNP";
  bytes += '\2';
  bytes += '\0';
  for (const std::uint8_t byte : Sha256(body)) bytes += static_cast<char>(byte);
  return bytes.append(body);
}

std::string Wrong(std::string_view bytes) {
  const auto program = Decode(bytes);
  return program.ok() ? "OK" : std::string(Message(program.status()));
}

TEST(BinaryTest, AProgramThatWasWrittenIsReadAsTheSame) {
  Rng rng(11);
  for (int run = 0; run < 150; ++run) {
    const Program program = RandomProgram(rng, {.two_cores = rng.Chance(1, 2)});
    const std::string bytes = Encode(program);
    const auto read = Decode(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, program);
    EXPECT_EQ(Encode(*read), bytes);
  }
}

TEST(BinaryTest, ExtremeNumbersStayWhatTheyAre) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  Program program = {.name = std::string(255, '\xff')};
  program.Add({.name = "x", .shape = {kLeast, kMost}, .address = kLeast});
  program.instructions.push_back({.operands = {{.partition = std::numeric_limits<int>::min(),
                                                .offset = kMost,
                                                .rows = {.stride = kLeast, .count = kMost},
                                                .free = {{.stride = -1, .count = 0}}}},
                                  .line = std::numeric_limits<std::int32_t>::max()});
  EXPECT_EQ(*Decode(Encode(program)), program);
}

TEST(BinaryTest, AMatmulTakesSome40Bytes) {
  Program program;
  const BufferId s = program.Add({.name = "s", .memory = Memory::kSbuf, .shape = {128, 512}});
  const std::size_t before = Encode(program).size();
  const View view = program.Whole(s);
  program.instructions.push_back(
      {.opcode = Opcode::kMatmul, .engine = Engine::kTensor, .operands = {view, view, view}});
  EXPECT_LE(Encode(program).size() - before, 40U);
}

TEST(BinaryTest, AnyBitThatFlipsIsNoticed) {
  Rng rng(12);
  const std::string bytes = Encode(RandomProgram(rng, {.buffers = 3, .instructions = 2}));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ (1U << bit));
      EXPECT_FALSE(Decode(damaged).ok()) << at;
    }
  }
}

TEST(BinaryTest, ALostEndIsNoticedAtAnyByte) {
  Rng rng(13);
  const std::string bytes = Encode(RandomProgram(rng, {.buffers = 3, .instructions = 2}));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Decode(bytes.substr(0, size)).ok());
    if (size < kBinaryHeaderBytes) continue;
    const std::string body = bytes.substr(kBinaryHeaderBytes, size - kBinaryHeaderBytes);
    EXPECT_EQ(Decode(Sealed(body)).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(Wrong(Sealed(bytes.substr(kBinaryHeaderBytes) + "x")), HasSubstr("expected the end"));
}

TEST(BinaryTest, WhatIsNoProgramIsToldApart) {
  EXPECT_EQ(Wrong("TRNP"), "4 bytes that are no program: expected TRNP and a header of 38 bytes");
  std::string later = Sealed("");
  later[4] = '\3';
  EXPECT_EQ(Wrong(later), "a program of version 3; this reader knows version 2");
  EXPECT_EQ(Decode(later).status().code(), absl::StatusCode::kUnimplemented);
  std::string damaged = Sealed("");
  damaged[10] ^= 1;
  EXPECT_EQ(Wrong(damaged), "a damaged program: the SHA-256 of its 0 bytes is not the header's");
  EXPECT_EQ(Decode(damaged).status().code(), absl::StatusCode::kDataLoss);
}

TEST(BinaryTest, NumbersOfABodyAreNotTrusted) {
  using namespace std::string_literals;
  EXPECT_EQ(Wrong(Sealed("\0\0\0"s)), "OK");
  EXPECT_EQ(Wrong(Sealed("\0\xff\xff\x03"s)),
            "byte 4 of the program's body: it ends within a number");
  EXPECT_EQ(Wrong(Sealed("\0\xff\xff\xff\xff\x0f"s)),
            "byte 6 of the program's body: buffers 4294967295; expected less than 1048577");
  EXPECT_EQ(Wrong(Sealed("\x7f"s)), "byte 1 of the program's body: it ends within a text");
  EXPECT_EQ(Wrong(Sealed("\x80\0\0\0"s)),
            "byte 2 of the program's body: a number that is not in its shortest form or has more "
            "than 64 bits");
  EXPECT_EQ(Wrong(Sealed("\0\1\1x\3"s)),
            "byte 5 of the program's body: memory 3; expected less than 3");
  EXPECT_EQ(
      Wrong(Sealed("\0\0\1\x7f"s)),
      fmt::format("byte 4 of the program's body: opcode 127; expected less than {}", kOpcodes));
  // An option that is given, and is what a program without the option has.
  EXPECT_EQ(Wrong(Sealed("\0\0\1\4\1\0\x10\0\0\0\0"s)),
            "byte 8 of the program's body: an option that says what it says when it is left out");
  EXPECT_EQ(Wrong(Sealed("\0\0\1\0\0\0\0\0\0\1\0"s)),
            "byte 11 of the program's body: buffer 0; expected less than 0");
}

}  // namespace
}  // namespace tahoma::isa
