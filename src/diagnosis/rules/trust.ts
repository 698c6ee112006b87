import type { Found } from '../found.ts'
import {
  componentOf,
  etcdEndpoint,
  forecastCommand,
  inspectCommand,
  kubeconfigOf,
  kubeletEvidence,
  nodeFolders,
  probeCommand,
  serverName,
  verifyCommand,
} from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'

// A chain that leads to no CA that the one who looks at it trusts.

const isOf =
  (...components: readonly string[]) =>
  (found: Found): boolean =>
    components.includes(componentOf(found))

const otherCa: CauseRow = {
  id: 'ca-of-another-cluster',
  holds: (found) => !isOf('kubelet', 'etcd', 'in-cluster')(found),
  evidence: ({ candidate }) =>
    candidate === undefined
      ? undefined
      : `a CA named "${candidate}" is trusted, and it is not the one that signed: same name, another key`,
  detail:
    'the kubeconfig holds the CA of another cluster, or of this one before its CA was made anew (kubeadm reset and init, a rotation)',
  checks: (found) => [
    check(
      verifyCommand(found, kubeconfigOf(found)),
      'NOT TRUSTED, with the key identifier that was asked for and the one that the kubeconfig has',
    ),
    check(
      `kcert kubeconfig set-ca ${kubeconfigOf(found)} --ca /etc/kubernetes/pki/ca.crt --dry-run`,
      'on a control plane: what would change; without --dry-run it is mended',
    ),
  ],
}

const noCa: CauseRow = {
  id: 'no-ca-given',
  holds: (found) => !isOf('kubelet', 'etcd', 'in-cluster')(found),
  detail:
    "the client was given no CA and looks into those of its system, among which a cluster's own is never: no certificate-authority in the kubeconfig, curl without --cacert, a pod's client without /var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
  checks: (found) => [
    check(`kcert inspect ${kubeconfigOf(found)}`, 'no line "cluster CA" for the cluster of the context'),
  ],
}

const proxyBetween: CauseRow = {
  id: 'somebody-in-between',
  holds: isOf('api-server', 'other', 'unknown'),
  detail:
    'a proxy or load balancer ends TLS in between and shows a certificate of its own (HTTPS_PROXY, proxy-url, a company proxy)',
  checks: (found) => [check(inspectCommand(found), 'a leaf whose issuer is not the CA of the cluster')],
}

const intermediateMissing: CauseRow = {
  id: 'intermediate-not-sent',
  detail: 'the server sends its own certificate without the CA certificates between it and the root',
  checks: (found) => [
    check(inspectCommand(found), 'one certificate alone, whose issuer was not found among what is sent'),
  ],
}

const readBeforeRotation: CauseRow = {
  id: 'ca-read-before-rotation',
  holds: (found) => !isOf('etcd')(found),
  detail:
    'the CA of the cluster was changed while this client ran, and it read the old one at its start (pods, controller-managers, schedulers)',
  checks: () => [
    check('kcert rotate-ca status', 'a rotation that is under way or was left half done'),
    check('kcert rotate-ca verify', 'the pods, files and kubeconfigs that still hold the old CA'),
  ],
}

const kubeletSelfSigned: CauseRow = {
  id: 'kubelet-serves-self-signed',
  holds: isOf('kubelet'),
  evidence: kubeletEvidence,
  detail:
    'kubelets sign their serving certificates themselves unless serverTLSBootstrap is on, so that metrics-server, Prometheus and --kubelet-certificate-authority refuse them',
  checks: (found) => [
    check('kcert probe --nodes', 'NOT_TRUSTED, or "nobody asks", with an issuer such as NODE-ca@1700000000'),
    check(
      'kcert csr list --pending --signer kubernetes.io/kubelet-serving',
      'serverTLSBootstrap is on, and nobody has approved',
    ),
    ...(found.node === undefined
      ? []
      : [check(forecastCommand(found), 'how this kubelet gets its certificates')]),
  ],
}

