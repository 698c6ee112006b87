import { randomBytes } from 'node:crypto'
import { commandLine, embed } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { NodeCall } from '../pki/node-access.ts'
import type { ProgramEnd, RunningProgram } from '../system/running-program.ts'
import { bootstrap, nodeScript } from './node-script.ts'
import { type Answer, AnswerReader, BrokenAnswer, readRecords } from './protocol.ts'
import type { Transport } from './transport.ts'

export const defaultTimeoutMs = 30_000

// A shell that must exit kills the processes that it started, and gives them 2 s.
const endingMs = 4_000
const lastWordsMs = 200
const keptOfStderr = 8_192

interface Pending {
  readonly id: string
  resolve(answer: { lines: readonly string[]; status: number }): void
  reject(error: Error): void
}

/**
 * One shell on a node, which handles one request at a time. It exits on request, when a request times out or is aborted, or when
 * the connection is lost. The processes that it started on the node end with it.
 */
export class Session {
  private readonly node: string
  private readonly transport: Transport
  private readonly program: RunningProgram
  private readonly reader: AnswerReader
  private readonly mark = randomBytes(9).toString('hex')
  private readonly exited: Promise<void>
  private pending: Pending | undefined
  private stderr = ''
  private count = 0
  private ended: KcertError | undefined
  private lost = false

  private constructor(node: string, transport: Transport, program: RunningProgram) {
    this.node = node
    this.transport = transport
    this.program = program
    this.reader = new AnswerReader(this.mark)
    const { stdout, stderr, exited, closed } = program
    this.exited = new Promise((resolve) => {
      const end = (how: ProgramEnd): void => {
        this.lost ||= this.ended === undefined
        this.end(this.whyEnded(how))
        // Processes that the program left on this machine may keep the pipes open, or keep writing, and kcert would never exit.
        stdout.destroy()
        stderr.destroy()
        resolve()
      }
      void closed.then(end)
      // A master connection of ssh may keep the pipes open for much longer than its first client runs.
      void exited.then((how) => setTimeout(() => end(how), lastWordsMs))
    })
    stdout.on('data', (bytes: Buffer) => this.read(bytes))
    stderr.on('data', (bytes: Buffer) => {
      this.stderr = `${this.stderr}${bytes.toString('utf8')}`.slice(-keptOfStderr)
    })
  }

  /** Returns a session whose shell has responded. Throws the transport's explanation of a failure, or KCERT_NODE_UNFIT. */
  static async open(node: string, transport: Transport, call: NodeCall): Promise<Session> {
    const session = new Session(node, transport, await transport.start(bootstrap, call.signal))
    const script = Buffer.from(nodeScript(session.mark))
    const { lines } = await session.hello(script, call)
    const missing = lines.join(' ').split(' ').slice(1)
    if (missing.length === 0) return session
    await session.close()
    const what = `node "${node}" lacks programs that kcert needs: ${missing.join(', ')}`
    throw new KcertError('KCERT_NODE_UNFIT', what, {
      why: 'kcert needs a POSIX shell and the tools of coreutils or busybox: install coreutils, or use a command whose shell sees the host (nsenter, chroot /host)',
    })
  }

  private async hello(script: Buffer, call: NodeCall): Promise<{ lines: readonly string[] }> {
    try {
      return await this.exchange('0', `${script.length}\n`, script, call)
    } catch (error) {
      // No shell has responded, so none can exit by itself, and neither can a process that the command started before it.
      this.program.kill()
      throw error
    }
  }

  get isOpen(): boolean {
    return this.ended === undefined
  }

  /** True if the session ended unexpectedly: the current request may be sent again in another session. */
  get wasLost(): boolean {
    return this.lost
  }

  /** Sends a command of the script, with bytes for it, and returns its answer. */
  async request(command: string, content: string, call: NodeCall): Promise<Answer> {
    const id = `${++this.count}`
    const head = `${id} ${content.length} ${command}\n`
    const { lines, status } = await this.exchange(id, head, content, call)
    try {
      return { status, records: readRecords(lines) }
    } catch (error) {
      if (!(error instanceof BrokenAnswer)) throw error
      this.lost = true
      this.abandon()
      throw this.unreadable(error)
    }
  }

