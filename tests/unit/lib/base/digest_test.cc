#include "lib/base/digest.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/base/hex.h"

namespace tahoma {
namespace {

// FIPS 180-4, examples of one block, two blocks and nothing.
TEST(DigestTest, KnownValues) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(DigestTest, ZeroBytesCount) { EXPECT_NE(Sha256Hex(std::string("a\0b", 3)), Sha256Hex("a")); }

// RFC 4231, test cases 1, 2 and 6 (a key that is longer than a block).
TEST(DigestTest, HmacsOfTheStandard) {
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(DigestTest, AnEmptyKeyIsAKey) { EXPECT_EQ(HmacSha256("", "").size(), 32U); }

}  // namespace
}  // namespace tahoma
