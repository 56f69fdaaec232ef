#include "lib/rest/head_check.h"

#include "lib/base/ascii.h"

namespace tahoma::rest {
namespace {

constexpr std::string_view kLength = "Content-Length";
constexpr std::string_view kEncoding = "Transfer-Encoding";

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// RFC 9110, 5.6.2: token.
bool IsToken(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

}  // namespace

void HeadCheck::Take(char c) {
  switch (part_) {
    case Part::kRequestLine:
      if (c == '\r') {
        malformed_ = malformed_ || spaces_ != 2;
        part_ = Part::kLineEnd;
        return;
      }
      spaces_ += c == ' ' ? 1 : 0;
      malformed_ = malformed_ || IsControl(c);
      return;
    case Part::kLineStart:
      name_.clear();
      has_value_ = false;
      if (c == '\r') {
        part_ = Part::kEnd;
        return;
      }
      malformed_ = malformed_ || !IsToken(c);
      name_ += c;
      part_ = Part::kName;
      return;
    case Part::kName:
      if (c == ':') {
        part_ = Part::kValue;
        return;
      }
      malformed_ = malformed_ || !IsToken(c);
      if (name_.size() <= kEncoding.size()) name_ += c;
      return;
    case Part::kValue:
      if (c == '\r') {
        EndLine();
        return;
      }
      has_value_ = has_value_ || (c != ' ' && c != '\t');
      malformed_ = malformed_ || (IsControl(c) && c != '\t');
      return;
    case Part::kLineEnd:
    case Part::kEnd:
      malformed_ = malformed_ || c != '\n';
      if (part_ == Part::kLineEnd) part_ = Part::kLineStart;
      return;
  }
}

void HeadCheck::EndLine() {
  part_ = Part::kLineEnd;
  for (const std::string_view framing : {kLength, kEncoding}) {
    malformed_ = malformed_ || (EqualsIgnoringCase(name_, framing) && !has_value_);
  }
}

}  // namespace tahoma::rest
