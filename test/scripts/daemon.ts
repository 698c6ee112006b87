import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'

/** A command that runs until a signal stops it, and its output. */
export class Daemon {
  /** Ended by `killAll`. */
  static readonly children: ChildProcess[] = []
  private readonly child: ChildProcess
  readonly over: Promise<number | null>
  stdout = ''
  stderr = ''

  constructor(args: readonly string[], cwd: string) {
    this.child = spawn(process.execPath, [resolve('bin/run.js'), ...args], {
      cwd,
      env: { PATH: process.env.PATH },
    })
    Daemon.children.push(this.child)
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    this.over = new Promise((done) => this.child.once('close', (code) => done(code)))
  }

  static killAll(): void {
    for (const child of Daemon.children.splice(0)) child.kill('SIGKILL')
  }

  get pid(): number {
    return this.child.pid!
  }

  async says(pattern: RegExp, times = 1): Promise<void> {
    for (let tries = 0; tries < 2_400; tries++) {
      if ((this.stderr.match(new RegExp(pattern, 'g')) ?? []).length >= times) return
      await new Promise((done) => setTimeout(done, 50))
    }
    throw new Error(`it does not say ${pattern}, but:\n${this.stderr}`)
  }

  kill(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal)
    return this.over
  }

  send(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }
}
