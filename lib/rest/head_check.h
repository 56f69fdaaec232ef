// Whether the head of a request is written as RFC 9112 demands, byte by byte as it is read.
//
//   HeadCheck check;
//   check.Take("POST /a HTTP/1.1\r\nContent-Length : 5\r\n");
//   check.malformed();                     // true: nothing stands between a name and its colon
//
// httplib drops lines that it cannot read, and with a line its meaning: a Content-Length that a
// proxy believed and this server did not see would make the body the next request.
//
// Scope: form only; what the fields say is http.cc's business.
//
// Thread safety: one thread per object.

#pragma once

#include <string>
#include <string_view>

namespace tahoma::rest {

class HeadCheck {
 public:
  void Take(std::string_view bytes) {
    for (const char c : bytes) Take(c);
  }
  bool malformed() const { return malformed_; }

 private:
  enum class Part { kRequestLine, kLineStart, kName, kValue, kLineEnd, kEnd };

  void Take(char c);
  void EndLine();

  Part part_ = Part::kRequestLine;
  int spaces_ = 0;    // of the request line
  std::string name_;  // of the field, as far as it decides a body's length
  bool has_value_ = false;
  bool malformed_ = false;
};

}  // namespace tahoma::rest
