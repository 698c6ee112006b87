import type { ClientVerdict } from './report.ts'
import type { EndpointKind, Observed, Target } from './target.ts'

// Whether a server accepts a client certificate. With TLS 1.3 the server reports it only after the handshake. API servers and
// kubelets complete the handshake with any certificate and then answer 401. Therefore both the alert and the response to a
// request must be checked.

/** One HTTP request. */
export interface Question {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const whoAmI: Question = {
  method: 'POST',
  path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
  body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
}

const get = (path: string): Question => ({ method: 'GET', path })

/** Requests that a kind of server answers differently for different users. They are read-only. */
const questions: Readonly<Partial<Record<EndpointKind, Question>>> = {
  kubelet: get('/healthz'),
  etcd: get('/version'),
  'etcd-peer': get('/version'),
  'controller-manager': get('/metrics'),
  scheduler: get('/metrics'),
}

/** Returns the request for a server to which a client certificate was sent. */
export function questionFor(kind: EndpointKind): Question {
  return questions[kind] ?? whoAmI
}

const anonymous = 'system:anonymous'

/** Returns the server's verdict on the client certificate, or that none was sent. */
export function clientVerdict({ client, kind }: Target, observed: Observed): ClientVerdict {
  const { clientAuthorities, version, fault, answer } = observed
  const shown = client && { source: client.source, subject: client.subject }
  if (clientAuthorities === undefined) {
    // Without a version the server's messages could not be read, and they may contain a certificate request.
    return shown === undefined || version !== undefined
      ? { verdict: 'not-requested' }
      : { ...shown, verdict: 'unknown', detail: 'its handshake messages cannot be read' }
  }
  if (shown === undefined) {
    const insists = fault !== undefined && isRefusal(fault)
    return { verdict: 'not-tested', ...(insists && { detail: 'it requires one' }) }
  }
  if (fault !== undefined) {
    const verdict = isRefusal(fault) ? 'refused' : 'unknown'
    return { ...shown, verdict, detail: wordsOf(fault) }
  }
  if (answer === undefined) return { ...shown, verdict: 'unknown', detail: 'no response' }
  return { ...shown, ...verdictOfAnswer(answer, kind) }
}

// nginx completes the handshake, and rejects the certificate with a page that only its title identifies
// (ngx_http_special_response.c).
const refusedByNginx =
  /<title>400 (?:The SSL certificate error|No required SSL certificate was sent)<\/title>/i

function verdictOfAnswer(
  { status, body }: NonNullable<Observed['answer']>,
  kind: EndpointKind,
): Pick<ClientVerdict, 'verdict' | 'detail' | 'user'> {
  if (status === 401) return { verdict: 'refused', detail: 'HTTP 401' }
  if (status === 400 && refusedByNginx.test(body)) return { verdict: 'refused', detail: 'HTTP 400' }
  const user = userIn(body)
  if (user === anonymous) return { verdict: 'ignored', detail: `it treats the client as ${anonymous}` }
  if (user !== undefined) return { verdict: 'accepted', detail: `as ${user}`, user }
  // etcd accepts no client without a certificate. A kubelet returns 200 only to an authorized client.
  const isTaken = kind === 'etcd' || kind === 'etcd-peer' || (kind === 'kubelet' && status === 200)
  return { verdict: isTaken ? 'accepted' : 'connected', detail: `HTTP ${status}` }
}

/** Returns the user in a SelfSubjectReview, or in the message with which API servers and kubelets deny a permission. */
function userIn(body: string): string | undefined {
  const named = /^Forbidden \(user=([^,]+),/.exec(body)?.[1] ?? /User \\?"([^"\\]+)\\?"/.exec(body)?.[1]
  if (named !== undefined) return named
  try {
    const username: unknown = JSON.parse(body)?.status?.userInfo?.username
    return typeof username === 'string' ? username : undefined
  } catch {
    return undefined
  }
}

/** True for a TLS alert. A closed connection is not evidence about the certificate: the server may not speak HTTP. */
function isRefusal({ code = '' }: NodeJS.ErrnoException): boolean {
  return /ALERT/.test(code)
}

function wordsOf(fault: NodeJS.ErrnoException): string {
  const { code } = fault
  if (code === 'ETIMEDOUT') return 'no response in time'
  const alert = /ALERT_(\w+)$/.exec(code ?? '')?.[1]
  if (alert !== undefined) return `TLS alert: ${alert.toLowerCase().replaceAll('_', ' ')}`
  return code === 'ECONNRESET' || code === 'EPIPE'
    ? 'it closed the connection without a TLS alert or an HTTP status'
    : fault.message
}
