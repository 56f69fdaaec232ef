// What a fuzz target defines: its seeds, and one run on arbitrary bytes that must not crash.

#pragma once

#include <string>
#include <string_view>
#include <vector>

std::vector<std::string> FuzzSeeds();

// Any answer is right but a crash, a sanitizer's report or a broken property (TAHOMA_CHECK).
void FuzzOne(std::string_view input);
