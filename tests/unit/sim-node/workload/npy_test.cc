// Arrays of numpy: what is taken, what is written, and what is refused.

#include "sim-node/workload/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <span>

#include "lib/base/status.h"
#include "lib/numeric/convert.h"

namespace tahoma::sim {
namespace {

using ::testing::HasSubstr;

isa::Buffer Tensor(ElementType type, std::vector<std::int64_t> shape) {
  return {.name = "a", .memory = isa::Memory::kHbm, .type = type, .shape = std::move(shape)};
}

std::string Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// As numpy.save writes it, version 1.
std::string File(const std::string& type, const std::string& shape, const std::string& elements,
                 const std::string& order = "False") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize(118, ' ');
  header.back() = '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         elements;
}

std::string_view Complaint(const std::string& file, const isa::Buffer& tensor) {
  static std::string kept;
  const auto array = ParseNpy(file);
  const absl::Status status = array.ok() ? ElementsOf(*array, tensor).status() : array.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  kept = Message(status);
  return kept;
}

TEST(NpyTest, AnArrayComesBackAsItWasWritten) {
  const std::string elements = Bytes({1, -2, 3.5, 0, 1e-40F, 7});
  const isa::Buffer tensor = Tensor(ElementType::kFp32, {2, 3});
  const std::string file = MakeNpy(tensor, elements);
  EXPECT_EQ((file.size() - elements.size()) % 64, 0U);  // numpy aligns elements
  const auto array = ParseNpy(file);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->type, "<f4");
  EXPECT_EQ(array->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(*ElementsOf(*array, tensor), elements);
}

TEST(NpyTest, Fp32IsRoundedToATensorsTypeAndBf16IsWrittenAsFp32) {
  const isa::Buffer tensor = Tensor(ElementType::kBf16, {3});
  const std::string file = File("<f4", "(3,)", Bytes({1.00390625F, 1.01171875F, -3e38F}));
  const std::string elements = *ElementsOf(*ParseNpy(file), tensor);
  const std::string again = MakeNpy(tensor, elements);
  const auto array = ParseNpy(again);
  EXPECT_EQ(array->type, "<f4");
  EXPECT_EQ(array->elements, Bytes({1.0F, 1.015625F, -2.9908e38F}).substr(0, 8) +
                                 std::string(array->elements.substr(8)));  // ties to even
  EXPECT_EQ(*ElementsOf(*array, tensor), elements);
}

TEST(NpyTest, RawElementsOfTypesThatNumpyLacksAreTakenAsTheyAre) {
  const isa::Buffer tensor = Tensor(ElementType::kBf16, {2});
  EXPECT_EQ(*ElementsOf(*ParseNpy(File("<V2", "(2,)", "abcd")), tensor), "abcd");
  EXPECT_EQ(*ElementsOf(*ParseNpy(File("|V1", "(2,)", "ab")), Tensor(ElementType::kFp8E4m3, {2})),
            "ab");
  EXPECT_THAT(Complaint(File("<V2", "(2,)", "abcd"), Tensor(ElementType::kFp16, {2})),
              HasSubstr("type \"<V2\"; tensor a takes fp16 or float32"));
}

TEST(NpyTest, WhatDoesNotFitIsRefusedByName) {
  const isa::Buffer tensor = Tensor(ElementType::kFp32, {2, 2});
  const std::string four = Bytes({1, 2, 3, 4});
  EXPECT_THAT(Complaint(File("<f4", "(4,)", four), tensor), HasSubstr("[4]; tensor a is [2, 2]"));
  EXPECT_THAT(Complaint(File("<f8", "(2, 2)", four + four), tensor), HasSubstr("\"<f8\""));
  EXPECT_THAT(Complaint(File("<f4", "(2, 2)", four.substr(1)), tensor), HasSubstr("15 bytes"));
  EXPECT_THAT(Complaint(File("<f4", "(2, 2)", four, "True"), tensor), HasSubstr("column-major"));
  EXPECT_THAT(Complaint(File("<f4", "(2, x)", four), tensor), HasSubstr("shape"));
  EXPECT_THAT(Complaint(File("<f4", "2", four), tensor), HasSubstr("no shape"));
  EXPECT_THAT(Complaint("PK\x03\x04 an .npz is a zip", tensor), HasSubstr(".npy"));
}

TEST(NpyTest, NoCutFileIsTakenOrCrashes) {
  const std::string file = File("<f4", "(2, 2)", Bytes({1, 2, 3, 4}));
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    const auto array = ParseNpy(cut);
    if (array.ok()) {
      EXPECT_FALSE(ElementsOf(*array, Tensor(ElementType::kFp32, {2, 2})).ok()) << size;
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
