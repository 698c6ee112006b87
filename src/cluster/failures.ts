import type { ErrorCode } from '../errors/codes.ts'
import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { isObject } from '../errors/is-object.ts'
import { type Advice, KcertError } from '../errors/kcert-error.ts'
import type { Clock } from '../system/clock.ts'
import type { Access, UserDescription } from './credentials.ts'
import { adviceForRight } from './forbidden.ts'
import { type ApiObject, MalformedAnswer, objectIn } from './malformed.ts'
import type { Answer, Unanswered } from './transport.ts'
import { describeUntrusted } from './untrusted.ts'

/** A Status object with which the API server refused a call. */
export class StatusError extends KcertError {
  readonly status: number
  /** "AlreadyExists", "Conflict", "Expired" … */
  readonly reason: string

  constructor(
    code: ErrorCode,
    what: string,
    advice: Advice & { why?: string },
    { status, reason }: { status: number; reason: string },
  ) {
    super(code, what, advice)
    this.status = status
    this.reason = reason
  }
}

/** Returns the HTTP status of the API server's refusal; undefined for other errors. */
export function statusIn(error: unknown): number | undefined {
  return error instanceof StatusError ? error.status : undefined
}

/** Returns the error code for an HTTP status of the API server. */
export function codeOfStatus(status: number): ErrorCode {
  const isOfRequest = status >= 400 && status < 500 && status !== 429
  return codes[status] ?? (isOfRequest ? 'KCERT_API_INVALID' : 'KCERT_UNREACHABLE')
}

/** Errors of a kubeconfig whose CA or client certificate is no longer accepted. */
export const credentialRefusals: ReadonlySet<ErrorCode> = new Set([
  'KCERT_API_UNAUTHORIZED',
  'KCERT_API_CLIENT_EXPIRED',
  'KCERT_API_UNTRUSTED',
  'KCERT_API_CERT_EXPIRED',
])

const codes: Readonly<Record<number, ErrorCode>> = {
  401: 'KCERT_API_UNAUTHORIZED',
  403: 'KCERT_API_FORBIDDEN',
  404: 'KCERT_API_NOT_FOUND',
  409: 'KCERT_API_CONFLICT',
  410: 'KCERT_API_CONFLICT',
}

/** A refusal, with the server's Retry-After. */
export interface Refusal {
  readonly status: number
  readonly retryAfterMs: number | undefined
  readonly error: StatusError
}

interface Origin {
  readonly server: URL
  readonly clock: Clock
  readonly kubectl: CommandLine
  readonly user: () => UserDescription
  /** The paths of the kubeconfigs. */
  readonly files: readonly string[]
  readonly timeoutMs: number
}

interface Circumstances {
  /** The call, with its purpose for messages. */
  readonly call: { readonly purpose: string }
  readonly access: Access
}

/** Failures between kcert and an API server, as KcertErrors. They never contain a token, key or password. */
export class Failures {
  readonly #origin: Origin

  constructor(origin: Origin) {
    this.#origin = origin
  }

  /** Returns the JSON of the response. */
  parse(body: Buffer, purpose: string): ApiObject {
    const object = objectIn(body.toString('utf8'))
    if (object !== undefined) return object
    const next = commandLine`${embed(this.#origin.kubectl)} version`
    throw new MalformedAnswer(purpose, 'a response that is not a JSON object', next)
  }

  refusal(answer: Answer, { call, isSecond }: Circumstances & { isSecond: boolean }): Refusal {
    const said = statusOf(answer.body)
    const { status } = answer
    const message = said.message ?? `HTTP status ${status}`
    const { code, what, ...advice } = this.#kindOf(status, said, call.purpose)
    const why =
      isSecond && status === 409
        ? `${message} (the connection was lost during an earlier attempt, which may have succeeded and caused this conflict)`
        : message
    return {
      status,
      retryAfterMs: retryAfterMs(answer, said.retryAfterSeconds),
      error: new StatusError(
        code,
        what,
        { why: status === 401 ? this.#whyUnknown(message) : why, ...advice },
        { status, reason: said.reason },
      ),
    }
  }

  async unreachable(
    failure: Unanswered,
    { call, access, mayHaveHappened }: Circumstances & { mayHaveHappened: boolean },
  ): Promise<KcertError> {
    const { server, clock } = this.#origin
    const untrusted = access.tls && (await describeUntrusted(failure, server, access.tls, clock()))
    if (untrusted !== undefined) {
      const code = failure.code === 'CERT_HAS_EXPIRED' ? 'KCERT_API_CERT_EXPIRED' : 'KCERT_API_UNTRUSTED'
      return new KcertError(code, `${this.#place} is not trusted`, {
        why: untrusted,
        next: commandLine`kcert inspect ${hostAndPort(server)}`,
        cause: failure.cause,
      })
    }
    const reason = `${reasonOf(failure, this.#origin.timeoutMs)}${access.proxyAgent === undefined ? '' : ' (through the proxy that proxy-url or HTTPS_PROXY names)'}`
    return new KcertError(
      'KCERT_UNREACHABLE',
      mayHaveHappened
        ? `${this.#place} may or may not have done this: ${call.purpose}`
        : `${this.#place} is unreachable: cannot ${call.purpose}`,
      {
        why: mayHaveHappened
          ? `${reason}; check whether it was done, and run the command again if not`
          : reason,
        ...(mayHaveHappened ? {} : { next: commandLine`kcert inspect ${hostAndPort(server)}` }),
        cause: failure.cause,
      },
    )
  }

  get #place(): string {
    return `the API server at ${this.#origin.server.origin}`
  }

