import { expect, test } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import { restartKubelet, runRestartCommand } from './node-restarts.ts'
import type { Site } from './site.ts'

const lost = new KcertError('KCERT_NODE_UNREACHABLE', 'lost the connection to node "w1"')
const failed = new KcertError('KCERT_NODE_COMMAND_FAILED', 'systemctl restart kubelet.service failed')

/** Restarts a kubelet with these processes before and after, on a node whose request to restart ends with this error. */
function restarted(
  error: KcertError,
  processes: readonly (readonly [pid: number, ticks: number] | undefined)[],
) {
  let count = 0
  const node: Partial<NodeAccess> = {
    name: 'w1',
    processes: async () => {
      const [pid, startTicks] = processes[count++] ?? []
      return pid === undefined ? [] : [{ pid, startTicks } as ProcessFacts]
    },
    restartUnit: async () => Promise.reject(error),
  }
  const inventory = { apiVersion: 'kcert/v1', kind: 'Inventory', nodes: [] }
  return restartKubelet({ inventory, node: () => node } as unknown as Site, 'w1')
}

test.each([
  ['another process', [10, 1], [11, 2]],
  ['another process with the same ID', [10, 1], [10, 2]],
  ['the first process', undefined, [10, 1]],
] as const)('a restart that ends its own connection succeeds with %s', async (_, before, after) => {
  await expect(restarted(lost, [before, after])).resolves.toBeUndefined()
})

test.each([
  ['the same process', [10, 1], [10, 1]],
  ['no process', [10, 1], undefined],
] as const)('a restart that ends its own connection fails with %s', async (_, before, after) => {
  await expect(restarted(lost, [before, after])).rejects.toBe(lost)
})

test('a restart that systemd rejects fails, although another process runs', async () => {
  await expect(
    restarted(failed, [
      [10, 1],
      [11, 2],
    ]),
  ).rejects.toBe(failed)
})

const command = ['rc-service', 'kubelet', 'restart']

function nodeWith(status: number, stderr: string): NodeAccess {
  return { name: 'w1', run: async () => ({ status, stdout: Buffer.of(), stderr }) } as unknown as NodeAccess
}

test.each([
  [1, 'service "kubelet" does not exist', 'service "kubelet" does not exist; correct restart'],
  [127, '', 'exit status 127; correct restart'],
])('refuses a restart command that ends with status %i', async (status, stderr, why) => {
  await expect(runRestartCommand(nodeWith(status, stderr), command)).rejects.toMatchObject({
    code: 'KCERT_NODE_COMMAND_FAILED',
    message: 'rc-service kubelet restart failed on node "w1"',
    why: expect.stringContaining(why),
  })
})

test('accepts a restart command that ends with status 0, whatever it printed', async () => {
  await expect(runRestartCommand(nodeWith(0, 'kubelet: stopped'), command)).resolves.toBeUndefined()
})
