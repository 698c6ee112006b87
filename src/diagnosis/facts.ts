import { withoutBrackets } from '../errors/host-port.ts'
import { spanText } from '../inspection/spans.ts'
import type { Found } from './report.ts'

// The names that the tables can use: facts from the text, facts derived from them, and sentences and commands of the tables (see
// sentence.ts).

type Fact = (found: Found) => string | readonly string[] | undefined

const yearMs = 365 * 86_400_000

const sentences: Readonly<Record<string, readonly string[]>> = {
  server: ['{endpoint}', 'the server'],
  thatServer: ['{endpoint}', 'that server'],
  asked: ['{name}', 'the name that was used'],
  someFile: ['{file}', 'a file of certificates or a key'],
  ended: [
    'expired on {notAfter}, {late} before the time on the verifying side',
    'expired on {notAfter}',
    'expired',
  ],
  kubeletCalled: [
    'if at=kubelet: {kubeletEndpoint} is the port of a kubelet',
    'if at=kubelet: a kubelet was called',
  ],
  etcdCalled: [
    'if at=etcd: {etcdEndpoint} is a port of etcd',
    'if at=etcd: the text is from etcd or a client of etcd',
  ],
  /** Where programs that call servers outside the cluster store the CAs for them. */
  placeOfCa: [
    'if peer=registry: containerd: /etc/containerd/certs.d/HOST/hosts.toml; Docker: /etc/docker/certs.d/HOST/ca.crt',
    'if peer=repository: helm --ca-file; Argo CD: ConfigMap argocd-tls-certs-cm; Flux: certSecretRef with ca.crt; git http.sslCAInfo',
    'if peer=identity-provider: --oidc-ca-file or certificateAuthority of the API server',
    'if peer=acme: caBundle of the Issuer',
    'the CA option of that program, or the roots of its image or machine',
  ],

  /** The name of a certificate or a server without its context. */
  anyName: ['{endpoint}', '{certificateNames}'],
  defaultName: ['{fallbackName}', '{ownNames}'],

  // Files, by their names in the text, or by the names that kubeadm and kubelets use.
  kubeconfig: ['{kubeconfigFile}', '{kubeconfigOfAuthor}', '~/.kube/config'],
  kubectlConfig: ['{configFile}', '~/.kube/config'],
  certificateOrFile: ['{certificateFile}', '{file}', '/etc/kubernetes /var/lib/kubelet/pki'],
  certificateFolder: ['{folder}', '/etc/kubernetes /var/lib/kubelet/pki'],
  servedFile: [
    '{certificateFile}',
    'if at=kubelet: /var/lib/kubelet/pki/kubelet-server-current.pem',
    'if at=etcd: /etc/kubernetes/pki/etcd/server.crt',
    '/etc/kubernetes/pki/apiserver.crt',
  ],
  /** The CA that a server verifies clients with: etcd and the front proxy have their own CAs. */
  clientCa: [
    'if at=etcd: /etc/kubernetes/pki/etcd/ca.crt',
    'if frontProxy: /etc/kubernetes/pki/front-proxy-ca.crt',
    '/etc/kubernetes/pki/ca.crt',
  ],
  /** The CAs that the client in the text uses to verify its server. */
  roots: ['if at=etcd: /etc/kubernetes/pki/etcd/ca.crt', 'if at=outside,mesh: CA.crt', '{kubeconfig}'],

  // Commands. probeEtcd matches etcd's own health check: without a client certificate, etcd reports only that it requires one.
  probeEtcd: [
    'kcert probe {etcdServers} --ca /etc/kubernetes/pki/etcd/ca.crt --client-certificate /etc/kubernetes/pki/etcd/healthcheck-client.crt --client-key /etc/kubernetes/pki/etcd/healthcheck-client.key',
  ],
  etcdServers: ['{endpoints}', '127.0.0.1:2379'],
  probe: [
    'if at=in-cluster: kcert probe --webhooks',
    'if at=kubelet !endpoint: kcert probe --nodes',
    'if at=etcd: {probeEtcd}',
    'kcert probe {endpoints}',
    'kcert probe --api-servers',
  ],
  probeKubelet: ['if !endpoint: kcert probe --nodes', '{probe}'],
  probeByName: [
    'if at=in-cluster: kcert probe --webhooks',
    'kcert probe {endpoint} --name {name}',
    'kcert probe --api-servers',
  ],
  inspect: ['if at!=in-cluster: kcert inspect {endpoint}', 'kcert probe --all'],
  inspectKubelet: ['if !endpoint: kcert probe --nodes', '{inspect}'],
  verify: ['if at!=in-cluster: kcert verify {endpoint} --roots {roots} --name {name}', '{probe}'],
  forecast: ['kcert kubelet forecast --node {node}', 'kcert kubelet forecast'],
  checkToken: ['kcert token check {tokenId}', 'kcert token list'],
  checkBootstrap: ['kcert bootstrap check {node}', 'kcert bootstrap check NODE'],
  createRequest: [
    'if address: kcert csr create --cn {name} --ip {name} --key-out server-key.pem --out server.csr',
    'kcert csr create --cn {name} --dns {name} --key-out server-key.pem --out server.csr',
    'kcert csr create --cn NAME --dns NAME --key-out server-key.pem --out server.csr',
  ],
}

