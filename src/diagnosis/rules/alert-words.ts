/** The name of an alert in Go's words, and in those of OpenSSL (of two generations), BoringSSL, Java and rustls. */
export function alertWords(go: string, openssl: string): string[] {
  return [
    `tls: ${go}`,
    `sslv3 alert ${openssl}`,
    `tlsv1 alert ${openssl}`,
    `tlsv13 alert ${openssl}`,
    `ssl/tls alert ${openssl}`,
    `received fatal alert: ${openssl}`,
  ]
}
