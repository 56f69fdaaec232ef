// Frames over TLS with certificates at both ends, and the refusals that strangers get.

#include "lib/wire/tls.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "lib/base/status.h"
#include "lib/wire/socket.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/lib/kube/test_certificates.h"

namespace tahoma::wire {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kTlsWait(10'000);

int DialRaw(const Address& address) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const void* raw = &to;
  EXPECT_EQ(connect(fd, static_cast<const sockaddr*>(raw), sizeof to), 0);
  return fd;
}

// Copies bytes between a client and a server, and records the client's bytes.
class Tap {
 public:
  // Accepts the connection at `listening`, a raw socket, and dials `server`.
  Tap(int listening, const Address& server)
      : client_(accept(listening, nullptr, nullptr)), server_(DialRaw(server)) {
    to_server_ = std::jthread([this] { Copy(client_, server_, &recorded_); });
    to_client_ = std::jthread([this] { Copy(server_, client_, nullptr); });
  }
  // Ends both connections and returns the client's bytes.
  std::string End() {
    for (const int fd : {client_, server_}) shutdown(fd, SHUT_RDWR);
    to_server_.join();
    to_client_.join();
    for (const int fd : {client_, server_}) close(fd);
    return recorded_;
  }

 private:
  static void Copy(int from, int to, std::string* record) {
    char bytes[4096];
    for (ssize_t got = 0; (got = read(from, bytes, sizeof bytes)) > 0;) {
      if (record != nullptr) record->append(bytes, static_cast<std::size_t>(got));
      if (send(to, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL) < 0) return;
    }
  }
  const int client_;
  const int server_;
  std::string recorded_;
  std::jthread to_server_;
  std::jthread to_client_;
};

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    signal(SIGPIPE, SIG_IGN);
  }  // as our programs do: OpenSSL writes without MSG_NOSIGNAL

  std::string File(const std::string& name, const std::string& text) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  // A node's files: a certificate of `authority` for `name`, and `authority` as the trusted
  // authority.
  TlsFiles Files(const std::string& name, const tahoma::testing::Certificate& authority) {
    const auto made = tahoma::testing::MakeCertificate("ignored", "", "DNS:" + name, &authority);
    return {.cert_file = File(name + ".crt", made.Pem()),
            .key_file = File(name + ".key", made.KeyPem()),
            .ca_file = File(name + ".ca", authority.Pem())};
  }
  Tls Of(const std::string& name, const tahoma::testing::Certificate& authority) {
    return *Tls::Open(Files(name, authority));
  }

  struct Ends {
    std::unique_ptr<Connection> client;
    std::unique_ptr<Connection> server;
    absl::Status client_status;
    absl::Status server_status;
  };
  Ends Shake(const Tls& client, const Tls& server) {
    const auto listener = *Listener::Open("127.0.0.1:0");
    Ends ends;
    ends.client = *Connection::Dial(listener->address().ToString(), kTlsWait);
    ends.server = *listener->Accept(kTlsWait);
    std::jthread other(
        [&] { ends.server_status = ends.server->StartTls(server, TlsRole::kServer, kTlsWait); });
    ends.client_status = ends.client->StartTls(client, TlsRole::kClient, kTlsWait);
    other.join();
    return ends;
  }

  const tahoma::testing::Certificate authority_ =
      tahoma::testing::MakeCertificate("nodes", "", "", nullptr);
  tahoma::testing::TempDir dir_;
};

TEST_F(TlsTest, FramesGoBothWaysAtOnceAndEachEndProvesOnlyItsOwnName) {
  const Ends ends = Shake(Of("n1", authority_), Of("n2", authority_));
  ASSERT_TRUE(ends.client_status.ok()) << ends.client_status;
  ASSERT_TRUE(ends.server_status.ok()) << ends.server_status;
  EXPECT_TRUE(ends.client->Proves("n2"));
  EXPECT_TRUE(ends.server->Proves("n1"));
  for (const std::string name : {"n1", "", "n", "n22", "ignored"}) {
    EXPECT_FALSE(ends.client->Proves(name)) << name;
  }
  EXPECT_FALSE(ends.client->peer_user().has_value());
  // More bytes than the sockets hold, so both ends wait for each other.
  const std::string big(8U << 20U, 'x');
  const auto talk = [&](Connection& end) {
    std::jthread sender([&] {
      for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(end.Send({.header = "{}", .payload = big}, kTlsWait).ok());
      }
    });
    for (int i = 0; i < 4; ++i) {
      const auto frame = end.Receive(kTlsWait);
      ASSERT_TRUE(frame.ok()) << frame.status();
      EXPECT_EQ(frame->payload.size(), big.size());
    }
  };
  std::jthread other([&] { talk(*ends.server); });
  talk(*ends.client);
  other.join();
  ends.client->Shutdown();
  EXPECT_EQ(ends.server->Receive(kTlsWait).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityIsRefusedByBothEnds) {
  const auto stranger = tahoma::testing::MakeCertificate("others", "", "", nullptr);
  const Ends dialled = Shake(Of("n1", stranger), Of("n2", authority_));
  EXPECT_TRUE(absl::IsUnauthenticated(dialled.client_status)) << dialled.client_status;
  // The client trusts our authority but has a stranger's certificate, so the server refuses.
  TlsFiles files = Files("n3", stranger);
  files.ca_file = File("trusted.ca", authority_.Pem());
  const Ends accepted = Shake(*Tls::Open(files), Of("n2", authority_));
  EXPECT_TRUE(absl::IsUnauthenticated(accepted.server_status)) << accepted.server_status;
  EXPECT_FALSE(accepted.client->Receive(kTlsWait).ok()) << "a client hears of it when it reads";
}

