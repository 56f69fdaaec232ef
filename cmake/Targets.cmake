# One function per kind of target. Every source file is named; nothing is globbed.
#
#   tahoma_library(NAME kube HDRS transport.h SRCS transport.cc DEPS tahoma::base)
#   tahoma_proto(NAME dra_proto PROTOS dra_v1.proto)          # messages and gRPC services
#   tahoma_binary(NAME controller SRCS main.cc DEPS tahoma::kube)
#   tahoma_test(NAME torus_test SRCS shape_test.cc DEPS tahoma::torus [LABELS unit sanitize] [BATCHES])
#   tahoma_bench(NAME plan_bench SRCS plan_bench.cc DEPS tahoma::plan)
#   tahoma_script_test(NAME kubectl COMMAND script args… [LABELS scenario] [TIMEOUT 60])
#
# Third-party libraries by short names: rocksdb, httplib, yaml, libyaml, wslay, grpc, re2.
option(TAHOMA_PCH "precompile third-party headers" ON)
# A library's sources are compiled in batches, as one text each: headers are read and templates made once a batch. So names
# in anonymous namespaces are unique in a library. Of the tests those with the word BATCHES are compiled so, too, and their
# names are as unique. OFF compiles each source alone.
option(TAHOMA_BATCHES "compile sources in batches" ON)

# Tests are compiled once and run once: in Release their own sources are optimised little, which saves a third of their
# compiling. What they test is optimised as users get it.
set(TAHOMA_TEST_OPTIMIZATION $<$<CONFIG:Release>:-Og>)

add_library(tahoma_third_party INTERFACE)
target_link_libraries(tahoma_third_party INTERFACE
  absl::status absl::statusor absl::flat_hash_map absl::flat_hash_set fmt::fmt spdlog::spdlog
  nlohmann_json::nlohmann_json Threads::Threads)
target_include_directories(tahoma_third_party INTERFACE "${CMAKE_SOURCE_DIR}")

add_library(rocksdb INTERFACE)
target_link_libraries(rocksdb INTERFACE ${ROCKSDB_LIBRARY})
add_library(httplib INTERFACE)
# Debian builds httplib as a library with these three; its headers must be read the same way.
target_compile_definitions(httplib INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT
  CPPHTTPLIB_BROTLI_SUPPORT)
