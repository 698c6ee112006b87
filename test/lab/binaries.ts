import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { run } from './command.ts'
import { versions } from './spec.ts'
import { folders, withLock } from './state.ts'
import type { Steps } from './steps.ts'

const kubernetes = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kubeadm',
  'kubectl',
  'kube-proxy',
]
const own = ['coredns', 'metrics-server', 'systemctl', 'pause', 'client', 'webhook', 'prober']

/** Built binaries: a folder whose name is the key of all that went into them. */
export interface Binaries {
  readonly key: string
  readonly folder: string
}

/** Kubernetes, etcd and the lab's own programs, built with the Go client or taken from the cache. */
export async function buildBinaries(steps: Steps): Promise<Binaries> {
  const key = await binariesKey()
  const folder = join(folders.cache, key, 'bin')
  if (existsSync(folder)) return { key, folder }
  return withLock(join(folders.cache, 'build.lock'), `the cache ${folders.cache}`, 30 * 60_000, async () => {
    if (existsSync(folder)) return { key, folder }
    const draft = `${folder}.new`
    rmSync(draft, { recursive: true, force: true })
    mkdirSync(draft, { recursive: true })
    await steps.step(
      `build Kubernetes ${versions.kubernetes} and the lab's programs (about 5 min on 2 cores, once)`,
      () =>
        goBuild('go', draft, [
          ...kubernetes.map((name) => `k8s.io/kubernetes/cmd/${name}`),
          ...own.map((name) => `./${name}`),
        ]),
    )
    await steps.step(`build etcd ${versions.etcd}`, () =>
      goBuild('etcd', join(draft, 'etcd'), ['go.etcd.io/etcd/server/v3']),
    )
    takeAssets(draft)
    renameSync(draft, folder)
    forgetOlder(key)
    return { key, folder }
  })
}

/** The version is stamped in, as a release does it: kubeadm refuses to work without. */
function ldflags(): string {
  const [major, minor] = versions.kubernetes.slice(1).split('.')
  const stamp = {
    gitVersion: versions.kubernetes,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'clean',
    gitCommit: 'lab',
  }
  const stamps = Object.entries(stamp).map(
    ([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`,
  )
  return ['-s -w', ...stamps].join(' ')
}

async function goBuild(module: string, output: string, packages: readonly string[]): Promise<void> {
  const flags = ['-p', '2', '-mod=readonly', '-trimpath', '-ldflags', ldflags(), '-o', output]
  await run(['go', 'build', ...flags, ...packages], {
    cwd: join(folders.source, module),
    env: { ...(process.env as Record<string, string>), CGO_ENABLED: '0' },
    next: 'the Go module proxy must be reachable; run again, what was built is kept',
  })
}

/** KUBEBUILDER_ASSETS, where it is set, brings kube-apiserver and etcd of its own. */
function takeAssets(folder: string): void {
  const assets = process.env.KUBEBUILDER_ASSETS
  if (assets === undefined) return
  for (const name of ['kube-apiserver', 'etcd']) {
    if (existsSync(join(assets, name))) copyFileSync(join(assets, name), join(folder, name))
  }
}

/** A digest of everything that decides what the binaries and images are. */
async function binariesKey(): Promise<string> {
  const hash = createHash('sha256')
  hash.update((await run(['go', 'env', 'GOVERSION', 'GOARCH'])).stdout)
  hash.update(JSON.stringify(versions))
  for (const file of [...sources(join(folders.source, 'go')), ...sources(join(folders.source, 'etcd'))]) {
    hash.update(`${file.slice(folders.source.length)}\0`).update(readFileSync(file))
  }
  const assets = process.env.KUBEBUILDER_ASSETS
  if (assets !== undefined && existsSync(join(assets, 'kube-apiserver'))) {
    hash.update(`${assets} ${statSync(join(assets, 'kube-apiserver')).mtimeMs}`)
  }
  return hash.digest('hex').slice(0, 16)
}

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => /\.(go|mod|sum)$/.test(file) && !file.endsWith('_test.go'))
    .sort()
}

/** Keeps the newest other key beside the one in use: switching between two branches does not build anew. */
function forgetOlder(key: string): void {
  const others = readdirSync(folders.cache)
    .filter((name) => /^[0-9a-f]{16}$/.test(name) && name !== key)
    .map((name) => join(folders.cache, name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  for (const folder of others.slice(1)) rmSync(folder, { recursive: true, force: true })
}

/** The folder of a key, next to its binaries. */
export function keyFolder(binaries: Binaries): string {
  return dirname(binaries.folder)
}
