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
import { type Minor, releases } from './spec.ts'
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
const own = ['metrics-server', 'systemctl', 'pause', 'client', 'plain-client', 'webhook', 'prober']
/** The same client with a client-go that reads its CA file once. The others have 0.36, which reloads it. */
const oldClient = 'client-0.33'

/** Built binaries: a folder whose name is a digest of all their inputs. */
export interface Binaries {
  readonly minor: Minor
  readonly key: string
  readonly folder: string
}

/** Returns Kubernetes of a minor version, its etcd and CoreDNS, and the lab's own programs, built with Go or from the cache. */
export async function buildBinaries(minor: Minor, steps: Steps): Promise<Binaries> {
  const key = `${minor}-${await binariesDigest(minor)}`
  const folder = join(folders.cache, key, 'bin')
  if (existsSync(folder)) return { minor, key, folder }
  return withLock(join(folders.cache, 'build.lock'), `the cache ${folders.cache}`, 30 * 60_000, async () => {
    if (existsSync(folder)) return { minor, key, folder }
    const draft = `${folder}.new`
    rmSync(draft, { recursive: true, force: true })
    mkdirSync(draft, { recursive: true })
    const release = releases[minor]
    await steps.step(`build Kubernetes ${release.kubernetes} (about 5 min on 2 cores, once)`, () =>
      goBuild(
        modules(minor).kubernetes,
        draft,
        kubernetes.map((name) => `k8s.io/kubernetes/cmd/${name}`),
        stamps(release.kubernetes),
      ),
    )
    await steps.step(
      `build etcd ${release.etcd}, CoreDNS ${release.coredns} and the lab's programs`,
      async () => {
        await goBuild(modules(minor).etcd, join(draft, 'etcd'), ['go.etcd.io/etcd/server/v3'])
        await goBuild(modules(minor).coredns, join(draft, 'coredns'), ['.'])
        await goBuild(
          { folder: 'go' },
          draft,
          own.map((name) => `./${name}`),
        )
        await goBuild({ folder: 'go', file: oldClient }, join(draft, oldClient), ['./client'])
      },
    )
    takeAssets(draft)
    renameSync(draft, folder)
    forgetOlder(minor, key)
    return { minor, key, folder }
  })
}

/** A Go module of the lab. `file` is the name of its go.mod where a folder has one for each release. */
interface GoModule {
  readonly folder: string
  readonly file?: string
}

/** Programs that are built from separate modules: each minor version needs its own etcd, CoreDNS and client-go. */
function modules(minor: Minor): Record<'kubernetes' | 'etcd' | 'coredns', GoModule> {
  const { etcd, coredns } = releases[minor]
  return {
    kubernetes: { folder: 'kubernetes', file: minor },
    etcd: { folder: 'etcd', file: etcd.slice(0, etcd.indexOf('-')) },
    coredns: { folder: 'coredns', file: coredns.slice(1) },
  }
}

/** The version is set at link time, as in a release. kubeadm refuses to work without it. */
function stamps(version: string): string[] {
  const [major, minor] = version.slice(1).split('.')
  const stamp = {
    gitVersion: version,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'clean',
    gitCommit: 'lab',
  }
  return Object.entries(stamp).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
}

async function goBuild(
  { folder, file }: GoModule,
  output: string,
  packages: readonly string[],
  linked: readonly string[] = [],
): Promise<void> {
  const module = file === undefined ? [] : [`-modfile=${file}.mod`]
  const flags = [
    '-p',
    '2',
    '-mod=readonly',
    ...module,
    '-trimpath',
    '-ldflags',
    ['-s -w', ...linked].join(' '),
  ]
  await run(['go', 'build', ...flags, '-o', output, ...packages], {
    cwd: join(folders.source, folder),
    env: { ...(process.env as Record<string, string>), CGO_ENABLED: '0' },
    next: 'the Go module proxy must be reachable; run again, what was built is kept',
  })
}

/** KUBEBUILDER_ASSETS, if set, provides kube-apiserver and etcd. */
function takeAssets(folder: string): void {
  const assets = process.env.KUBEBUILDER_ASSETS
  if (assets === undefined) return
  for (const name of ['kube-apiserver', 'etcd']) {
    if (existsSync(join(assets, name))) copyFileSync(join(assets, name), join(folder, name))
  }
}

/** Returns a digest of all inputs of the binaries and images. */
async function binariesDigest(minor: Minor): Promise<string> {
  const hash = createHash('sha256')
  hash.update((await run(['go', 'env', 'GOVERSION', 'GOARCH'])).stdout)
  hash.update(JSON.stringify(releases[minor]))
  const released = Object.values(modules(minor)).flatMap(({ folder, file }) =>
    ['mod', 'sum'].map((kind) => join(folders.source, folder, `${file}.${kind}`)),
  )
  const main = join(folders.source, 'coredns/main.go')
  for (const file of [...sources(join(folders.source, 'go')), main, ...released]) {
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

/**
 * Keeps the newest other build of a minor version next to the current one, so that switching between two branches needs no
 * rebuild.
 */
function forgetOlder(minor: Minor, key: string): void {
  const others = readdirSync(folders.cache)
    .filter((name) => name.startsWith(`${minor}-`) && name !== key)
    .map((name) => join(folders.cache, name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  for (const folder of others.slice(1)) rmSync(folder, { recursive: true, force: true })
}

/** Returns the folder of a build, next to its binaries. */
export function keyFolder(binaries: Binaries): string {
  return dirname(binaries.folder)
}
