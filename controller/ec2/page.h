// Pages of lists: MaxResults, and a NextToken that is good for one request only.
//
// A token holds the key of the last row shown: rows that come or go between two pages make no other
// row appear twice or be left out. A token also holds a digest of the request, and survives a
// restart or a change of the controller.
//
// Scope: the form of pages. Tokens are no secret and no right: a forged token shows the forger's
// own rows.
//
// Thread safety: plain values.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/ec2/parameters.h"
#include "lib/base/digest.h"

namespace tahoma::controller::ec2 {

inline constexpr std::size_t kPageRowsMost = 1000;

struct PageRequest {
  std::size_t rows_most = kPageRowsMost;
  std::string after = {};  // the key of the last row shown; empty: none
  Sha256Digest binding = {};
};

// `binding` is a digest of the request without its page. `usual` rows when MaxResults is not given.
PageRequest ReadPage(Reader& reader, const Sha256Digest& binding, std::size_t usual = kPageRowsMost,
                     std::size_t most = kPageRowsMost, std::size_t least = 1);

std::string MakeToken(std::string_view last_key, const Sha256Digest& binding);
// InvalidPaginationToken for a text that MakeToken did not make for the same request.
absl::StatusOr<std::string> KeyOfToken(std::string_view token, const Sha256Digest& binding);

template <typename T>
class Page {
 public:
  explicit Page(PageRequest request) : request_(std::move(request)) {}

  // Takes the next row in the order of keys, unless an earlier page had it. False when the page is
  // full and a further row is known.
  bool Offer(std::string_view key, const T& row) {
    if (!request_.after.empty() && key <= request_.after) return true;
    if (rows_.size() == request_.rows_most) {
      next_token_ = MakeToken(last_key_, request_.binding);
      return false;
    }
    rows_.push_back(row);
    last_key_ = key;
    return true;
  }

  const std::vector<T>& rows() const { return rows_; }
  const std::string& next_token() const { return next_token_; }

 private:
  const PageRequest request_;
  std::vector<T> rows_;
  std::string last_key_;
  std::string next_token_;
};

}  // namespace tahoma::controller::ec2
