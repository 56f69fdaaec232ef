# The warnings every target is built with, as errors. Both g++ 12 and clang 14 accept them.
add_library(tahoma_warnings INTERFACE)
target_compile_options(tahoma_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety;-Werror=thread-safety>
  # With optimisation g++ 12 reports false positives of these kinds inside std::string (GCC bugs
  # 105329, 105651) and std::variant (105562); clang and the sanitizers still look.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow>)
