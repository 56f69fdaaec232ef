// Certificates made on the spot, because a stored certificate would expire.
//
// Scope: tests.

#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace tahoma::testing {

struct Certificate {
  std::shared_ptr<X509> x509;
  std::shared_ptr<EVP_PKEY> key;

  std::string Pem() const {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, x509.get());
    return Text(bio);
  }
  std::string KeyPem() const {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    return Text(bio);
  }

 private:
  static std::string Text(BIO* bio) {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(bio, &bytes);
    std::string text(bytes, static_cast<std::size_t>(size));
    BIO_free(bio);
    return text;
  }
};

// Returns a certificate signed by `issuer`, or self-signed without an issuer. `alt_name` is for
// example "IP:127.0.0.1".
inline Certificate MakeCertificate(const std::string& common_name, const std::string& organization,
                                   const std::string& alt_name, const Certificate* issuer) {
  Certificate made;
  made.key.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
  made.x509.reset(X509_new(), X509_free);
  X509* x509 = made.x509.get();
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(x509), serial++);
  X509_set_version(x509, 2);
  X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, made.key.get());
  X509_NAME* name = X509_get_subject_name(x509);
  const auto add = [&](const char* field, const std::string& value) {
    if (value.empty()) return;
    X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0);
  };
  add("O", organization);
  add("CN", common_name);
  X509_set_issuer_name(x509, issuer != nullptr ? X509_get_subject_name(issuer->x509.get()) : name);
  const auto extend = [&](int nid, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
  };
  if (issuer == nullptr) extend(NID_basic_constraints, "critical,CA:TRUE");
  if (!alt_name.empty()) extend(NID_subject_alt_name, alt_name.c_str());
  X509_sign(x509, issuer != nullptr ? issuer->key.get() : made.key.get(), EVP_sha256());
  return made;
}

}  // namespace tahoma::testing
