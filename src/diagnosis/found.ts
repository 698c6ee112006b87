import { given } from '../errors/given.ts'
import type { Found } from './report.ts'

// Facts in an error text: servers, names, times, files. A strict grammar is required for each, because facts go into commands
// that are pasted and onto screens that others see.

const hostPattern = String.raw`\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?`
const certificateName = String.raw`(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._:-]{0,252}[A-Za-z0-9])?`
const kubernetesName = `[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?`

const url = new RegExp(String.raw`https:\/\/(?:[^\s\/"'\\@]{0,256}@)?(${hostPattern})(?::(\d{1,5}))?`, 'g')
const dialled = new RegExp(
  String.raw`\bdial tcp (?:[^\s>\\]{1,80}-(?:>|\\u003e))?(${hostPattern}):(\d{1,5})`,
  'g',
)
const reached = new RegExp(
  String.raw`(?:[Cc]onnect(?:ed|ing|ion)? to|[Tt]o the server|the server|[Hh]ost:?|endpoint:?|etcd-endpoints:?|Addr:) ?["{]?(?:the server )?(${hostPattern}):(\d{1,5})\b`,
  'g',
)
const curlPort = new RegExp(String.raw`[Cc]onnected to (${hostPattern}) \([^)]{2,45}\) port (\d{1,5})`, 'g')
const python = new RegExp(String.raw`host='(${hostPattern})', port=(\d{1,5})`, 'g')
const endpointPatterns = [url, dialled, reached, curlPort, python]