  private unreadable({ message }: BrokenAnswer): KcertError {
    const what = `node "${this.node}" sent an unreadable response`
    return new KcertError('KCERT_NODE_UNREACHABLE', what, {
      why: `${message}: another program, perhaps started by the login shell, writes to the same output`,
      next: commandLine`${embed(this.transport.title)}`,
    })
  }

  /** Ends the shell, and waits until it has exited. */
  async close(): Promise<void> {
    this.abandon()
    // Processes that it started on this machine are in its group, and are killed with it if it does not exit by itself.
    const patience = setTimeout(() => this.program.kill(), endingMs)
    await this.exited
    clearTimeout(patience)
  }

  /** Ends the shell. Some transports do not forward the end of the input, so a command is sent too. */
  private abandon(): void {
    this.end(new KcertError('KCERT_NODE_UNREACHABLE', `the session to node "${this.node}" was closed`))
    if (this.program.stdin.writable) this.program.stdin.end('bye\n')
  }

  private async exchange(
    id: string,
    head: string,
    content: Uint8Array | string,
    { timeoutMs = defaultTimeoutMs, signal }: NodeCall,
  ): Promise<{ lines: readonly string[]; status: number }> {
    signal?.throwIfAborted()
    if (this.ended !== undefined) throw this.ended
    const answered = Promise.withResolvers<{ lines: readonly string[]; status: number }>()
    this.pending = { id, resolve: answered.resolve, reject: answered.reject }
    this.reader.begin()
    const timer = setTimeout(() => this.stop(this.timedOut(timeoutMs)), timeoutMs)
    const onAbort = (): void => this.stop(signal?.reason as Error)
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      this.program.stdin.write(head)
      if (content.length > 0) this.program.stdin.write(content)
      return await answered.promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      this.pending = undefined
    }
  }

  /** Fails the current request, and ends the shell: with a command if it responds, otherwise by force. */
  private stop(error: Error): void {
    this.pending?.reject(error)
    this.abandon()
    const patience = setTimeout(() => this.program.kill(), endingMs)
    void this.exited.then(() => clearTimeout(patience))
  }

  private read(bytes: Buffer): void {
    // Output after the end of a session is discarded.
    if (this.ended !== undefined) return
    try {
      for (const { id, lines, status } of this.reader.take(bytes)) {
        if (this.pending?.id === id) this.pending.resolve({ lines, status })
      }
    } catch (error) {
      if (!(error instanceof BrokenAnswer)) throw error
      this.stop(this.unreadable(error))
    }
  }

  private end(error: KcertError): void {
    this.ended ??= error
    this.pending?.reject(this.ended)
  }

  private whyEnded(end: ProgramEnd): KcertError {
    const { status, cause } = end
    const stderr = this.stderr.trim()
    const explained = this.transport.explain({ ...end, stderr })
    if (explained !== undefined) return explained
    const words =
      stderr === '' ? (cause?.message ?? `its exit status was ${status ?? 'none'}`) : lastLines(stderr)
    return new KcertError('KCERT_NODE_UNREACHABLE', `lost the connection to node "${this.node}"`, {
      why: words,
      next: commandLine`${embed(this.transport.title)}`,
      ...(cause && { cause }),
    })
  }

  private timedOut(timeoutMs: number): KcertError {
    const stderr = this.stderr.trim()
    const what = `node "${this.node}" did not respond within ${timeoutMs / 1000} s`
    return new KcertError('KCERT_NODE_UNREACHABLE', what, {
      ...(stderr !== '' && { why: lastLines(stderr) }),
      next: commandLine`${embed(this.transport.title)}`,
    })
  }
}

/** Returns the last lines of a program's output, as a fragment. */
export function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join('; ')
}
