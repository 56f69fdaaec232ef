#include "controller/apiserver/request/pieces.h"

#include <algorithm>
#include <utility>

namespace tahoma::controller::apiserver {

void Pieces::Share(std::shared_ptr<const void> owner, std::string_view text) {
  if (text.empty()) return;
  size_ += text.size();
  pieces_.push_back({.owner = std::move(owner), .text = text});
}

void Pieces::Add(std::string text) {
  added_ += text.capacity();
  const auto own = std::make_shared<const std::string>(std::move(text));
  Share(own, *own);
}

void Pieces::Append(Pieces more) {
  for (std::size_t i = more.next_; i < more.pieces_.size(); ++i) {
    Share(std::move(more.pieces_[i].owner), more.pieces_[i].text);
  }
  added_ += more.added_;
}

void Pieces::DrainInto(std::string& out, std::size_t most) {
  for (const std::size_t begin = out.size(); size_ > 0 && out.size() < begin + most;) {
    Piece& piece = pieces_[next_];
    const std::string_view text = piece.text.substr(0, most);
    out += text;
    size_ -= text.size();
    piece.text.remove_prefix(text.size());
    if (!piece.text.empty()) continue;
    piece.owner.reset();
    ++next_;
  }
  if (size_ > 0) return;
  pieces_.clear();
  next_ = 0;
  added_ = 0;
}

std::string Pieces::Text() && {
  std::string text;
  text.reserve(size_);
  while (!empty()) DrainInto(text, size_);
  return text;
}

}  // namespace tahoma::controller::apiserver
