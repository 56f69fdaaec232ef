// A text in pieces that other owners share: the objects of a list, the line of an event.
//
//   Pieces list;
//   list.Add(R"({"items":[)");
//   list.Share(object, object->bytes);       // no copy: the object lives as long as the piece
//   list.Add("]}");
//   list.DrainInto(out, 64 << 10);            // the next 64 KiB
//
// A list therefore costs each of its readers 32 bytes a piece, however large the objects are.
//
// Scope: bytes in their order.
//
// Thread safety: a value; shared text must not change.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tahoma::controller::apiserver {

class Pieces {
 public:
  // `text` must not change as long as `owner` lives; without an owner it must live for ever.
  void Share(std::shared_ptr<const void> owner, std::string_view text);
  void Add(std::string text);
  void Append(Pieces more);

  // The bytes that have not been taken.
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The memory of these pieces alone: the pieces themselves, and added texts.
  std::size_t own_bytes() const { return pieces_.size() * sizeof(Piece) + added_; }

  // Appends the next bytes to `out` and forgets them: whole pieces until `most` bytes are reached,
  // and at most `most` bytes of a longer piece.
  void DrainInto(std::string& out, std::size_t most);
  // Returns all bytes that are left.
  std::string Text() &&;

 private:
  struct Piece {
    std::shared_ptr<const void> owner;
    std::string_view text;
  };

  std::vector<Piece> pieces_;
  std::size_t next_ = 0;  // the first piece that is not taken whole
  std::size_t size_ = 0;
  std::size_t added_ = 0;
};

}  // namespace tahoma::controller::apiserver
