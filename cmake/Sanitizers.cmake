# TAHOMA_SANITIZE=address instruments everything we compile with ASan and UBSan, =thread with TSan.
set(TAHOMA_SANITIZE "" CACHE STRING "empty, address or thread")
if(TAHOMA_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(TAHOMA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(TAHOMA_SANITIZE)
  message(FATAL_ERROR "TAHOMA_SANITIZE is '${TAHOMA_SANITIZE}'; it may be empty, address or thread")
endif()

# With TAHOMA_FUZZ (clang) every branch is counted, for libFuzzer; tests/fuzz links its targets with it.
option(TAHOMA_FUZZ "build the targets of tests/fuzz with libFuzzer" OFF)
if(TAHOMA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