const inText = [
  ...(['serverName', 'currentTime', 'notAfter', 'notBefore', 'candidate', 'webhook'] as const),
  ...(['peer', 'apiGroup', 'node', 'user', 'tokenId', 'side'] as const),
] as const

/** Facts by name. A list is a sentence or a command in the language of sentence.ts, with alternatives. */
export const facts: Readonly<Record<string, Fact | readonly string[]>> = {
  ...Object.fromEntries(inText.map((name) => [name, (found: Found) => found[name]])),
  ...sentences,
  /** The server of the connection. */
  at: componentOf,
  endpoint: ({ endpoints }) => endpoints[0],
  endpoints: ({ endpoints }) => (endpoints.length > 0 ? endpoints : undefined),
  /** The name that the client used for its server. */
  name: serverNameOf,
  kubeletEndpoint: ({ endpoints: [endpoint] }) => matching([endpoint], /:10250$/),
  kubeletPort: ({ endpoints }) => matching(endpoints, /:(?:10248|10250)$/),
  etcdEndpoint: ({ endpoints: [endpoint] }) => matching([endpoint], /:23(?:79|80)$/),
  isPluginFailed: ({ isPluginFailed }) => (isPluginFailed ? 'yes' : undefined),

  address: (found) => matching([serverNameOf(found)], /^\d+(?:\.\d+){3}$|:/),
  service: (found) => /^[a-z0-9-]+\.[a-z0-9-]+(?=\.svc)/.exec(serverNameOf(found) ?? '')?.[0],
  frontProxy: ({ candidate }) => matching([candidate], /^front-proxy/),
  certificateNames: ({ certificateNames }) => (certificateNames.length > 0 ? certificateNames : undefined),
  sixNames: ({ certificateNames }) => first(6, certificateNames),
  tenNames: ({ certificateNames }) => first(10, certificateNames),
  exactName: ({ certificateNames }) => matching(certificateNames, /^[^*]/),
  kubernetesName: ({ certificateNames }) =>
    matching(certificateNames, /^kubernetes(?:\.default(?:\.svc.*)?)?$/),
  /** Names in fallback certificates of servers, and in certificates that servers create at their start. */
  fallbackName: ({ certificateNames }) =>
    matching(certificateNames, /ingress\.local$|\.traefik\.default$|^invalid2?\.invalid$/i),
  ownNames: ({ certificateNames }) =>
    certificateNames.length > 0 && certificateNames.every((name) => ownName.test(name))
      ? certificateNames
      : undefined,

  late: (found) => spanOf(found.notAfter, found.currentTime),
  tooEarly: (found) => spanOf(found.currentTime, found.notBefore),
  yearsLate: (found) => ((lateBy(found) ?? 0) > 10 * yearMs ? found.currentTime : undefined),
  inTime: (found) => ((lateBy(found) ?? yearMs) > 0 ? undefined : 'yes'),

  userKind: ({ user = '' }) =>
    Object.entries(usersOf).find(([, beginnings]) => beginnings.test(user))?.[0] ?? 'other',
  bootstrapUser: ({ user }) => user && /^system:bootstrap:(.*)$/.exec(user)?.[1],

  file: ({ files }) => files[0],
  kubeconfigFile: ({ files }) => matching(files, /\.(?:conf|kubeconfig)$|\/config$/),
  kubeconfigOfAuthor: ({ component }) =>
    component && `/etc/kubernetes/${component.replace('kube-', '')}.conf`,
  configFile: ({ files }) => matching(files, /config$/),
  certificateFile,
  folder: (found) => certificateFile(found)?.replace(/\/[^/]*$/, ''),
  keyOrCertificate: ({ files }) => matching(files, /\.(?:pem|crt|cer|key|p12|pfx|jks)$/),
  caFile: ({ files }) => matching(files, /(?:^|\/)ca\.(?:crt|pem)$/),
  caKey: ({ files }) => matching(files, /(?:^|[/-])ca\.key$/),
  podFile: ({ files }) => matching(files, /^\/(?:tmp\/k8s-webhook-server|certs|tls|var\/run\/secrets)\//),
  kubeletNamed: ({ component, node, files }) => matching([component, node && 'kubelet', ...files], /kubelet/),
}

const usersOf: Readonly<Record<string, RegExp>> = {
  bootstrap: /^(?:system:bootstrap:|kubelet-bootstrap)/,
  node: /^system:node:/,
  admin: /^(?:kubernetes-admin|kubernetes-super-admin)/,
}

const ownName = /^(?:localhost|127\.0\.0\.1|::1|0:0:0:0:0:0:0:1|localhost\.localdomain)$/i

const componentOfPort: Readonly<Record<string, string>> = {
  6443: 'api-server',
  10250: 'kubelet',
  2379: 'etcd',
  2380: 'etcd',
}

const kubernetesPeers: readonly (string | undefined)[] = ['api-server', 'kubelet', 'etcd', 'mesh']

/** Returns the component of a connection, derived from its port, its name and the surrounding text. */
function componentOf({ webhook, apiGroup, endpoints: [endpoint], candidate, peer }: Found): string {
  if (webhook !== undefined || apiGroup?.endsWith('metrics.k8s.io')) return 'in-cluster'
  const byPort = endpoint && componentOfPort[endpoint.slice(endpoint.lastIndexOf(':') + 1)]
  if (byPort) return byPort
  if (endpoint && /^(?!kubernetes\.default).*\.svc(?:\.|:|$)/.test(endpoint)) return 'in-cluster'
  if (candidate === 'etcd-ca') return 'etcd'
  if (peer !== undefined) return kubernetesPeers.includes(peer) ? peer : 'outside'
  return endpoint === undefined ? 'unknown' : 'other'
}

function serverNameOf({ serverName, endpoints: [endpoint] }: Found): string | undefined {
  return serverName ?? (endpoint && withoutBrackets(endpoint.replace(/:\d+$/, '')))
}

function certificateFile({ files }: Found): string | undefined {
  return matching(files, /\.(?:pem|crt|cer)$/)
}

function lateBy({ currentTime, notAfter }: Found): number | undefined {
  return currentTime && notAfter ? Date.parse(currentTime) - Date.parse(notAfter) : undefined
}

/** Returns the duration between two times in words. */
function spanOf(from: string | undefined, to: string | undefined): string | undefined {
  return from && to ? spanText(Date.parse(to) - Date.parse(from)) : undefined
}

function first(count: number, names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined
  return names.slice(0, count).join(', ') + (names.length > count ? ' …' : '')
}

function matching(values: readonly (string | undefined)[], pattern: RegExp): string | undefined {
  return values.find((value) => value !== undefined && pattern.test(value))
}