target_link_libraries(httplib INTERFACE cpp-httplib OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
add_library(yaml INTERFACE)
target_link_libraries(yaml INTERFACE yaml-cpp)
add_library(libyaml INTERFACE)
target_link_libraries(libyaml INTERFACE ${LIBYAML_LIBRARY})
add_library(wslay INTERFACE)
target_link_libraries(wslay INTERFACE ${WSLAY_LIBRARY})
add_library(grpc INTERFACE)
target_link_libraries(grpc INTERFACE PkgConfig::grpcxx protobuf::libprotobuf)
add_library(re2 INTERFACE)
# Not PkgConfig::re2: its -pthread would not match the precompiled headers.
target_link_libraries(re2 INTERFACE ${re2_LINK_LIBRARIES})

# Two precompiled headers: one for libraries and programs, one for tests. Of our own only the JSON
# value is in them, which is nearly all a library's.
set(TAHOMA_PCH_HEADERS <algorithm> <chrono> <functional> <map> <memory> <optional> <set> <string>
    <string_view> <vector> <fmt/format.h> <absl/status/statusor.h>
    <absl/container/flat_hash_map.h> <lib/base/compiled_once.h> <lib/base/json.h>)
file(WRITE "${CMAKE_BINARY_DIR}/pch/empty.cc.in" "")
configure_file("${CMAKE_BINARY_DIR}/pch/empty.cc.in" "${CMAKE_BINARY_DIR}/pch/empty.cc" COPYONLY)
function(tahoma_pch name)
  add_library(${name} OBJECT "${CMAKE_BINARY_DIR}/pch/empty.cc")
  target_link_libraries(${name} PUBLIC tahoma_third_party tahoma_warnings ${ARGN})
  target_precompile_headers(${name} PRIVATE ${TAHOMA_PCH_HEADERS})
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  if(CCACHE)
    # g++ tells a header that it has seen (#pragma once) by its text. ccache drops comments before it
    # compares, and would give the precompiled header of other comments: all would be defined twice.
    set(launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
    list(INSERT launcher 3 CCACHE_COMMENTS=1)
    set(launcher "${CMAKE_SOURCE_DIR}/cmake/compile_anew.sh" ${launcher})
    set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
  endif()
endfunction()
if(TAHOMA_PCH)
  tahoma_pch(tahoma_pch_main)
  list(APPEND TAHOMA_PCH_HEADERS <gmock/gmock.h> <gtest/gtest.h>)
  tahoma_pch(tahoma_pch_test GTest::gtest GTest::gmock)
  target_compile_options(tahoma_pch_test PRIVATE ${TAHOMA_TEST_OPTIMIZATION})
endif()

function(tahoma_configure target pch)
  target_link_libraries(${target} PRIVATE tahoma_warnings)
  if(pch STREQUAL "tahoma_pch_test")  # its code was compiled so; g++ 12 crashes on a mixture
    target_compile_options(${target} PRIVATE ${TAHOMA_TEST_OPTIMIZATION})
  endif()
  if(TAHOMA_PCH)
    target_precompile_headers(${target} REUSE_FROM ${pch})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
endfunction()

function(tahoma_batches target)
  if(TAHOMA_BATCHES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # g++ takes a source within a batch for a header that others include.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

function(tahoma_library)
  cmake_parse_arguments(ARG "BATCHES" "NAME" "HDRS;SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(tahoma_${ARG_NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
    target_link_libraries(tahoma_${ARG_NAME} PUBLIC tahoma_third_party ${ARG_DEPS})
    tahoma_configure(tahoma_${ARG_NAME} tahoma_pch_main)
    if(ARG_BATCHES OR NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests/")
      tahoma_batches(tahoma_${ARG_NAME})
    endif()
  else()
    add_library(tahoma_${ARG_NAME} INTERFACE ${ARG_HDRS})
    target_link_libraries(tahoma_${ARG_NAME} INTERFACE tahoma_third_party ${ARG_DEPS})
  endif()
  add_library(tahoma::${ARG_NAME} ALIAS tahoma_${ARG_NAME})
  # Read by tests/examples.
  list(TRANSFORM ARG_HDRS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(GLOBAL APPEND PROPERTY TAHOMA_HEADERS ${ARG_HDRS})
endfunction()

add_custom_target(tahoma_generated)

# Generated code is not ours: no warnings, no precompiled header. Include it as "<stem>.pb.h".
function(tahoma_proto)
  cmake_parse_arguments(ARG "" "NAME" "PROTOS" ${ARGN})
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}")
  file(MAKE_DIRECTORY ${out})
  foreach(proto ${ARG_PROTOS})
    get_filename_component(stem ${proto} NAME_WE)
    set(made ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
    add_custom_command(OUTPUT ${made}
      COMMAND protobuf::protoc --proto_path=${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${out}
              --grpc_out=${out} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto} VERBATIM)
    list(APPEND sources ${made})
  endforeach()
  add_custom_target(tahoma_${ARG_NAME}_sources DEPENDS ${sources})
  add_dependencies(tahoma_generated tahoma_${ARG_NAME}_sources)
  add_library(tahoma_${ARG_NAME} STATIC ${sources})
  target_include_directories(tahoma_${ARG_NAME} SYSTEM PUBLIC ${out})
  target_link_libraries(tahoma_${ARG_NAME} PUBLIC grpc)
  add_library(tahoma::${ARG_NAME} ALIAS tahoma_${ARG_NAME})
endfunction()

# The programs that users run: what `make demo` needs.
add_custom_target(programs)
# What `make test-tsan` needs: test programs that start threads, and the programs that tests start.
add_custom_target(thread_tests)
add_dependencies(thread_tests programs)

function(tahoma_binary)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE tahoma_third_party ${ARG_DEPS})
  tahoma_configure(${ARG_NAME} tahoma_pch_main)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  if(NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests/")
    add_dependencies(programs ${ARG_NAME})
  elseif(CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests/support$")
    add_dependencies(thread_tests ${ARG_NAME})
  endif()
endfunction()

# Gives a program the controller's allocator: the controller, and what measures its parts
# (docs/design/0003-allocator.md). Sanitizers bring their own.
function(tahoma_use_tcmalloc target)
  if(NOT TAHOMA_SANITIZE)
    target_link_libraries(${target} PRIVATE ${TCMALLOC_LIBRARY})
  endif()
endfunction()

# The test programs with the label sanitize.
add_custom_target(sanitize_tests)

function(tahoma_test)
  cmake_parse_arguments(ARG "BATCHES" "NAME;TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  if(ARG_BATCHES)
    tahoma_batches(${ARG_NAME})
    # A local name of one test may be a global one of the next; without batches the compiler looks at each alone.
    set_target_properties(${ARG_NAME} PROPERTIES
      UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC diagnostic ignored \"-Wshadow\"")
  endif()
  target_link_libraries(${ARG_NAME} PRIVATE tahoma_third_party ${ARG_DEPS} GTest::gtest
    GTest::gmock GTest::gmock_main)
  tahoma_configure(${ARG_NAME} tahoma_pch_test)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  # Tests run in the source tree (golden files, examples) and find our programs in $TAHOMA_BIN.
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  tahoma_test_properties(${ARG_NAME} "${ARG_TIMEOUT}" "${ARG_LABELS}")
  if(sanitize IN_LIST ARG_LABELS)
    add_dependencies(sanitize_tests ${ARG_NAME})
  endif()
  if(NOT ARG_LABELS MATCHES "one-thread|simulation|scenario")
    add_dependencies(thread_tests ${ARG_NAME})
  endif()
endfunction()

function(tahoma_script_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  tahoma_test_properties(${ARG_NAME} "${ARG_TIMEOUT}" "${ARG_LABELS}")
endfunction()

function(tahoma_test_properties name timeout labels)
  if(NOT timeout)
    set(timeout 120)
  endif()
  if(NOT labels)
    set(labels unit)
  endif()
  if(TAHOMA_SANITIZE)  # instrumented code is up to this much slower
    math(EXPR timeout "${timeout} * 5")
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "TAHOMA_BIN=${CMAKE_BINARY_DIR}/bin"
    TIMEOUT ${timeout} LABELS "${labels}" SKIP_RETURN_CODE 77)
endfunction()

add_custom_target(benches)

function(tahoma_bench)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} EXCLUDE_FROM_ALL ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE tahoma_third_party tahoma_warnings ${ARG_DEPS}
    benchmark::benchmark)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bench")
  add_dependencies(benches ${ARG_NAME})
endfunction()
