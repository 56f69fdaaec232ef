// Arrays in numpy's file form (.npy), as the elements of a program's tensors.
//
// A tensor takes an array of its own type, or fp32 numbers, which are rounded to nearest even.
// numpy has no bf16 and fp8: ml_dtypes' arrays of these, which numpy saves as raw bytes, are taken
// as they are, and such a tensor is written as fp32, which has every value.
//
// The form: numpy's NEP 1, versions 1 to 3; row-major, little endian.
//
// Thread safety: values and pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/isa/program.h"

namespace tahoma::sim {

struct NpyArray {
  std::string type = {};  // numpy's, as "<f4"
  std::vector<std::int64_t> shape = {};
  std::string_view elements = {};  // of the text that was parsed
};

// kInvalidArgument says what is not as numpy writes it.
absl::StatusOr<NpyArray> ParseNpy(std::string_view file);

// kInvalidArgument for another shape, or a type that the tensor does not take.
absl::StatusOr<std::string> ElementsOf(const NpyArray& array, const isa::Buffer& tensor);

// `elements` are the tensor's.
std::string MakeNpy(const isa::Buffer& tensor, std::string_view elements);

}  // namespace tahoma::sim
