import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeconfigCase } from '../differential/kubeconfig-cases.ts'

// How client-go interprets kubeconfigs: test/peers/client-go. Its first build takes minutes, so its results are recorded, and the
// lab suite compares the record with client-go itself.

/**
 * The interpretation of a kubeconfig, in a form that both sides can produce: "refused", or the fields that select the server and
 * user.
 */
export type KubeconfigAnswer =
  | 'refused'
  | {
      readonly current: string
      readonly clusters: readonly (readonly [
        name: string,
        server: string,
        serverName: string,
        insecure: boolean,
        caData: string,
        caFile: string,
      ])[]
      readonly users: readonly (readonly [
        name: string,
        certificateData: string,
        certificateFile: string,
        uses: string,
      ])[]
      /** Whether a client can be created. */
      readonly contexts: readonly (readonly [
        name: string,
        cluster: string,
        user: string,
        isUsable: boolean,
      ])[]
    }

interface PeerAnswer {
  readonly error: string
  readonly currentContext: string
  readonly clusters: Readonly<
    Record<
      string,
      { server: string; tlsServerName: string; insecure: boolean; caData: string | null; caFile: string }
    >
  > | null
  readonly users: Readonly<
    Record<
      string,
      {
        certData: string | null
        certFile: string
        exec: boolean
        provider: boolean
        token: boolean
        basic: boolean
      }
    >
  > | null
  readonly contexts: Readonly<Record<string, { cluster: string; user: string; error: string }>> | null
}

/** Returns client-go's results, in the order of the cases. Builds the peer, which needs its modules in Go's module cache. */
export function askClientGo(cases: readonly KubeconfigCase[]): KubeconfigAnswer[] {
  const source = join(import.meta.dirname, 'client-go')
  const folder = mkdtempSync(join(tmpdir(), 'kcert-client-go-'))
  const path = join(folder, 'peer')
  execFileSync('go', ['build', '-trimpath', '-o', path, '.'], {
    cwd: source,
    env: { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' },
    stdio: 'pipe',
  })
  const empty = join(folder, 'empty')
  mkdirSync(empty)
  const input = cases
    .map(({ content }) => JSON.stringify({ content: Buffer.from(content).toString('base64'), folder: empty }))
    .join('\n')
  const output = execFileSync(path, { input, maxBuffer: 1 << 28 }).toString('utf8')
  return output
    .trimEnd()
    .split('\n')
    .map((line) => answerOf(JSON.parse(line) as PeerAnswer))
}

function answerOf({ error, currentContext, clusters, users, contexts }: PeerAnswer): KubeconfigAnswer {
  if (error !== '') return 'refused'
  return {
    current: currentContext,
    clusters: byName(clusters).map(([name, one]) => [
      name,
      one.server,
      one.tlsServerName,
      one.insecure,
      one.caData ?? '',
      one.caFile,
    ]),
    users: byName(users).map(([name, one]) => [
      name,
      one.certData ?? '',
      one.certFile,
      (['exec', 'provider', 'token', 'basic'] as const).filter((kind) => one[kind]).join(' '),
    ]),
    contexts: byName(contexts).map(([name, one]) => [name, one.cluster, one.user, one.error === '']),
  }
}

function byName<T>(record: Readonly<Record<string, T>> | null): [string, T][] {
  return Object.entries(record ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
}
