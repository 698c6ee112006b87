import { expect, test } from 'vitest'
import type { FileContent } from '../pki/node-access.ts'
import { watchEtcdClients } from './watching-etcd-clients.ts'

const subject = { kind: 'etcd-clients', at: 'cp1/etcd', forMs: 4_000, waived: [] } as const

/** Returns a line of /proc/net/tcp for an established connection from this address to port 2379. */
function connection(address: string): string {
  const hex = Buffer.from(address.split('.').map(Number)).reverse().toString('hex').toUpperCase()
  return `   0: 0100000A:094B ${hex}:C350 01 00000000:00000000 00:00000000 00000000 0 0 1\n`
}

function watching(tables: readonly (string | undefined)[], isRunning = true) {
  let time = 0
  const asked: string[] = []
  const argv = ['etcd', '--listen-client-urls=https://127.0.0.1:2379,https://10.0.0.1:2379']
  const node = {
    readFiles: async (paths: readonly string[]): Promise<FileContent[]> => {
      asked.push(...paths)
      const text = tables[Math.min(Math.floor(time / 2_000), tables.length - 1)]
      const file = { path: paths[0]!, found: 'file', content: Buffer.from(text ?? ''), sha256: '' }
      return [(text === undefined ? { path: paths[0]!, found: 'absent' } : file) as never]
    },
  }
  const object = (name: string, address: string) => ({
    metadata: { name },
    status: { addresses: [{ type: 'InternalIP', address }] },
  })
  const objects = {
    async *list() {
      yield object('cp1', '10.0.0.1')
      yield object('cp2', '10.0.0.2')
      yield object('w1', '10.0.0.9')
    },
  }
  const options = {
    site: {
      clock: () => new Date(time),
      objects,
      inventory: { etcd: [{ name: 'e1', addresses: ['10.0.0.21'] }] },
    },
    planes: {
      node: () => node,
      names: async () => ['cp1', 'cp2'],
      runningEtcd: async () => (isRunning ? { program: 'etcd', pid: 7, startTicks: 1, argv } : undefined),
    },
    sleep: async (ms: number) => {
      time += ms
    },
  }
  return { options: options as never, asked }
}

test('expects connections from loopback, control-plane nodes and etcd machines', async () => {
  const known = ['127.0.0.1', '10.0.0.2', '10.0.0.21']
  const { options, asked } = watching([known.map(connection).join('')])
  expect(await watchEtcdClients(subject, options)).toEqual({
    ok: true,
    detail: 'cp1/etcd has 3 clients, 0 of them accepted',
  })
  // Three samples of the namespace of the member's process.
  expect(asked).toEqual(Array.from({ length: 3 }, () => ['/proc/7/net/tcp', '/proc/7/net/tcp6']).flat())
})

test('names a client that connects for a moment only, and how to accept it', async () => {
  const { options } = watching(['', connection('10.0.0.9') + connection('10.244.1.5'), ''])
  const { ok, detail } = await watchEtcdClients(subject, options)
  expect(ok).toBe(false)
  expect(detail).toContain('10.0.0.9, 10.244.1.5')
  expect(detail).toContain('--waive 10.0.0.9 --waive 10.244.1.5')
})

test('allows clients that the operator accepted', async () => {
  const { options } = watching([connection('10.0.0.9')])
  expect(await watchEtcdClients({ ...subject, waived: ['10.0.0.9'] }, options)).toEqual({
    ok: true,
    detail: 'cp1/etcd has 1 clients, 1 of them accepted',
  })
})

test.each([
  ['the table cannot be read', watching([undefined]), 'cp1/etcd: /proc/7/net/tcp cannot be read'],
  ['the member does not run', watching([''], false), 'cp1/etcd is not running'],
])('fails when %s: no answer is not an empty one', async (_what, { options }, detail) => {
  expect(await watchEtcdClients(subject, options)).toEqual({ ok: false, detail })
})