TEST_F(TlsTest, WhoSpeaksNoTlsOrNothingAtAllIsRefused) {
  const Tls tls = Of("n1", authority_);
  const auto listener = *Listener::Open("127.0.0.1:0");
  const auto plain = *Connection::Dial(listener->address().ToString(), kTlsWait);
  ASSERT_TRUE(plain->Send({.header = R"({"id":0,"method":"peerHello","params":{}})"}).ok());
  const auto accepted = *listener->Accept(kTlsWait);
  EXPECT_TRUE(absl::IsUnauthenticated(accepted->StartTls(tls, TlsRole::kServer, kTlsWait)));
  EXPECT_FALSE(plain->Receive(kTlsWait).ok());
  const auto silent = *Connection::Dial(listener->address().ToString(), kTlsWait);
  const auto waiting = *listener->Accept(kTlsWait);
  EXPECT_TRUE(absl::IsDeadlineExceeded(waiting->StartTls(tls, TlsRole::kServer, milliseconds(20))));
}

TEST_F(TlsTest, BytesRecordedFromAConnectionOpenNoOtherConnection) {
  const Tls client = Of("n1", authority_);
  const Tls server = Of("n2", authority_);
  const auto listener = *Listener::Open("127.0.0.1:0");
  const int between = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(listen(between, 1), 0);  // on a port of the system's choice
  sockaddr_in at = {};
  socklen_t size = sizeof at;
  void* raw_at = &at;
  ASSERT_EQ(getsockname(between, static_cast<sockaddr*>(raw_at), &size), 0);
  const auto near = *Connection::Dial("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), kTlsWait);
  Tap tap(between, listener->address());
  const auto far = *listener->Accept(kTlsWait);
  std::jthread other([&] { EXPECT_TRUE(far->StartTls(server, TlsRole::kServer, kTlsWait).ok()); });
  ASSERT_TRUE(near->StartTls(client, TlsRole::kClient, kTlsWait).ok());
  ASSERT_TRUE(near->Send({.header = "{}"}, kTlsWait).ok());
  other.join();
  ASSERT_TRUE(far->Receive(kTlsWait).ok());
  const std::string recorded = tap.End();
  ASSERT_GT(recorded.size(), 500U);

  const int replay = DialRaw(listener->address());
  ASSERT_EQ(write(replay, recorded.data(), recorded.size()), std::ssize(recorded));
  const auto again = *listener->Accept(kTlsWait);
  EXPECT_TRUE(absl::IsUnauthenticated(again->StartTls(server, TlsRole::kServer, kTlsWait)));
  close(replay);
  close(between);
}

TEST_F(TlsTest, FilesThatDoNotFitAreNamed) {
  const TlsFiles good = Files("n1", authority_);
  TlsFiles files = good;
  files.cert_file = dir_.path() + "/none";
  EXPECT_EQ(Message(Tls::Open(files).status()).substr(0, 16), "TLS certificate ");
  files = good;
  files.key_file = Files("n2", authority_).key_file;
  EXPECT_NE(Message(Tls::Open(files).status()).find("key values mismatch"), std::string::npos);
  files = good;
  files.ca_file = File("empty", "");
  EXPECT_EQ(Message(Tls::Open(files).status()).substr(0, 14), "TLS authority ");
}

TEST_F(TlsTest, ACertificateThatIsRenewedIsUsedForTheNextConnection) {
  const TlsFiles files = Files("n1", authority_);
  const Tls client = *Tls::Open(files);
  const Tls server = Of("n2", authority_);
  EXPECT_FALSE(Shake(client, server).server->Proves("n7"));
  const auto renewed = tahoma::testing::MakeCertificate("", "", "DNS:n7", &authority_);
  std::ofstream(files.cert_file) << renewed.Pem();
  std::ofstream(files.key_file) << renewed.KeyPem();
  EXPECT_TRUE(Shake(client, server).server->Proves("n7"));
}

}  // namespace
}  // namespace tahoma::wire
