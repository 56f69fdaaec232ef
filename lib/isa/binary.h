// The binary form of a program, for programs (docs/formats/program.md).
//
//   const std::string bytes = Encode(program);
//   TAHOMA_ASSIGN_OR_RETURN(const Program same, Decode(bytes));
//   TAHOMA_RETURN_IF_ERROR(CheckProgram(same));        // check.h
//
// The same program has the same bytes, and no other bytes are read as that program.
//
// Scope: the form. A program that was read may still be one that cannot run.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/isa/program.h"

namespace tahoma::isa {

inline constexpr std::string_view kBinaryMagic = "TRNP";
inline constexpr std::uint16_t kBinaryVersion = 2;
// Magic, version, SHA-256 of the body.
inline constexpr std::size_t kBinaryHeaderBytes = 4 + 2 + 32;

// The program has at most as many parts as CheckProgram lets pass.
std::string Encode(const Program& program);

// kInvalidArgument for bytes that are no program: the message says at which byte of the body, and
// what was expected. kDataLoss for another checksum, kUnimplemented for another version. Memory
// grows with the bytes that are there, never by a number in them. Enumerators and the numbers of
// buffers are valid.
absl::StatusOr<Program> Decode(std::string_view bytes);

}  // namespace tahoma::isa
