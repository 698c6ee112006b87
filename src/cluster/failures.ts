import type { ErrorCode } from '../errors/codes.ts'
import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Clock } from '../system/clock.ts'
import type { Access, Credentials, UserDescription } from './credentials.ts'
import { commandForRight } from './forbidden.ts'
import { type ApiObject, MalformedAnswer, objectIn } from './malformed.ts'
import type { Answer, Unanswered } from './transport.ts'
import { describeUntrusted } from './untrusted.ts'

/** What the API server said instead of yes: a Status object. */
export class StatusError extends KcertError {
  readonly status: number
  /** "AlreadyExists", "Conflict", "Expired" … */
  readonly reason: string

  constructor(
    code: ErrorCode,
    what: string,
    advice: { why?: string; next?: string },
    { status, reason }: { status: number; reason: string },
  ) {
    super(code, what, advice)
    this.status = status
    this.reason = reason
  }
}

/** A refusal, and when the server wants to be asked again. */
export interface Refusal {
  readonly status: number
  readonly retryAfterMs: number | undefined
  readonly error: StatusError
}

interface Origin {
  readonly server: URL
  readonly credentials: Credentials
  readonly clock: Clock
  readonly kubectl: CommandLine
  readonly user: () => UserDescription
  /** The kubeconfigs. */
  readonly files: readonly string[]
  readonly timeoutMs: number
}

interface Circumstances {
  /** With what it is for, in a message. */
  readonly call: { readonly purpose: string }
  readonly access: Access
}

/** What goes wrong between kcert and an API server, in kcert's words. No token, key or password is ever among them. */
export class Failures {
  readonly #origin: Origin

  constructor(origin: Origin) {
    this.#origin = origin
  }

  /** Returns the answer's JSON. */
  parse(body: Buffer, purpose: string): ApiObject {
    const object = objectIn(body.toString('utf8'))
    if (object !== undefined) return object
    const next = commandLine`${embed(this.#origin.kubectl)} version`
    throw new MalformedAnswer(purpose, 'what is not a JSON object', next)
  }

  refusal(answer: Answer, { call, isSecond }: Circumstances & { isSecond: boolean }): Refusal {
    const said = statusOf(answer.body)
    const { status } = answer
    const message = said.message ?? `HTTP status ${status}`
    const { code, what, next } = this.#kindOf(status, said, call)
    const why =
      isSecond && status === 409
        ? `${message} (an earlier try was cut off, and may be what it conflicts with)`
        : message
    return {
      status,
      retryAfterMs: retryAfterMs(answer, said.retryAfterSeconds),
      error: new StatusError(
        code,
        what,
        { why: status === 401 ? this.#whyUnknown(message) : why, next },
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
        ? `${this.#place} was asked to ${call.purpose}, and it is not known whether it did`
        : `${this.#place} cannot be reached to ${call.purpose}`,
      {
        why: reason,
        next: mayHaveHappened
          ? 'look whether it happened, and run the command again if it did not'
          : commandLine`kcert inspect ${hostAndPort(server)}`,
        cause: failure.cause,
      },
    )
  }

  get #place(): string {
    return `the API server at ${this.#origin.server.origin}`
  }

  #kindOf(
    status: number,
    { reason, message = '' }: Said,
    { purpose }: Circumstances['call'],
  ): { code: ErrorCode; what: string; next: string } {
    const { files } = this.#origin
    const kubectl = embed(this.#origin.kubectl)
    switch (status) {
      case 401:
        return {
          code: this.#hasExpired ? 'KCERT_API_CLIENT_EXPIRED' : 'KCERT_API_UNAUTHORIZED',
          what: `${this.#place} does not know who asks`,
          next: this.#hasExpired ? commandLine`kcert inspect ${files}` : commandLine`${kubectl} auth whoami`,
        }
      case 403: {
        const command = commandForRight(message)
        return {
          code: 'KCERT_API_FORBIDDEN',
          what: `not allowed to ${purpose}`,
          next:
            command === undefined
              ? commandLine`${kubectl} auth can-i --list`
              : commandLine`ask whoever may give the right: ${embed(command)}`,
        }
      }
      case 404:
        return {
          code: 'KCERT_API_NOT_FOUND',
          what: `there is nothing to ${purpose}`,
          next: 'look at its name, and at --context',
        }
      case 409:
        return reason === 'AlreadyExists'
          ? {
              code: 'KCERT_API_CONFLICT',
              what: `one of its name exists already: cannot ${purpose}`,
              next: 'choose another name, or delete it first',
            }
          : {
              code: 'KCERT_API_CONFLICT',
              what: `changed by somebody else meanwhile: cannot ${purpose}`,
              next: 'run the command again',
            }
      case 410:
        return {
          code: 'KCERT_API_CONFLICT',
          what: `what was being read is too old now: cannot ${purpose}`,
          next: 'run the command again',
        }
      default:
        break
    }
    if (status >= 400 && status < 500 && status !== 429) {
      return {
        code: 'KCERT_API_INVALID',
        what: `${this.#place} refuses to ${purpose}`,
        next: 'change what the message names',
      }
    }
    return {
      code: 'KCERT_UNREACHABLE',
      what: `${this.#place} could not ${purpose} (HTTP status ${status})`,
      next: commandLine`${kubectl} get --raw '/readyz?verbose'`,
    }
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
    return `${message}: user ${JSON.stringify(name)} of the kubeconfig asked with ${credential}`
  }
}

interface Said {
  readonly message: string | undefined
  readonly reason: string
  readonly retryAfterSeconds: number | undefined
}

/** The parts of a Status object; of what is none, its first line when it is short text. */
function statusOf(body: Buffer): Said {
  try {
    const { message, reason, details } = JSON.parse(body.toString('utf8')) as Record<string, unknown>
    const seconds = (details as { retryAfterSeconds?: unknown } | undefined)?.retryAfterSeconds
    return {
      message: typeof message === 'string' && message !== '' ? message.slice(0, 2_000) : undefined,
      reason: typeof reason === 'string' ? reason : '',
      retryAfterSeconds: typeof seconds === 'number' && seconds > 0 ? seconds : undefined,
    }
  } catch {
    const [line = ''] = body.subarray(0, 400).toString('utf8').split('\n')
    const isText = line.trim() !== '' && !line.includes('<')
    return { message: isText ? line.trim() : undefined, reason: '', retryAfterSeconds: undefined }
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
  switch (code) {
    case 'ECONNREFUSED':
      return 'nothing listens there: the connection was refused'
    case 'ENOTFOUND':
      return 'no address is known for that name'
    case 'EAI_AGAIN':
      return 'the name could not be looked up: the name server does not answer'
    case 'ETIMEDOUT':
      return `no answer within ${timeoutMs / 1000} s (--request-timeout)`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'no route leads there'
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ERR_STREAM_PREMATURE_CLOSE':
      return 'the connection was cut'
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
      return 'what answers there does not speak TLS'
    default:
      return code === undefined ? message : `${message} (${code})`
  }
}
