import { commandLine } from '../../errors/command-line.ts'
import type { Found, Peer } from '../found.ts'
import {
  clientCaFile,
  etcdEvidence,
  forecastCommand,
  inspectCommand,
  isAt,
  kubeconfigOf,
  kubeletEvidence,
  nodeFolders,
  probeCommand,
  verifyCommand,
} from '../place.ts'
import { type CauseRow, check } from '../rule.ts'

// Why a chain leads to no CA that the one who looks at it trusts, for each that is called.

/** Of servers that are verified by the CA of a kubeconfig. */
const byKubeconfig = isAt('api-server', 'other', 'unknown')

/** Go names the CA that has the right name and the wrong key. */
const namesakeEvidence = ({ candidate }: Found): string | undefined =>
  candidate === undefined
    ? undefined
    : `a CA named "${candidate}" is trusted, and it is not the one that signed: same name, another key`

export const otherCa: CauseRow = {
  id: 'ca-of-another-cluster',
  holds: byKubeconfig,
  evidence: namesakeEvidence,
  detail:
    'the kubeconfig holds the CA of another cluster, or of this one before its CA was made anew (kubeadm reset and init, a rotation)',
  checks: (found) => [
    check(
      verifyCommand(found),
      'NOT TRUSTED, with the key identifier that was asked for and the one that the kubeconfig has',
    ),
    check(
      commandLine`kcert kubeconfig set-ca ${kubeconfigOf(found)} --ca /etc/kubernetes/pki/ca.crt --dry-run`,
      'on a control plane: what would change; without --dry-run it is mended',
    ),
  ],
}

export const noCa: CauseRow = {
  id: 'no-ca-given',
  holds: byKubeconfig,
  detail:
    "the client was given no CA and looks into those of its system, among which a cluster's own is never: no certificate-authority in the kubeconfig, curl without --cacert, a pod's client without /var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
  checks: (found) => [
    check(
      commandLine`kcert inspect ${kubeconfigOf(found)}`,
      'no line "cluster CA" for the cluster of the context',
    ),
  ],
}

/** Where programs that look outside of the cluster keep the CAs for it. */
const placesOfCa: Readonly<Partial<Record<Peer, string>>> = {
  registry: 'containerd: /etc/containerd/certs.d/HOST/hosts.toml; Docker: /etc/docker/certs.d/HOST/ca.crt',
  repository:
    'helm --ca-file; Argo CD: ConfigMap argocd-tls-certs-cm; Flux: certSecretRef with ca.crt; git http.sslCAInfo',
  'identity-provider': '--oidc-ca-file or certificateAuthority of the API server',
  acme: 'caBundle of the Issuer',
}

const calledOutside: Readonly<Partial<Record<Peer, string>>> = {
  registry: 'a registry of images is called',
  repository: 'a repository of charts or sources is called',
  'identity-provider': 'an identity provider is called',
  acme: 'an ACME server is called',
  elsewhere: 'no API of Kubernetes has that path',
}

export const privateCa: CauseRow = {
  id: 'private-ca-not-given',
  holds: isAt('outside'),
  evidence: ({ peer }) => (peer === undefined ? undefined : calledOutside[peer]),
  detail: ({ peer }) =>
    `a CA of your own, or that of a proxy which opens TLS on the way out, signed what is shown there, and the program that calls does not hold it; the CA of the cluster has no part in it. Where it goes: ${(peer && placesOfCa[peer]) ?? 'the CA option of that program, or the roots of its image or machine'}`,
  checks: (found) => [
    check(
      inspectCommand(found),
      'the issuer: your own CA, a proxy (dial from where the program runs), or a public CA that an old image lacks',
    ),
    check(
      verifyCommand(found),
      'with the file that you would give it as CA.crt: TRUSTED, then that one is it',
    ),
  ],
}

export const meshCa: CauseRow = {
  id: 'mesh-ca-changed',
  holds: isAt('mesh'),
  evidence: () => 'the text is of a service mesh',
  detail:
    "the CA of the service mesh was changed, and some proxies still hold the old root or show the old certificate until they start anew; or a sidecar calls a server outside of the mesh without that server's CA",
  checks: () => [
    check(
      'kcert inspect --cluster -o tree',
      'the CAs of the mesh (istio-ca-secret or cacerts, istio-ca-root-cert, linkerd-identity-issuer), which is below which, and since when',
    ),
  ],
}

export const proxyBetween: CauseRow = {
  id: 'somebody-in-between',
  holds: byKubeconfig,
  detail:
    'a proxy or load balancer ends TLS in between and shows a certificate of its own (HTTPS_PROXY, proxy-url, a company proxy)',
  checks: (found) => [check(inspectCommand(found), 'a leaf whose issuer is not the CA of the cluster')],
}

export const intermediateMissing: CauseRow = {
  id: 'intermediate-not-sent',
  // Go names a candidate only where a CA of the issuer's name was there.
  holds: ({ candidate }) => candidate === undefined,
  detail: 'the server sends its own certificate without the CA certificates between it and the root',
  checks: (found) => [
    check(inspectCommand(found), 'one certificate alone, whose issuer was not found among what is sent'),
  ],
}

