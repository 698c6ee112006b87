import { KcertError } from '../errors/kcert-error.ts'
import type { NodeCall } from '../pki/node-access.ts'
import type { Answer } from './protocol.ts'
import { defaultTimeoutMs, Session } from './session.ts'
import type { Transport } from './transport.ts'

// By default, sshd allows ten sessions per connection; a node gets only a few requests at a time.
const mostSessions = 3

/** The shells of one node: opened on demand, reused, one request each at a time. */
export class SessionPool {
  private readonly node: string
  private readonly transport: Transport
  private readonly idle: Session[] = []
  private readonly retiring = new Map<Session, NodeJS.Timeout>()
  private readonly all = new Set<Session>()
  private readonly waiting: (() => void)[] = []
  private count = 0
  private readonly mostMs: number
  private readonly closing = new AbortController()

  constructor(node: string, transport: Transport, mostMs = Number.POSITIVE_INFINITY) {
    this.node = node
    this.transport = transport
    this.mostMs = mostMs
  }

  /** Returns the answer to a command. `again`: after a lost connection it is sent once more, over a new one. */
  async request(
    command: string,
    content: string,
    { timeoutMs = defaultTimeoutMs, ...others }: NodeCall,
    patience: 'once' | 'again',
  ): Promise<Answer> {
    const call = { timeoutMs: Math.min(timeoutMs, this.mostMs), ...others }
    const session = await this.take(call)
    try {
      return await session.request(command, content, call)
    } catch (error) {
      if (patience === 'once' || !session.wasLost || this.closing.signal.aborted) throw error
    } finally {
      this.give(session)
    }
    return this.request(command, content, call, 'once')
  }

  async close(): Promise<void> {
    // A session that is still opening is not in `all`, and its shell would keep kcert running.
    this.closing.abort(this.closedError())
    for (const timer of this.retiring.values()) clearTimeout(timer)
    for (const resume of this.waiting.splice(0)) resume()
    await Promise.all([...this.all].map((session) => session.close()))
    await this.transport.close()
  }

  private async take(call: NodeCall): Promise<Session> {
    for (;;) {
      this.closing.signal.throwIfAborted()
      const idle = this.idle.pop()
      if (idle !== undefined) clearTimeout(this.retiring.get(idle))
      if (idle?.isOpen) return idle
      if (idle !== undefined) this.forget(idle)
      else if (this.count < mostSessions) return this.open(call)
      else await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
  }

  private async open(call: NodeCall): Promise<Session> {
    this.count++
    try {
      const closing = this.closing.signal
      const signal = call.signal === undefined ? closing : AbortSignal.any([closing, call.signal])
      const session = await Session.open(this.node, this.transport, { ...call, signal })
      this.all.add(session)
      if (closing.aborted) await session.close()
      closing.throwIfAborted()
      return session
    } catch (error) {
      this.count--
      this.waiting.shift()?.()
      throw error
    }
  }

  private closedError(): KcertError {
    return new KcertError('KCERT_NODE_UNREACHABLE', `the connection to node "${this.node}" is closed`)
  }

  private give(session: Session): void {
    if (session.isOpen) this.rest(session)
    else this.forget(session)
    this.waiting.shift()?.()
  }

  private rest(session: Session): void {
    this.idle.push(session)
    const { idleMs } = this.transport
    if (idleMs === undefined) return
    const retire = (): void => {
      this.idle.splice(this.idle.indexOf(session), 1)
      this.forget(session)
    }
    this.retiring.set(session, setTimeout(retire, idleMs).unref())
  }

  private forget(session: Session): void {
    clearTimeout(this.retiring.get(session))
    this.retiring.delete(session)
    this.count--
    // The session may still be stopping its processes; close() waits for that.
    void session.close().then(() => this.all.delete(session))
  }
}
