import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readPodProcesses } from '../../src/node/answers.ts'
import { processFunctions } from '../../src/node/node-script.ts'
import { readRecords } from '../../src/node/protocol.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

// The part of a node's shell script that reads pods' processes, on a /proc made of files: real pods would need a kubelet.

const folder = temporaryFolder('pod-processes')
const uid = '0f1e2d3c-0000-4000-8000-000000000001'
const container = 'ab'.repeat(32)
const systemd = `0::/kubelet.slice/kubepods-pod${uid.replaceAll('-', '_')}.slice/cri-containerd-${container}.scope\n`
const cgroupfs = `12:cpu:/kubepods/besteffort/pod${uid}/${container}\n11:memory:/kubepods/besteffort/pod${uid}/${container}\n`
const build =
  'path\tcmd\ndep\tk8s.io/client-go\tv0.36.3\th1:a=\n=>\tk8s.io/client-go\tv0.35.1\th1:b=\ndep\tz\tv1.0.0\n'
const elf = Buffer.concat([
  Buffer.from([0x7f, 0x45, 0, 0xff, 0x0a, 0xfe]),
  Buffer.from(`\0\n${build}\0`),
  Buffer.alloc(64, 0xfd),
])

/** Writes a process that started 900 s after boot; the uptime is 1,000 s. */
function write(
  root: string,
  pid: number,
  files: Readonly<Record<string, string | Buffer | undefined>>,
): void {
  const all = {
    stat: `${pid} (a b) c) S ${Array.from({ length: 18 }, () => 0).join(' ')} 90000 0\n`,
    status: `Name:\tx\nNSpid:\t${pid}\t1\n`,
    cgroup: systemd,
    environ: 'PASSWORD=secret\0',
    cmdline: 'x\0--token\0secret\0',
    exe: elf,
    ...files,
  }
  for (const [name, content] of Object.entries(all)) {
    if (content === undefined) continue
    const path = join(root, `${pid}`, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
  }
}

let count = 0

/** Returns the parsed result for processes with these files, and the complete output. */
function read(shell: string, ...processes: Readonly<Record<string, string | Buffer | undefined>>[]) {
  const root = join(folder, `${++count}`)
  mkdirSync(root)
  writeFileSync(join(root, 'uptime'), '1000.00 1.00\n')
  for (const [index, files] of processes.entries()) write(root, 100 + index, files)
  const script = `${processFunctions}\nkc_pods '${root}' '${uid}/${uid.replaceAll('-', '_')}'\n`
  const printed = execFileSync(shell, ['-c', script], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return {
    printed,
    found: readPodProcesses({ records: readRecords(printed.split('\n')), status: 0 } as never),
  }
}

const shells = ['/bin/dash', '/bin/bash'].filter((path) => existsSync(path))

describe.each(shells)('%s', (shell) => {
  test.for([
    ['systemd', systemd],
    ['cgroupfs', cgroupfs],
  ])("finds a pod's process by its control group of %s", ([, cgroup]) => {
    const { found } = read(shell, { cgroup: cgroup! }, { cgroup: '0::/system.slice/sshd.service\n' })
    expect(found).toEqual([
      {
        podUid: uid,
        container,
        isFirst: true,
        ageMs: 100_000,
        build: ['dep\tk8s.io/client-go\tv0.36.3\th1:a=', '=>\tk8s.io/client-go\tv0.35.1\th1:b='],
        settings: [],
      },
    ])
  })

  test('returns no build info for a program without it, and does not search an unreadable program', () => {
    expect(read(shell, { exe: 'no build info' }).found[0]!.build).toEqual([])
    const { found } = read(shell, { exe: undefined }, {})
    expect(found.map((one) => one.build?.length)).toEqual([undefined, 2])
  })

  test('reads feature gates from environment, flags and configuration, and nothing else', () => {
    const { found, printed } = read(shell, {
      environ: 'PASSWORD=secret\0KUBE_FEATURE_ClientsAllowCARotation=false\0',
      cmdline:
        'x\0--password=secret\0--feature-gates\0A=true\0--feature-gates=B=false\0--config=/etc/x.yaml\0',
      'root/etc/x.yaml': 'password: secret\nfeatureGates:\n  ClientsAllowCARotation: false\n',
    })
    expect(found[0]!.settings).toEqual([
      'KUBE_FEATURE_ClientsAllowCARotation=false',
      '--feature-gates=A=true',
      '--feature-gates=B=false',
      '  ClientsAllowCARotation: false',
    ])
    expect(Buffer.from(printed.replaceAll(/\s/g, ''), 'base64').includes('secret')).toBe(false)
    expect(printed).not.toContain('secret')
  })

  test('marks settings that are unreadable or truncated as unread', () => {
    expect(read(shell, { cmdline: 'x\0--config\0/etc/gone.yaml\0' }).found[0]).not.toHaveProperty('settings')
    const long = `--feature-gates=${'A'.repeat(5_000)}=true`
    expect(read(shell, { cmdline: `x\0${long}\0` }).found[0]).not.toHaveProperty('settings')
  })

  test('does not count a process that a container started later as its first', () => {
    expect(read(shell, { status: 'NSpid:\t100\t21\n' }).found[0]!.isFirst).toBe(false)
    expect(read(shell, { status: 'NSpid:\t1\n' }).found[0]!.isFirst).toBe(false)
  })

  test('marks modules beyond the limit as unread', () => {
    const many = Array.from({ length: 60 }, () => 'dep\tk8s.io/client-go\tv0.36.3\th1:a=\n').join('')
    expect(read(shell, { exe: `\0\n${many}` }).found[0]).not.toHaveProperty('build')
  })
})
