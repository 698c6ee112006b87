import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { run } from './command.ts'
import { LabError } from './lab-error.ts'
import type { Steps } from './steps.ts'

/** A Debian package that the lab needs, and one of its files. */
const packages: readonly { readonly name: string; readonly file: string }[] = [
  { name: 'containerd', file: '/usr/bin/containerd' },
  { name: 'runc', file: '/usr/sbin/runc' },
  { name: 'containernetworking-plugins', file: '/usr/lib/cni/ptp' },
  { name: 'iproute2', file: '/usr/sbin/ip' },
  { name: 'iptables', file: '/usr/sbin/xtables-nft-multi' },
  { name: 'conntrack', file: '/usr/sbin/conntrack' },
  { name: 'haproxy', file: '/usr/sbin/haproxy' },
  { name: 'openssh-server', file: '/usr/sbin/sshd' },
  { name: 'openssh-client', file: '/usr/bin/ssh' },
  { name: 'openssl', file: '/usr/bin/openssl' },
  // the in-pod client in Python: Debian's interpreter with its ssl module, of any minor version
  { name: 'python3', file: '/usr/bin/python3' },
  { name: 'libpython3-stdlib', file: '/usr/bin/python3' },
]

const policyFile = '/usr/sbin/policy-rc.d'
const policyMark = '# kcert lab'

/** Returns whether suites that need the lab run here: in CI, or with KCERT_LAB=1. */
export function isOptedIn(): boolean {
  return process.env.KCERT_LAB === '1' || (process.env.CI ?? '') !== ''
}

/** Returns the line for a skipped suite; undefined when it runs. */
export function whyNotHere(): string | undefined {
  if (isOptedIn()) return undefined
  return 'cluster suites left out: KCERT_LAB=1 npm test runs them (as root on Debian; it installs packages)'
}

/** Returns the requirements that the machine lacks and the lab cannot install; empty when all are met. */
export async function lacks(): Promise<string[]> {
  const found: string[] = []
  if (process.platform !== 'linux') return [`Linux (this is ${process.platform})`]
  if (process.getuid?.() !== 0) found.push('root (sudo npm run lab -- …)')
  if (!existsSync('/sys/fs/cgroup')) found.push('cgroups at /sys/fs/cgroup')
  if (!readFileSync('/proc/filesystems', 'utf8').includes('overlay')) found.push('overlayfs in the kernel')
  const go = await run(['go', 'version'], { mayFail: true }).catch(() => undefined)
  const minor = /go1\.(\d+)/.exec(go?.stdout ?? '')?.[1]
  if (Number(minor ?? 0) < 26)
    found.push(`Go 1.26 or newer in PATH (${minor === undefined ? 'there is none' : `it is 1.${minor}`})`)
  if (missingPackages().length > 0 && !existsSync('/usr/bin/apt-get')) {
    found.push(`apt-get, to install ${missingPackages().join(' ')}`)
  }
  return found
}

/** Returns the Debian packages that are not installed yet. */
export function missingPackages(): string[] {
  return packages.filter(({ file }) => !canRead(file)).map(({ name }) => name)
}

/** Prepares the machine: reports missing requirements before anything starts, and installs packages where that is permitted. */
export async function prepareMachine(steps: Steps): Promise<void> {
  const lacking = await lacks()
  if (lacking.length > 0) {
    throw new LabError(`this machine cannot run the lab: it lacks ${lacking.join('; ')}`, {
      next: 'test/lab/README.md, section "What it needs"',
    })
  }
  const packagesToInstall = missingPackages()
  if (packagesToInstall.length === 0) return
  if (!isOptedIn()) {
    throw new LabError(`these Debian packages are missing: ${packagesToInstall.join(' ')}`, {
      why: 'the lab installs packages only where CI or KCERT_LAB=1 is set',
      next: `KCERT_LAB=1 npm run lab -- up, or: apt-get install ${packagesToInstall.join(' ')}`,
    })
  }
  await steps.step(`install ${packagesToInstall.join(' ')}`, () => install(packagesToInstall))
}

/** Installs without starting a service on the host. A policy file prevents that, and is removed unless it existed before. */
async function install(names: readonly string[]): Promise<void> {
  const ours = !existsSync(policyFile) || readFileSync(policyFile, 'utf8').includes(policyMark)
  if (ours)
    writeFileSync(
      policyFile,
      `#!/bin/sh\n${policyMark}: services of installed packages do not start\nexit 101\n`,
      { mode: 0o755 },
    )
  const env = {
    PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin',
    DEBIAN_FRONTEND: 'noninteractive',
  }
  try {
    await run(['apt-get', 'update', '-qq'], { env })
    await run(['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...names], { env })
  } finally {
    if (ours) rmSync(policyFile, { force: true })
  }
}

function canRead(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return false
  }
}
