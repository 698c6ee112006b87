import { expect, test } from 'vitest'
import type { AuditEvent } from '../../audit/event.ts'
import type { NodeAccess } from '../../pki/node-access.ts'
import { logsOnNode } from './node-logs.ts'

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