  #kindOf(
    status: number,
    { reason, message = '' }: StatusText,
    purpose: string,
  ): Advice & { code: ErrorCode; what: string } {
    const { files } = this.#origin
    const kubectl = embed(this.#origin.kubectl)
    const code = codeOfStatus(status)
    switch (status) {
      case 401: {
        const what = `${this.#place} cannot authenticate you (401)`
        return this.#hasExpired
          ? { code: 'KCERT_API_CLIENT_EXPIRED', what, next: commandLine`kcert inspect ${files}` }
          : { code, what, next: commandLine`${kubectl} auth whoami` }
      }
      case 403: {
        const advice = adviceForRight(message) ?? { next: commandLine`${kubectl} auth can-i --list` }
        return { code, what: `not allowed to ${purpose}`, ...advice }
      }
      case 404:
        return {
          code,
          what: `not found: cannot ${purpose}`,
          next: commandLine`${kubectl} config current-context`,
        }
      case 409: {
        if (reason !== 'AlreadyExists')
          return {
            code,
            what: `changed by another client in the meantime: cannot ${purpose}`,
            fix: 'run the command again',
          }
        const what = `an object of that name already exists: cannot ${purpose}`
        return { code, what, fix: 'choose another name, or delete it first' }
      }
      case 410: {
        const what = `the resource version is too old (410): cannot ${purpose}`
        return { code, what, fix: 'run the command again' }
      }
      default:
        break
    }
    if (code === 'KCERT_API_INVALID')
      return {
        code,
        what: `${this.#place} rejects the request: cannot ${purpose}`,
        fix: 'change what the message names',
      }
    const what = `${this.#place} could not ${purpose} (HTTP status ${status})`
    return { code, what, next: commandLine`${kubectl} get --raw '/readyz?verbose'` }
  }

  get #hasExpired(): boolean {
    const { certificate } = this.#origin.user()
    return certificate !== undefined && certificate.notAfter < this.#origin.clock()
  }

  #whyUnknown(message: string): string {
    const { credential, certificate, name } = this.#origin.user()
    if (certificate !== undefined && this.#hasExpired) {
      return `the client certificate ${certificate.subject} expired at ${certificate.notAfter.toISOString().replace('.000', '')}`
    }
    return `${message}: user ${JSON.stringify(name)} of the kubeconfig authenticated with ${credential}`
  }
}

interface StatusText {
  readonly message: string | undefined
  readonly reason: string
  readonly retryAfterSeconds: number | undefined
}

/** Returns the parts of a Status object. For other bodies, returns the first line if it is short text. */
function statusOf(body: Buffer): StatusText {
  const said = objectIn(body.toString('utf8'))
  if (said === undefined) {
    const [line = ''] = body.subarray(0, 400).toString('utf8').split('\n')
    const isText = line.trim() !== '' && !line.includes('<')
    return { message: isText ? line.trim() : undefined, reason: '', retryAfterSeconds: undefined }
  }
  const { message, reason, details } = said
  const seconds = isObject(details) ? details.retryAfterSeconds : undefined
  return {
    message: typeof message === 'string' && message !== '' ? message.slice(0, 2_000) : undefined,
    reason: typeof reason === 'string' ? reason : '',
    retryAfterSeconds: typeof seconds === 'number' && seconds > 0 ? seconds : undefined,
  }
}

function retryAfterMs({ retryAfter }: Answer, fromBody: number | undefined): number | undefined {
  const seconds = retryAfter === undefined ? fromBody : Number(retryAfter)
  return seconds !== undefined && seconds >= 0 ? seconds * 1000 : undefined
}

export function hostAndPort(server: URL): string {
  return `${server.hostname}:${server.port || (server.protocol === 'https:' ? '443' : '80')}`
}

function reasonOf({ code, message }: Unanswered, timeoutMs: number): string {
  if (code === undefined) return message
  if (code === 'ETIMEDOUT') return `no answer within ${timeoutMs / 1000} s (--request-timeout)`
  return reasons[code] ?? `${message} (${code})`
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ENOTFOUND: 'no such host: the name has no address',
  EAI_AGAIN: 'the name server does not answer',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'no route to host',
  ECONNRESET: 'the connection was closed',
  EPIPE: 'the connection was closed',
  ERR_STREAM_PREMATURE_CLOSE: 'the connection was closed',
  EPROTO: 'the server does not use TLS',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not use TLS',
}
