// Tokens of CEL source text (CEL specification, langdef.md "Syntax").
//
// Thread safety: one Lexer belongs to one thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/kube/cel/value.h"

namespace tahoma::kube::internal {

enum class CelTokenKind : std::uint8_t { kEnd, kIdentifier, kLiteral, kSymbol };

struct CelToken {
  CelTokenKind kind = CelTokenKind::kEnd;
  std::size_t at = 0;
  std::string text = {};  // of identifiers and symbols
  CelValue literal = {};
};

class CelLexer {
 public:
  explicit CelLexer(std::string_view source) : source_(source) {}

  absl::StatusOr<CelToken> Next();

 private:
  void SkipSpace();
  absl::StatusOr<CelToken> Word();
  absl::StatusOr<CelToken> Number();
  absl::StatusOr<CelToken> Quoted(bool raw, bool bytes);
  absl::Status Escape(bool bytes, std::string& into);
  absl::StatusOr<std::uint32_t> Digits(std::size_t count, int base);
  bool Rest(std::string_view prefix) const { return source_.substr(at_).starts_with(prefix); }

  std::string_view source_;
  std::size_t at_ = 0;
};

// Returns whether the name is reserved: CEL specification, langdef.md "Syntax", RESERVED and the
// words of literals and operators.
bool IsCelWord(std::string_view name);

// Makes the error "line:column: message"; both count from 1, columns in characters.
absl::Status CelErrorAt(std::string_view source, std::size_t at, std::string_view message);

}  // namespace tahoma::kube::internal
