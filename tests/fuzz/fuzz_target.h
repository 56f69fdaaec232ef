// The function that a fuzz target defines: one run on arbitrary bytes that must not crash.
//
// Thread safety: runs come one after the other.

#pragma once

#include <string>
#include <string_view>
#include <vector>

// Only of a target that is a regression test with a fixed seed (fuzz_main.cc); the inputs of the
// others are files in corpus/.
std::vector<std::string> FuzzSeeds();

// Any answer is right but a crash, a sanitizer's report or a broken property (TAHOMA_CHECK).
void FuzzOne(std::string_view input);
