/** What `kcert probe` calls wrong; the codes are a contract. */
export const problemCodes = {
  UNREACHABLE: 'Nothing answered there in time.',
  NO_CERTIFICATE: 'Something answers, but shows no certificate: it has none yet, or speaks no TLS.',
  CERT_UNREADABLE: 'What it shows as its certificate is none.',
  CERT_EXPIRED: 'The certificate that it shows is past its notAfter, or before its notBefore.',
  NOT_TRUSTED: 'A CA that clients verify it by does not vouch for the chain that it shows.',
  NAME_NOT_COVERED: 'Clients reach it by a name or address that its certificate does not have.',
  OLD_CERTIFICATE_SERVED: 'It was given a newer certificate, and still shows the old one.',
  OTHER_CERTIFICATE_SERVED: 'It shows another certificate than the one that it was given, and no older one.',
  CLIENT_REFUSED: 'It refuses the client certificate that it was shown.',
  CLIENT_UNKNOWN:
    'It requests a client certificate and does not tell whether it accepts the one presented: no TLS alert, no HTTP status.',
} as const satisfies Readonly<Record<string, string>>

export type ProblemCode = keyof typeof problemCodes
