import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

// `npm run bench:peers`: builds the programs with which the benchmark compares kcert, from their Go modules.

/** Folder of the peers. It is not on PATH, so that a benchmark never measures another version by accident. */
export const peerFolder = resolve('.bench/bin')

const kubernetesVersion = 'v1.36.3'
const stamp = `-X k8s.io/component-base/version.gitVersion=${kubernetesVersion} -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36`

interface Peer {
  readonly name: string
  /** The folder whose go.mod pins the version; undefined for `go install` of a version. */
  readonly folder?: string
  readonly args: readonly string[]
}

const peers: readonly Peer[] = [
  { name: 'goloop', folder: 'test/bench/go-loop', args: ['build', '-o', `${peerFolder}/goloop`, '.'] },
  ...['kubeadm', 'kubectl'].map((name) => ({
    name,
    folder: 'test/lab/go',
    args: [
      'build',
      '-trimpath',
      '-ldflags',
      `-s -w ${stamp}`,
      '-o',
      `${peerFolder}/${name}`,
      `k8s.io/kubernetes/cmd/${name}`,
    ],
  })),
  { name: 'cfssl', args: ['install', 'github.com/cloudflare/cfssl/cmd/cfssl@v1.6.5'] },
  { name: 'step', args: ['install', 'github.com/smallstep/cli/cmd/step@v0.21.0'] },
]

/** Returns the path of a peer; undefined when it is not built. */
export function peer(name: string): string | undefined {
  const path = join(peerFolder, name)
  return existsSync(path) ? path : undefined
}

function buildPeer({ name, folder, args }: Peer): boolean {
  const { status, error } = spawnSync('go', args, {
    cwd: folder ?? '.',
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, GOBIN: peerFolder, GOFLAGS: '-p=2' },
  })
  const ok = status === 0 && !error
  process.stdout.write(`${ok ? 'built' : 'NOT BUILT'} ${name}${error ? `: ${error.message}` : ''}\n`)
  return ok
}

if (import.meta.main) {
  mkdirSync(peerFolder, { recursive: true })
  const missing = peers.filter(({ name }) => !peer(name))
  process.exitCode = missing.map(buildPeer).every(Boolean) ? 0 : 1
}