export const readBeforeRotation: CauseRow = {
  id: 'ca-read-before-rotation',
  holds: isAt('api-server', 'kubelet', 'in-cluster', 'other', 'unknown'),
  detail:
    'the CA of the cluster was changed while this client ran, and it read the old one at its start (pods, controller-managers, schedulers)',
  checks: () => [
    check('kcert rotate-ca status', 'a rotation that is under way or was left half done'),
    check('kcert rotate-ca verify', 'the pods, files and kubeconfigs that still hold the old CA'),
  ],
}

export const kubeletSelfSigned: CauseRow = {
  id: 'kubelet-serves-self-signed',
  holds: isAt('kubelet'),
  evidence: kubeletEvidence,
  detail:
    'kubelets sign their serving certificates themselves unless serverTLSBootstrap is on, so that metrics-server, Prometheus and --kubelet-certificate-authority refuse them',
  checks: (found) => [
    check(
      found.endpoints.length === 0 ? 'kcert probe --nodes' : inspectCommand(found),
      'an issuer such as NODE-ca@1700000000; CN=system:node:NODE below the CA of the cluster: then it is not this',
    ),
    check(
      'kcert csr list --pending --signer kubernetes.io/kubelet-serving',
      'serverTLSBootstrap is on, and nobody has approved',
    ),
    ...(found.node === undefined
      ? []
      : [check(forecastCommand(found), 'how this kubelet gets its certificates')]),
  ],
}

export const noKubelet: CauseRow = {
  id: 'not-the-kubelet',
  holds: isAt('kubelet'),
  detail:
    "something else answers at the node's address (an address given to two machines, NAT, a proxy, the address of another network card), and what kcert probe --nodes and kcert kubelet forecast read there says nothing of the kubelet",
  checks: (found) => [
    check(
      found.endpoints.length === 0 ? 'kcert probe --nodes' : inspectCommand(found),
      'a subject that is neither CN=system:node:NODE nor CN=NODE@1700000000',
    ),
    check('kcert kubelet doctor', 'on that node: the certificate that its kubelet has; is it the one above?'),
  ],
}

const etcdCaDiffers: CauseRow = {
  id: 'etcd-ca-differs',
  holds: isAt('etcd'),
  evidence: namesakeEvidence,
  detail:
    "control planes have different etcd CAs: etcd/ca.crt was made anew (kubeadm reset and init, a restore), or a control plane joined without a copy of etcd/ca.crt and etcd/ca.key. The cluster's own CA and kubeconfigs have no part in it",
  checks: (found) => [
    check(
      'kcert inspect /etc/kubernetes/pki/etcd/ca.crt -o wide',
      'on each control plane: another key identifier or fingerprint than on the others',
    ),
    check(
      'kcert inspect /etc/kubernetes/pki -o tree',
      'on each: server, peer, healthcheck-client or apiserver-etcd-client not below etcd/ca.crt',
    ),
    check(probeCommand(found), 'NOT_TRUSTED by etcd/ca.crt of this control plane'),
  ],
}

const etcdCa: CauseRow = {
  id: 'etcd-has-its-own-ca',
  holds: isAt('etcd'),
  evidence: (found) => (found.candidate === undefined ? etcdEvidence(found) : undefined),
  detail:
    'etcd has a CA of its own, and it was shown to a client with that of the cluster, or the other way round (--etcd-cafile, etcdctl --cacert)',
  checks: (found) => [
    check(probeCommand(found), 'ok with this CA: then the client that failed was given another one'),
    check('kcert inspect /etc/kubernetes/pki -o tree', 'what hangs below which CA'),
  ],
}

export const staleCaBundle: CauseRow = {
  id: 'ca-bundle-stale',
  holds: isAt('in-cluster'),
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

export const clientOfAnotherCa: readonly CauseRow[] = [
  {
    id: 'client-of-old-ca',
    evidence: ({ candidate }) =>
      candidate === undefined
        ? undefined
        : `"${candidate}" is trusted and did not sign it: same name, another key`,
    detail:
      'a client shows a certificate that another CA signed: of another cluster, or of the CA before a rotation that has dropped it',
    checks: (found) => [
      ...(clientCaFile(found) === '/etc/kubernetes/pki/ca.crt'
        ? [check('kcert rotate-ca verify', 'who still presents a certificate of the old CA')]
        : [
            check(
              'kcert inspect /etc/kubernetes/pki -o tree',
              `on each control plane: client certificates that do not hang below ${clientCaFile(found)}, or another such CA than on the others`,
            ),
          ]),
      check(
        commandLine`kcert verify CLIENT.crt --roots ${clientCaFile(found)} --purpose client`,
        'NOT TRUSTED for the certificate of that client',
      ),
    ],
  },
  {
    id: 'client-ca-file-wrong',
    detail: 'the CA file of the server (--client-ca-file, clientCAFile) lacks a CA that it should hold',
    checks: () => [
      check(
        commandLine`kcert inspect ${nodeFolders} -o tree`,
        'CA_NOT_IN_BUNDLE, or client certificates below another CA',
      ),
    ],
  },
]

export const serverChain: readonly CauseRow[] = [
  staleCaBundle,
  kubeletSelfSigned,
  etcdCaDiffers,
  etcdCa,
  meshCa,
  privateCa,
  otherCa,
  noCa,
  intermediateMissing,
  proxyBetween,
  readBeforeRotation,
  noKubelet,
]
