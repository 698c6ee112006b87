import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

// Go's crypto/x509 for comparison: test/peers/go, built once and kept for the next run.

const source = join(import.meta.dirname, 'go')

/** Returns the path of the built peer, or the reason why it is missing, in one line. */
export function buildGoPeer(): { readonly path: string } | { readonly missing: string } {
  const files = globSync('*.{go,mod}', { cwd: source }).sort()
  const digest = hash(
    'sha256',
    files.map((file) => readFileSync(join(source, file), 'utf8')).join('\0'),
  ).slice(0, 16)
  const folder = join(tmpdir(), `kcert-go-peer-${userInfo().uid}-${digest}`)
  const path = join(folder, 'peer')
  if (existsSync(path)) return { path }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  try {
    // Uses the installed Go and no network: the peer needs only the standard library.
    const env = { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly', GOPROXY: 'off' }
    // Other processes may build it at the same time, so the build is moved to its path when it is complete.
    const own = `${path}.${process.pid}`
    execFileSync('go', ['build', '-trimpath', '-o', own, '.'], { cwd: source, env, stdio: 'pipe' })
    renameSync(own, path)
    return { path }
  } catch (error) {
    const { code, stderr } = error as { code?: string; stderr?: Buffer }
    if (code === 'ENOENT') return { missing: 'no comparison with Go: there is no "go" here' }
    return { missing: `no comparison with Go: its build failed: ${String(stderr).trim().split('\n').at(-1)}` }
  }
}

export interface GoQuestion {
  readonly leaf: Uint8Array
  readonly roots: readonly Uint8Array[]
  readonly intermediates: readonly Uint8Array[]
  readonly at: Date
  readonly purpose: 'server' | 'client' | 'any'
  readonly name?: string | undefined
}

export interface GoVerdict {
  readonly ok: boolean
  readonly kind?: string
  readonly error?: string
  /** SHA-256 fingerprints, leaf first. */
  readonly chains?: readonly (readonly string[])[]
}

/** One process of the peer that answers a sequence of queries. */
export class GoVerifier {
  private readonly process: ChildProcessWithoutNullStreams
  private readonly waiting: ((line: string) => void)[] = []

  constructor(path: string) {
    this.process = spawn(path, ['verify'])
    createInterface({ input: this.process.stdout }).on('line', (line) => this.waiting.shift()?.(line))
  }

  async ask(question: GoQuestion): Promise<GoVerdict> {
    const base64 = (der: Uint8Array): string => Buffer.from(der).toString('base64')
    const line = JSON.stringify({
      leaf: base64(question.leaf),
      roots: question.roots.map(base64),
      intermediates: question.intermediates.map(base64),
      at: question.at.toISOString(),
      purpose: question.purpose,
      name: question.name ?? '',
    })
    const answer = new Promise<string>((resolve) => this.waiting.push(resolve))
    this.process.stdin.write(`${line}\n`)
    return JSON.parse(await answer) as GoVerdict
  }

  close(): void {
    this.process.stdin.end()
  }
}
