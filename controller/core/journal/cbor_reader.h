// Reads data items of CBOR one after the other, as they are expected, without a tree of values.
//
// An unexpected item throws std::out_of_range, because the bytes may be of any form; the reader of
// a record catches the exception in one place (block_record.cc). A controller with 100,000 Capacity
// Blocks reads every block when it starts; a tree of values would take longer than all the rest.
//
// Scope: the part of RFC 8949 in journal records: integers, texts, arrays and maps of definite
// length, booleans and null.
//
// Thread safety: a reader belongs to one thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tahoma::controller {

// Kinds of data items: RFC 8949, section 3.1.
struct CborMajor {
  static constexpr unsigned kPositive = 0, kNegative = 1, kBytes = 2, kText = 3, kArray = 4,
                            kMap = 5, kTag = 6, kSimple = 7;
};

// The head of one data item: RFC 8949, section 3.
struct CborHead {
  unsigned major = 0;
  unsigned info = 0;
  std::uint64_t argument = 0;  // a number, a length in bytes, or a count of items
};

// Takes a head from the front of `bytes`, or returns false when they end in its midst.
bool ConsumeHead(std::string_view& bytes, CborHead& head);

class CborReader {
 public:
  // `bytes` must outlive the reader and the texts that it gives.
  explicit CborReader(std::string_view bytes) : rest_(bytes) {}

  std::int64_t Integer();
  bool Bool();
  std::string_view Text();
  // Return how many items, or pairs of a text and an item, are next.
  std::uint64_t Array();
  std::uint64_t Map();
  // Takes the next item if the item is null.
  bool TryConsumeNull();
  // Takes the next item, whatever it is.
  void Skip();
  // Throws when anything is left.
  void Finish() const;

 private:
  CborHead Head();
  CborHead HeadOf(unsigned major, const char* what);
  std::string_view Bytes(std::uint64_t count);

  std::string_view rest_;
};

// The items of an array, which begins where the reader is.
class CborItems {
 public:
  explicit CborItems(CborReader& reader) : reader_(reader), left_(reader.Array()) {}

  bool more() const { return left_ > 0; }
  // Returns the reader for the next item, which must be taken whole. Throws when there is none.
  CborReader& Next();
  // Takes items that later versions have added.
  void SkipRest() {
    while (more()) Next().Skip();
  }

 private:
  CborReader& reader_;
  std::uint64_t left_;
};

}  // namespace tahoma::controller
