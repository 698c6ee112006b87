/** The problems of `kcert probe`; the codes are a contract. */
export const problemCodes = {
  UNREACHABLE: 'The server did not respond in time.',
  NO_CERTIFICATE: 'The server responds, but sends no certificate: it has none yet, or does not support TLS.',
  CERT_UNREADABLE: 'The server sends a malformed certificate.',
  CERT_EXPIRED: 'The served certificate has expired, or is not valid yet.',
  NOT_TRUSTED: 'The served chain does not verify with the CAs of its clients.',
  NAME_NOT_COVERED: 'The served certificate lacks a name or IP address that clients connect to.',
  OLD_CERTIFICATE_SERVED: 'The server was issued a newer certificate, but still serves the old one.',
  OTHER_CERTIFICATE_SERVED:
    'The server serves another certificate than the one that was issued to it last, and not an older one.',
  CLIENT_REFUSED: 'The server refuses the client certificate.',
  CLIENT_UNKNOWN:
    'It is unknown whether the server accepts the client certificate: it sent neither a TLS alert nor an HTTP status.',
} as const satisfies Readonly<Record<string, string>>

export type ProblemCode = keyof typeof problemCodes
