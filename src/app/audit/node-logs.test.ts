import { expect, test } from 'vitest'
import type { AuditEvent } from '../../audit/event.ts'
import type { NodeAccess } from '../../pki/node-access.ts'
import { handshakesOnNode, logsOnNode } from './node-logs.ts'

const line = (username: string): string =>
  `${JSON.stringify({
    ...{ kind: 'Event', apiVersion: 'audit.k8s.io/v1', stage: 'ResponseComplete', user: { username } },
    requestReceivedTimestamp: '2026-11-25T10:00:00.123456Z',
  })}\n`

interface Disk {
  readonly files: Record<string, string>
  /** Called before each piece is read. */
  readonly onRead?: (files: Record<string, string>) => void
  readonly flags?: readonly string[]
}

/** Returns a node with these files. It has one process: kube-apiserver, with these flags. */
function nodeWith({ files, onRead, flags }: Disk): NodeAccess {
  const patternOf = (pattern: string): RegExp =>
    new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`)
  const node: Partial<NodeAccess> = {
    name: 'cp1',
    processes: async () =>
      flags === undefined
        ? []
        : [
            {
              program: 'kube-apiserver',
              pid: 7,
              startTicks: 1,
              startedAt: new Date(0),
              argv: ['kube-apiserver', ...flags],
            },
          ],
    matchPaths: async (patterns) =>
      patterns.flatMap((pattern) =>
        Object.keys(files)
          .filter((path) => patternOf(pattern).test(path))
          .sort(),
      ),
    statFiles: async (paths) =>
      paths.map((path) => {
        const facts = { path, mode: 0o600, uid: 0, gid: 0, sizeBytes: 0, modifiedAt: new Date(0) }
        if (path in files) return { ...facts, found: 'file' as const }
        const isFolder = Object.keys(files).some((name) => name.startsWith(`${path}/`))
        return isFolder ? { ...facts, found: 'folder' as const } : { path, found: 'absent' as const }
      }),
    run: async ([program, input = '', , skip = '', count = '']) => {
      expect(program).toBe('dd')
      onRead?.(files)
      const bytes = Buffer.from(files[input.slice('if='.length)] ?? '')
      const start = Number(skip.slice('skip='.length)) << 20
      const stdout = bytes.subarray(start, start + (Number(count.slice('count='.length)) << 20))
      return { status: 0, stdout, stderr: '' }
    },
  }
  return node as NodeAccess
}

async function readOn(disk: Disk, targets: readonly string[] = []) {
  const users: string[] = []
  const logs = await logsOnNode(nodeWith(disk), targets, ({ username }: AuditEvent) => users.push(username))
  return { users, logs }
}

const flags = ['--audit-log-path=/var/log/audit/audit.log']
const root = '/proc/7/root/var/log/audit'

test('reads the log of the API server as it sees it, with the rotated files', async () => {
  const { users, logs } = await readOn({
    flags,
    files: {
      [`${root}/audit.log`]: line('a'),
      [`${root}/audit-2026-11-25T09-00-00.000.log`]: line('b'),
      [`${root}/other.log`]: line('c'),
    },
  })
  expect(users.sort()).toEqual(['a', 'b'])
  expect(logs.map(({ source }) => source)).toEqual([
    'cp1:/var/log/audit/audit.log',
    'cp1:/var/log/audit/audit-2026-11-25T09-00-00.000.log',
  ])
})

test('reads a log that is larger than one piece completely', async () => {
  const filler = `${' '.repeat(1000)}\n`.repeat(9000)
  const { users } = await readOn({ flags, files: { [`${root}/audit.log`]: line('a') + filler + line('b') } })
  expect(users).toEqual(['a', 'b'])
})

test('misses no event if the log is rotated while it is read', async () => {
  let isRotated = false
  const filler = `${' '.repeat(1000)}\n`.repeat(9000)
  const { users, logs } = await readOn({
    flags,
    files: { [`${root}/audit.log`]: line('a') + filler + line('b') },
    onRead: (files) => {
      if (isRotated) return
      isRotated = true
      files[`${root}/audit-2026-11-25T09-00-00.000.log`] = files[`${root}/audit.log`]!
      files[`${root}/audit.log`] = line('c')
    },
  })
  expect([...new Set(users)].sort()).toEqual(['a', 'b', 'c'])
  expect(logs.at(-1)!.notes.join()).toContain('rotated while it was read')
})

test('reads named files and folders', async () => {
  const files = { '/logs/a.log': line('a'), '/logs/b.log': line('b'), '/c.log': line('c') }
  expect((await readOn({ files }, ['/logs', '/c.log'])).users.sort()).toEqual(['a', 'b', 'c'])
})

test.each([
  [undefined, [], 'no kube-apiserver is running'],
  [['--secure-port=6443'], [], 'it has no --audit-log-path'],
  [['--audit-log-path=-'], [], 'to standard output'],
  [flags, [], 'no audit log at /var/log/audit/audit.log'],
  [undefined, ['/missing'], '/missing does not exist'],
])('does not conclude from a node without a readable log: %j %j', async (given, targets, problem) => {
  const { logs } = await readOn({ files: {}, ...(given && { flags: given }) }, targets)
  expect(logs).toHaveLength(1)
  expect(logs[0]!.problems.join()).toContain(problem)
})

test('does not skip a folder in a named folder, or a file that cannot be read, without saying so', async () => {
  const files = { '/logs/audit.log': line('a'), '/logs/old': '', '/logs/closed.log': '' }
  const node = nodeWith({ files })
  const found = {
    '/logs': 'folder',
    '/logs/audit.log': 'file',
    '/logs/old': 'folder',
    '/logs/closed.log': 'unreadable',
  }
  const statFiles = async (paths: readonly string[]) =>
    paths.map((path) => ({ path, found: found[path as keyof typeof found] }))
  const logs = await logsOnNode({ ...node, statFiles } as NodeAccess, ['/logs'], () => {})
  expect(logs.map(({ source, problems }) => [source, ...problems])).toEqual([
    ['cp1:/logs/audit.log'],
    ['cp1:/logs/closed.log', 'it cannot be read'],
    ['cp1:/logs/old', 'it is a folder in the folder: name it, too'],
  ])
})

// Lines of kube-apiserver 1.36 in the format of a container runtime.
const failed = (address: string, reason: string, second = 1): string =>
  `2026-11-25T10:00:0${second}.5Z stderr F I1125 10:00:01.500000       1 secure_serving.go:280] http: TLS handshake error from ${address}: ${reason}\n`

async function handshakes(log: string, { flags = ['--v=5'], status = 0 } = {}) {
  const node = {
    ...nodeWith({ files: {}, flags }),
    run: async (argv: readonly string[]) => {
      // Without --since: journalctl rejects times before 1970.
      expect(argv.at(-3)).toBe('0')
      return { status, stdout: Buffer.from(log), stderr: 'grep: permission denied' }
    },
  } as NodeAccess
  const events: AuditEvent[] = []
  const site = { clockAheadMs: async () => 500 }
  const reading = await handshakesOnNode(site, node, 0, (event) => events.push(event))
  return { reading, seen: events.map(({ atMs, credentials, sourceIp }) => [atMs, sourceIp, ...credentials]) }
}

test('--live: clients that reject a certificate, with the time on this machine', async () => {
  const reason = 'remote error: tls: unknown certificate authority'
  const { reading, seen } = await handshakes(
    failed('10.0.0.7:41234', reason) + failed('10.0.0.8:5', 'EOF') + failed('[fd00::7]:4', reason, 2),
  )
  expect(seen).toEqual([
    [Date.parse('2026-11-25T10:00:01Z'), '10.0.0.7', `HANDSHAKE=10.0.0.7 ${reason}`],
    [Date.parse('2026-11-25T10:00:02Z'), 'fd00::7', `HANDSHAKE=fd00::7 ${reason}`],
  ])
  expect(reading).toEqual({ source: 'cp1: kube-apiserver', events: 2, problems: [], notes: [] })
})

test('--live: hostile lines do not add a client, and leave no control character', async () => {
  const bad = 'remote error: tls: bad certificate'
  const { seen } = await handshakes(
    [
      failed('$(reboot):5', `${bad}\u001b[2J\u202e`),
      `2026-11-25T10:00:01Z stderr F I1125 httplog.go:134] "HTTP" userAgent="http: TLS handshake error from 10.0.0.9:5: ${bad}"\n`,
      `2026-11-25T10:00:01Z stderr F ${'x'.repeat(5_000_000)} http: TLS handshake error from 10.0.0.9:5: ${bad}\n`,
      failed('10.0.0.6:5', `${bad}${'!'.repeat(5_000_000)}`),
    ].join(''),
  )
  expect(seen.map(([, address]) => address)).toEqual(['(no address)', '10.0.0.6'])
  const text = JSON.stringify(seen)
  expect(text).toContain(`${bad}?[2J?`)
  expect(text.length).toBeLessThan(500)
})

test.each([
  [
    'at another verbosity',
    '',
    { flags: ['--v=2'] },
    /^it logs failed handshakes only with --v=5 or more, and its flag is --v=2;/,
  ],
  ['without --v', '', { flags: ['--x=1'] }, /its flag is --v=0;/],
  ['with an odd verbosity', '', { flags: ['--v=high'] }, /its flag is --v=high;/],
  ['cut at the front', failed('10.0.0.7:4', 'EOF').repeat(5000), {}, /earlier ones are missing$/],
  ['that cannot be read', '', { status: 2 }, /permission denied/],
])('--live: a log %s is a problem', async (_what, log, options, problem) => {
  expect((await handshakes(log, options)).reading.problems).toEqual([expect.stringMatching(problem)])
})
