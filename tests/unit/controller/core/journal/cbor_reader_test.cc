// CBOR is read as nlohmann's library has written it, and refused where it is anything else.

#include "controller/core/journal/cbor_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

std::string Cbor(const Json& value) {
  std::string bytes;
  Json::to_cbor(value, bytes);
  return bytes;
}

TEST(CborReaderTest, NumbersOfEveryLengthAreRead) {
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{23}, std::int64_t{24}, std::int64_t{255}, std::int64_t{256},
        std::int64_t{65'535}, std::int64_t{65'536}, std::int64_t{1} << 40,
        std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}, std::int64_t{-24},
        std::int64_t{-25}, -(std::int64_t{1} << 33), std::numeric_limits<std::int64_t>::min()}) {
    const std::string bytes = Cbor(number);
    CborReader reader(bytes);
    EXPECT_EQ(reader.Integer(), number);
    reader.Finish();
  }
  const std::string bytes = Cbor(std::numeric_limits<std::uint64_t>::max());
  EXPECT_THROW(CborReader(bytes).Integer(), std::out_of_range);
}

TEST(CborReaderTest, ItemsThatLaterVersionsAddAreSkipped) {
  const std::string bytes = Cbor({"a", nullptr, true, {1, {{"deep", {-7, "x"}}}}, 1.5});
  CborReader reader(bytes);
  CborItems items(reader);
  EXPECT_EQ(items.Next().Text(), "a");
  EXPECT_TRUE(items.Next().TryConsumeNull());
  EXPECT_FALSE(reader.TryConsumeNull());
  EXPECT_TRUE(items.Next().Bool());
  items.SkipRest();
  reader.Finish();
  EXPECT_THROW(items.Next(), std::out_of_range);
}

TEST(CborReaderTest, WhatIsNotExpectedIsRefused) {
  const auto read = [](const std::string& bytes, const std::function<void(CborReader&)>& take) {
    CborReader reader(bytes);
    take(reader);
    reader.Finish();
  };
  const auto skip = [](CborReader& reader) { reader.Skip(); };
  EXPECT_THROW(read(Cbor("text"), [](CborReader& r) { r.Integer(); }), std::out_of_range);
  EXPECT_THROW(read(Cbor(1), [](CborReader& r) { r.Text(); }), std::out_of_range);
  EXPECT_THROW(read(Cbor(nullptr), [](CborReader& r) { r.Bool(); }), std::out_of_range);
  EXPECT_THROW(read(Cbor({1, 2}), [](CborReader& r) { r.Map(); }), std::out_of_range);
  EXPECT_THROW(read(Cbor(1) + Cbor(2), skip), std::out_of_range) << "two items";
  EXPECT_THROW(read("", skip), std::out_of_range);
  EXPECT_THROW(read("\x9f\x01\xff", skip), std::out_of_range) << "an indefinite length";
  EXPECT_THROW(read("\xbb\xff\xff\xff\xff\xff\xff\xff\xff", skip), std::out_of_range);
  EXPECT_THROW(read("\x9b\xff\xff\xff\xff\xff\xff\xff\xff", [](CborReader& r) { r.Array(); }),
               std::out_of_range)
      << "room for so many items is not made";
  EXPECT_THROW(read("\x7a\xff\xff\xff\xff", [](CborReader& r) { r.Text(); }), std::out_of_range);
  EXPECT_NO_THROW(read(std::string(100'000, '\x81') + '\x01', skip)) << "no call for each level";
}

// Every beginning of a text of items is refused, and nothing beyond its end is looked at.
TEST(CborReaderTest, ATextThatWasCutIsRefused) {
  const std::string whole = Cbor({{"name", "train"}, {"list", {1, 1'000, 100'000, -5}}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CborReader reader(std::string_view(cut.data(), cut.size()));
    EXPECT_THROW(reader.Skip(), std::out_of_range) << size;
  }
}

}  // namespace
}  // namespace tahoma::controller