const etcdCa: CauseRow = {
  id: 'etcd-has-its-own-ca',
  holds: isOf('etcd'),
  evidence: ({ endpoints, candidate }) =>
    endpoints[0] === undefined
      ? `"${candidate}" is trusted, which is the CA of etcd`
      : `${endpoints[0]} is a port of etcd`,
  detail:
    'etcd has a CA of its own, and it was shown to a client with that of the cluster, or the other way round',
  checks: (found) => [
    check(
      `kcert probe ${etcdEndpoint(found)} --ca /etc/kubernetes/pki/etcd/ca.crt --client-certificate /etc/kubernetes/pki/etcd/healthcheck-client.crt --client-key /etc/kubernetes/pki/etcd/healthcheck-client.key`,
      'ok with this CA: then the client that failed was given another one',
    ),
    check('kcert inspect /etc/kubernetes/pki -o tree', 'what hangs below which CA'),
  ],
}

const staleCaBundle: CauseRow = {
  id: 'ca-bundle-stale',
  holds: isOf('in-cluster'),
  evidence: ({ webhook, apiGroup }) =>
    webhook !== undefined
      ? `the webhook "${webhook}" is called`
      : apiGroup !== undefined
        ? `the aggregated API ${apiGroup} is called`
        : undefined,
  detail:
    'API servers verify webhooks, aggregated APIs and conversions by a caBundle in their objects; it is not the CA that signed what the pods serve now (certificate renewed under another CA, injector not run)',
  checks: () => [
    check(
      'kcert probe --webhooks',
      'NOT_TRUSTED for this one; with -i kcert.yaml it dials from a control plane',
    ),
    check(
      'kcert inspect --cluster --only problem',
      'a caBundle that is empty, expired or not of the Secret beside it',
    ),
  ],
}

const clientOfAnotherCa: readonly CauseRow[] = [
  {
    id: 'client-of-old-ca',
    evidence: ({ candidate }) =>
      candidate === undefined
        ? undefined
        : `"${candidate}" is trusted and did not sign it: same name, another key`,
    detail:
      'a client shows a certificate that another CA signed: of another cluster, or of the CA before a rotation that has dropped it',
    checks: () => [
      check('kcert rotate-ca verify', 'who still presents a certificate of the old CA'),
      check(
        'kcert verify CLIENT.crt --roots /etc/kubernetes/pki/ca.crt --purpose client',
        'NOT TRUSTED for the certificate of that client',
      ),
    ],
  },
  {
    id: 'client-ca-file-wrong',
    detail: 'the CA file of the server (--client-ca-file, clientCAFile) lacks a CA that it should hold',
    checks: () => [
      check(
        `kcert inspect ${nodeFolders} -o tree`,
        'CA_NOT_IN_BUNDLE, or client certificates below another CA',
      ),
    ],
  },
]

const serverChain: readonly CauseRow[] = [
  staleCaBundle,
  kubeletSelfSigned,
  etcdCa,
  otherCa,
  noCa,
  intermediateMissing,
  proxyBetween,
  readBeforeRotation,
]

const unknownAuthorityWords = ['certificate signed by unknown authority', 'certificate is not trusted']

export const trustRules: readonly Rule[] = [
  {
    id: 'client-certificate-unknown-authority',
    words: unknownAuthorityWords,
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
    causes: [{ ...noCa, holds: () => true }, otherCa, proxyBetween, readBeforeRotation],
  },
  {
    id: 'self-signed-leaf',
    words: [
      'self-signed certificate',
      'self signed certificate',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SEC_ERROR_CA_CERT_USED_AS_END_ENTITY',
      'MOZILLA_PKIX_ERROR_SELF_SIGNED_CERT',
    ],
    means: (found) =>
      `the certificate of ${serverName(found)} is signed by itself, and the client does not trust just that one`,
    causes: [
      kubeletSelfSigned,
      {
        id: 'default-certificate',
        holds: (found) => !isOf('kubelet')(found),
        detail:
          "the server made a certificate for itself because it was given none: an ingress controller's default, a webhook or metrics-server with --cert-dir, kube-controller-manager or kube-scheduler",
        checks: (found) => [check(inspectCommand(found), 'one certificate, its subject equal to its issuer')],
      },
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
          check(verifyCommand(found, kubeconfigOf(found)), 'the certificate at fault, and why'),
          check(probeCommand(found), 'what is served now'),
        ],
      },
      ...serverChain,
    ],
  },
]
