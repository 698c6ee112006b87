import { inspectCommand, isAt, probeCommand, serverName, verifyCommand } from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'
import {
  clientOfAnotherCa,
  intermediateMissing,
  kubeletSelfSigned,
  meshCa,
  noCa,
  noKubelet,
  otherCa,
  privateCa,
  proxyBetween,
  readBeforeRotation,
  serverChain,
  staleCaBundle,
} from './server-chain.ts'

/** As k8s.io/client-go/util/cert makes it: a leaf, and a CA for this leaf alone. */
const madeForItself: CauseRow = {
  id: 'default-certificate',
  holds: isAt('in-cluster', 'other', 'unknown'),
  detail:
    'the server made a CA and a certificate for itself because it was given none: metrics-server or another aggregated API with --cert-dir, kube-controller-manager or kube-scheduler without --tls-cert-file',
  checks: (found) => [
    check(inspectCommand(found), 'a subject such as localhost@1700000000 below localhost-ca@1700000000'),
  ],
}

// A chain that leads to no CA that the one who looks at it trusts.

const unknownAuthorityWords = ['certificate signed by unknown authority', 'certificate is not trusted']

export const trustRules: readonly Rule[] = [
  {
    id: 'client-certificate-unknown-authority',
    words: [
      ...unknownAuthorityWords,
      'client SSL certificate verify error: (18:self-signed certificate',
      'client SSL certificate verify error: (18:self signed certificate',
      'client SSL certificate verify error: (20:unable to get local issuer certificate',
      'client SSL certificate verify error: (21:unable to verify the first certificate',
    ],
    holds: ({ side }) => side === 'server',
    means: 'a server refuses the certificate of a client: none of its client CAs signed it',
    causes: clientOfAnotherCa,
  },
  {
    id: 'unknown-authority',
    words: [
      ...unknownAuthorityWords,
      'unable to get local issuer certificate',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'unable to get issuer certificate',
      'unable to find valid certification path to requested target',
      'invalid peer certificate: UnknownIssuer',
      'SEC_ERROR_UNKNOWN_ISSUER',
      'ERR_CERT_AUTHORITY_INVALID',
      'the issuer certificate of a locally looked up certificate could not be found',
      'x509: failed to load system roots and no roots provided',
      'The certificate chain was issued by an authority that is not trusted',
      'errors in the certificate chain: PartialChain',
      'errors in the certificate chain: UntrustedRoot',
      "Unable to locally verify the issuer's authority",
      'Path does not chain with any of the trust anchors',
      "Peer's Certificate issuer is not recognized",
      'x509 certificate is not issued by the trust anchor',
      'X509 - Certificate verification failed, e.g. CRL, CA or signature check failed',
    ],
    means: (found) =>
      `the client does not trust ${serverName(found)}: the chain that it was shown leads to no CA that it knows`,
    causes: serverChain,
  },
  {
    id: 'first-certificate-unverified',
    words: ['unable to verify the first certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    means: (found) =>
      `OpenSSL or Node found no issuer at all for the certificate of ${serverName(found)}: it came alone, and no trusted CA signed it`,
    causes: [intermediateMissing, ...serverChain.filter((cause) => cause !== intermediateMissing)],
  },
  {
    id: 'self-signed-in-chain',
    words: [
      'self-signed certificate in certificate chain',
      'self signed certificate in certificate chain',
      'SELF_SIGNED_CERT_IN_CHAIN',
    ],
    means: (found) => `${serverName(found)} sends its root CA along, and the client does not trust that root`,
    causes: [
      // A kubelet sends the CA along that it made for this one certificate.
      kubeletSelfSigned,
      { ...noCa, holds: (found) => !isAt('outside', 'mesh')(found) },
      privateCa,
      meshCa,
      otherCa,
      madeForItself,
      proxyBetween,
      readBeforeRotation,
    ],
  },
  {
    id: 'self-signed-leaf',
    words: [
      'self-signed certificate',
      'self signed certificate',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'MOZILLA_PKIX_ERROR_SELF_SIGNED_CERT',
    ],
    means: (found) =>
      `the certificate of ${serverName(found)} is signed by itself, and the client does not trust just that one`,
    causes: [
      kubeletSelfSigned,
      // What a kubelet signs for itself is below a CA of its own; alone it is seldom a kubelet's.
      noKubelet,
      {
        id: 'default-certificate',
        holds: (found) => !isAt('kubelet', 'outside')(found),
        detail:
          "the server made a certificate for itself because it was given none: an ingress controller's default, a webhook",
        checks: (found) => [check(inspectCommand(found), 'one certificate, its subject equal to its issuer')],
      },
      privateCa,
      staleCaBundle,
      proxyBetween,
    ],
  },
  {
    id: 'verification-failed',
    isGeneric: true,
    words: [
      'CERTIFICATE_VERIFY_FAILED',
      'certificate verify failed',
      'PKIX path building failed',
      'PKIX path validation failed',
      'tls: failed to verify certificate',
      'failed to verify certificate',
      'SSL certificate problem',
      'Sending fatal alert BadCertificate',
      'Sending fatal alert UnknownCA',
      'x509: OSStatus',
      'server certificate verification failed',
      'Could not establish trust relationship for the SSL/TLS secure channel',
      'The remote certificate is invalid',
    ],
    means: (found) =>
      `the client refuses the certificate of ${serverName(found)}; the text does not say for which of the reasons`,
    causes: [
      {
        id: 'any-reason',
        detail: 'its time, its names or its CA: what is served is held against what the client trusts',
        checks: (found) => [
          check(verifyCommand(found), 'the certificate at fault, and why'),
          check(probeCommand(found), 'what is served now'),
        ],
      },
      ...serverChain,
    ],
  },
]
