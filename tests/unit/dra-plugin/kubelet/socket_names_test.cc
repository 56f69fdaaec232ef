#include "dra-plugin/kubelet/socket_names.h"

#include <gtest/gtest.h>

#include "lib/base/status.h"

namespace tahoma::dra {
namespace {

constexpr std::string_view kUid = "0f8fad5b-d9cb-469f-a165-70867728950e";

TEST(SocketNamesTest, ClassicNames) {
  EXPECT_EQ(*RegistrationSocket("/reg", "neuron.aws.com", ""), "/reg/neuron.aws.com-reg.sock");
  EXPECT_EQ(*DriverSocket("/plugins/neuron.aws.com", ""), "/plugins/neuron.aws.com/dra.sock");
}

TEST(SocketNamesTest, WithAPodTwoInstancesHaveTheirOwn) {
  EXPECT_EQ(*RegistrationSocket("/reg", "neuron.aws.com", kUid),
            "/reg/neuron.aws.com-0f8fad5b-d9cb-469f-a165-70867728950e-reg.sock");
  EXPECT_EQ(*DriverSocket("/p", kUid), "/p/dra-0f8fad5b-d9cb-469f-a165-70867728950e.sock");
}

// Values computed with Python: base64.urlsafe_b64encode(hashlib.sha256(…).digest()[:n]).
TEST(SocketNamesTest, LongFoldersGetShorterNames) {
  const std::string folder = "/" + std::string(60, 'r');
  EXPECT_EQ(*RegistrationSocket(folder, "neuron.aws.com", kUid),
            folder + "/neuron.aws.com-yBLh7bZEF9Y-reg.sock");
  const std::string driver = "a-long-name-of-a-driver.neuron.aws.com";
  EXPECT_EQ(*RegistrationSocket(folder, driver, kUid),
            folder + "/dra-yf087PyhYjKZpxcILjuiHw-reg.sock");
}

TEST(SocketNamesTest, NoNameThatFitsIsAnError) {
  const auto path = RegistrationSocket("/" + std::string(100, 'r'), "neuron.aws.com", "");
  EXPECT_TRUE(absl::IsInvalidArgument(path.status()));
  EXPECT_NE(Message(path.status()).find("exceeds the 107 bytes"), std::string::npos);
  EXPECT_TRUE(absl::IsInvalidArgument(DriverSocket("/" + std::string(100, 'p'), "").status()));
}

}  // namespace
}  // namespace tahoma::dra
