// Compares a document with a file under tests/golden/apiserver.
//
//   ExpectGolden("gang_openapi.json", document);
//
// On a difference the new text is written to the temporary folder of the test run and named in the
// failure, so that it can be looked at and copied.

#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "lib/base/json.h"

namespace tahoma::controller::apiserver {

inline void ExpectGolden(const std::string& name, const Json& document) {
  const std::string path = "tests/golden/apiserver/" + name;
  std::ifstream file(path);
  std::stringstream expected;
  expected << file.rdbuf();
  const std::string actual = document.dump(1) + "\n";
  if (expected.str() == actual) return;
  const std::string fresh = ::testing::TempDir() + name;
  std::ofstream(fresh) << actual;
  ADD_FAILURE() << path << " differs from what was made; see " << fresh;
}

}  // namespace tahoma::controller::apiserver