const validFor =
  /\bcertificate is valid for ([^\n"\\]{1,8000}?), (?:but none matched|not) ([^\s"',\\]{1,260})/
const wanted: readonly RegExp[] = [
  /cannot validate certificate for (\S{1,253}) because/,
  /not valid for any names, but wanted to match ([^\s"'\\]{1,253})/,
  /(?:Host|IP): (\S{1,253}?)\.? is not (?:in the cert's list|in the cert's altnames|cert's CN)/,
  /certificate is not valid for ["'](\S{1,253})["']/,
  /match(?:es)? target (?:host name|hostname|ipv[46] address|host) ["']?([^\s"']{1,253})/i,
  /No (?:subject alternative (?:DNS )?name|name) matching (\S{1,253}) found/i,
  /No subject alternative names matching IP address (\S{1,64}) found/i,
  /hostname ["'](\S{1,253})["'] doesn't match/i,
  /requested host name ["'‘](\S{1,253}?)["'’]/,
  /certificate not valid for name \\?["'](\S{1,253}?)\\?["']/,
  /Hostname (\S{1,253}) not verified/,
  /tls: \\?"(\S{1,253}?)\\?" does not match any of DNSNames/,
]
const altNames = /cert's altnames: (?:Host: \S+ is not in the cert's altnames: )?([^\n]{1,8000})/
const bound =
  /current time (\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d)) is (after|before) (\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d))/
const bootstrapEnd = /is expired: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \+0000 UTC/
const candidate = /candidate authority certificate \\?"([^"\\]{1,200})\\?"/
const webhook = new RegExp(String.raw`(?:calling|call) webhook \\?"(${kubernetesName})\\?"`)
const apiGroup =
  /\/apis\/([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6})\/v\d|\bv\d[a-z0-9]{0,12}\.([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6})\b/
const node = new RegExp(
  String.raw`\b(?:node|nodeName|node_name)(?:[=:] ?| (?!(?:with|is|was|has|not|and|to|for|from|in|on|of|by|at|or)\b))\\?["']?(${kubernetesName})|system:node:(${kubernetesName})`,
)
const user = /[Uu]ser \\?"([A-Za-z0-9:@._-]{1,253})\\?"/
const tokenId = /token ID \\?"([a-z0-9]{6})\\?"/
const file =
  /(?:^|[\s"'=(:\\])((?:\/(?:etc|var|root|home|opt|srv|run|usr|tmp|mnt)|~|\.{1,2})(?:\/[A-Za-z0-9._@+-]{1,120}){1,12}\.(?:pem|crt|cer|key|p12|pfx|jks|conf|kubeconfig|yaml|yml)|\/[A-Za-z0-9._/-]{1,120}\/\.kube\/config)\b/g

const authorWords: readonly (readonly [NonNullable<Found['component']>, RegExp])[] = [
  [
    'kubelet',
    /kubelet\[\d|pkg\/kubelet\/|failed to run Kubelet|kubernetes\.io\/(?:kubelet-serving|kube-apiserver-client-kubelet)|Unable to register node|kubelet_node_status|cannot create certificate signing request|ensure lease exists/,
  ],
  ['kube-controller-manager', /kube-system\/kube-controller-manager/],
  ['kube-scheduler', /kube-system\/kube-scheduler/],
]

// The first match is used: a client of a registry often logs the name of the mesh too.
const peerWords: readonly (readonly [NonNullable<Found['peer']>, RegExp])[] = [
  ['kubelet', /error dialing backend|Failed to scrape node|unable to upgrade connection|\( ?pods\/log/],
  [
    'api-server',
    /Unable to connect to the server|cluster unreachable|current server API group list|error retrieving resource lock|Unable to register node/,
  ],
  ['registry', /failed to pull|pull(?:ing)? image|ErrImagePull|https:\/\/[^\s"']{1,256}\/v2\/|from daemon/i],
  ['identity-provider', /\boidc\b|openid-configuration|oauth2:/],
  ['acme', /\bacme\b|acme-v0|letsencrypt/i],
  ['repository', /helm repo|\bcharts?\b|\/index\.yaml|\.git\b|git-upload-pack|unable to access 'https/i],
  [
    'mesh',
    /linkerd|istio|envoy|identity service|proxy identity|proxy injector|OPENSSL_internal|upstream connect error|cluster\.local\\?"\)|by SDS|issued by the trust anchor|trust anchors are|Invalid anchors/,
  ],
  [
    'etcd',
    /etcd|rejected connection|rafthttp|ROUND_TRIPPER_|health check for peer|retrying of unary invoker/,
  ],
]
const urlWithPath = /https:\/\/([^\s/"'\\]{1,300})(\/[^\s"'\\?]{1,200})/g
const apiServerPath =
  /^\/(?:apis?|version|healthz|livez|readyz|openapi|metrics|cacerts|v1-k3s|k8s)(?:\/|$)|^\/$/
// An API server does not log more when it cannot reach its etcd.
const etcdHidden = /"command failed" err="context deadline exceeded"/

const serverWords =
  /TLS handshake error from|rejected connection|Unable to authenticate the request|verifying certificate SN=|http: TLS handshake|client didn't provide a certificate|peer did not return a certificate|client SSL certificate verify error|while SSL handshaking, client:/i

/** Returns the facts in a piece of an error text. */
export function findFacts(text: string): Found {
  const valid = validFor.exec(text)
  const times = boundsIn(text)
  const api = apiGroup.exec(text)
  const nodeName = node.exec(text)
  return given({
    endpoints: endpointsIn(text),
    serverName: plainName(valid?.[2] ?? firstOf(wanted, text)),
    certificateNames: listed(valid?.[1] ?? altNames.exec(text)?.[1] ?? ''),
    ...times,
    candidate: safe(candidate.exec(text)?.[1], /^[\w .:@=,*/()-]+$/),
    webhook: safe(webhook.exec(text)?.[1]),
    component: authorWords.find(([, words]) => words.test(text))?.[0],
    isPluginFailed: /executable \S{1,200} failed with exit code/.test(text) || undefined,
    peer: peerIn(text),
    apiGroup: safe(api?.[1] ?? api?.[2]),
    node: safe(nodeName?.[1] ?? nodeName?.[2]),
    user: safe(user.exec(text)?.[1]),
    tokenId: tokenId.exec(text)?.[1],
    files: unique(Array.from(text.matchAll(file), ([, path = '']) => path)).filter(
      (path) => !isSecretLike(path),
    ),
    side: sideOf(text),
  })
}

// An API server that connects to an identity provider is a client, within its own server log.
function sideOf(text: string): Found['side'] {
  if (serverWords.test(text) && !/\boidc: /.test(text)) return 'server'
  return /\bremote error: tls:|Unable to connect/.test(text) ? 'client' : 'unknown'
}

/** Returns the facts of a location, completed with those that occur only once in the whole text. */
export function completedBy(near: Found, whole: Found): Found {
  return {
    ...whole,
    ...near,
    endpoints: near.endpoints.length > 0 || whole.endpoints.length !== 1 ? near.endpoints : whole.endpoints,
    files: near.files.length > 0 || whole.files.length !== 1 ? near.files : whole.files,
    certificateNames: near.certificateNames,
  }
}

// Programs print links to their manuals next to an error. These are not the servers in question.
const manuals = new Set([
  'curl.se',
  'curl.haxx.se',
  'docs.python.org',
  'go.dev',
  'kubernetes.io',
  'nodejs.org',
  'urllib3.readthedocs.io',
])

function peerIn(text: string): Found['peer'] {
  if (etcdHidden.test(text)) return 'etcd'
  const named = peerWords.find(([, words]) => words.test(text))?.[0]
  if (named !== undefined) return named
  const [, , path] = text.matchAll(urlWithPath).find(([, host = '']) => !manuals.has(host)) ?? []
  if (path === undefined) return undefined
  return apiServerPath.test(path) ? 'api-server' : 'other'
}

function endpointsIn(text: string): string[] {
  const places = endpointPatterns
    .flatMap((pattern) => Array.from(text.matchAll(pattern)))
    .map(([, host = '', port = '443']) => ({ host, port: Number(port) }))
    .filter(({ host, port }) => port > 0 && port < 65_536 && !isSecretLike(host) && !manuals.has(host))
  return unique(places.map(({ host, port }) => `${host}:${port}`))
}

function boundsIn(text: string): Pick<Found, 'currentTime' | 'notAfter' | 'notBefore'> {
  const [, current, word, edge] = bound.exec(text) ?? []
  if (current === undefined || edge === undefined) {
    const ended = bootstrapEnd.exec(text)?.[1]
    return ended === undefined ? {} : { notAfter: `${ended.replace(' ', 'T')}Z` }
  }
  const [currentTime, at] = [utc(current), utc(edge)]
  if (currentTime === undefined || at === undefined) return {}
  return word === 'after' ? { currentTime, notAfter: at } : { currentTime, notBefore: at }
}

function utc(text: string): string | undefined {
  const time = new Date(text)
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString().replace(/\.\d+Z$/, 'Z')
}

/** "a, b" or "DNS:a, IP Address:10.0.0.1". */
function listed(text: string): string[] {
  const whole = new RegExp(`^${certificateName}$`)
  return text
    .split(/,\s*/)
    .map((name) => name.trim().replace(/^(?:DNS|IP Address|IP):/, ''))
    .filter((name) => whole.test(name) && !isSecretLike(name))
}

function firstOf(patterns: readonly RegExp[], text: string): string | undefined {
  return patterns
    .values()
    .map((pattern) => pattern.exec(text)?.[1])
    .find((found) => found !== undefined)
}

function plainName(name: string | undefined): string | undefined {
  return safe(name?.replace(/[.)\]]+$/, ''), new RegExp(`^${certificateName}$`))
}

function safe(value: string | undefined, grammar = /^[\w.:@=,*/-]+$/): string | undefined {
  return value !== undefined && grammar.test(value) && !isSecretLike(value) ? value : undefined
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)]
}

const tokenShapes: readonly RegExp[] = [
  // JSON Web Tokens, as used by service accounts.
  /eyJ[\w-]{8,}/,
  // Bootstrap tokens.
  /(?:^|[^a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}(?:$|[^a-z0-9])/,
  // Long runs of the characters in keys, hashes and passwords. Names of hosts and files contain dots and dashes.
  /[A-Za-z0-9+/_]{40,}/,
  /\b(?:ghp|gho|glpat|xox[abp]|AKIA|sk)[-_A-Z0-9][\w-]{12,}/,
]

/** True for text that may be a token, a key or a password. It is therefore not printed. */
function isSecretLike(text: string): boolean {
  return tokenShapes.some((shape) => shape.test(text))
}
