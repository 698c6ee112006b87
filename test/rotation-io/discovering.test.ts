import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { NodeAccess, ProcessFacts } from '../../src/pki/node-access.ts'
import { prove, roleOf } from '../../src/rotation-io/discovering.ts'

const bare = { metadata: { name: 'a' } }
const labelled = { metadata: { name: 'a', labels: { 'node-role.kubernetes.io/control-plane': '' } } }

function nodeThat(processes: () => readonly ProcessFacts[]): NodeAccess {
  return { processes: async () => processes() } as unknown as NodeAccess
}

const running = nodeThat(() => [{ program: 'kube-apiserver' } as ProcessFacts])
const idle = nodeThat(() => [])
const away = nodeThat(() => {
  throw new KcertError('KCERT_NODE_UNREACHABLE', 'node "a"')
})

test.each([
  ['a label', labelled, idle, 'control-plane'],
  ['a label on an unreachable node', labelled, away, 'control-plane'],
  ['no label, and an API server that runs', bare, running, 'control-plane'],
  ['no label, and none', bare, idle, 'worker'],
  ['no label on an unreachable node', bare, away, 'worker'],
])('%s', async (_, object, node, role) => {
  expect(await roleOf(object, node)).toBe(role)
})

/** A node that is read, and that records every change. */
function nodeOfRoot(changes: string[]): NodeAccess {
  const change = (what: string) => async (path: string) => {
    changes.push(`${what} ${path.replace(/[0-9a-f]{12}/, 'N')}`)
    return { sha256: 'a' }
  }
  return {
    identity: async () => ({ isRoot: true }),
    clock: async () => ({ aheadMs: { atLeast: 4, atMost: 6 } }),
    freeSpace: async () => ({ availableBytes: 7 }),
    listFolder: async () => ({ found: 'folder' }),
    makeFolder: change('folder'),
    writeFile: change('write'),
    removeFile: change('remove'),
  } as unknown as NodeAccess
}

test.each([
  [
    false,
    { reachable: true, isRoot: true, clockSkewMs: 5, canRead: true, canWrite: true, freeBytes: 7 },
    [
      ...['folder /var/lib/kcert/copies', 'write /var/lib/kcert/copies/.kcert-N.probe'],
      ...['remove /var/lib/kcert/copies/.kcert-N.probe', 'folder /etc/kubernetes'],
      ...['write /etc/kubernetes/.kcert-N.probe', 'remove /etc/kubernetes/.kcert-N.probe'],
    ],
  ],
  [true, { reachable: true, isRoot: true, clockSkewMs: 5, canRead: true, freeBytes: 7 }, []],
])('read-only %s: the result, and the changes for it', async (readOnly, check, changes) => {
  const done: string[] = []
  expect(await prove(nodeOfRoot(done), readOnly)).toEqual(check)
  expect(done).toEqual(changes)
})
