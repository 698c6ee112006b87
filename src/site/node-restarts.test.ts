import { expect, test } from 'vitest'
import type { NodeAccess } from '../pki/node-access.ts'
import { runRestartCommand } from './node-restarts.ts'

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
