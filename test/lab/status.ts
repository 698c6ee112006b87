import { kubectl } from './kubectl.ts'
import { isBalancing } from './load-balancer.ts'
import { isUp } from './node.ts'
import { savedNames } from './save.ts'
import { machineIdentity, network, specName } from './spec.ts'
import { paths, readRecord } from './state.ts'

/** Returns the status as text: the cluster, its nodes, how to reach it, and the saves. */
export async function status(): Promise<string> {
  const saves = `saved: ${savedNames().join(' ') || 'nothing'}\n`
  const record = readRecord()
  if (record === undefined) return `no cluster\n${saves}`
  const lines = [
    `${specName(record.spec)}, ${record.phase === 'ready' ? 'made' : 'half made'}; state in ${paths.nodes}`,
    `load balancer  ${network.loadBalancer}:6443  ${isBalancing() ? 'runs' : 'does not run'}`,
    ...record.nodes.map((name) => {
      const { address, role } = machineIdentity(name)
      return `${name.padEnd(4)} ${role.padEnd(13)}  ${address}  ${isUp(name) ? 'runs' : 'does not run'}`
    }),
    `kubeconfig     ${paths.kubeconfig}`,
    `ssh            ssh -F ${paths.sshConfig} ${record.nodes[0]}`,
  ]
  const nodes = await kubectl(['get', 'nodes', '--request-timeout=3s'], { mayFail: true, timeoutMs: 10_000 })
  return `${lines.join('\n')}\n${nodes.stdout || `no answer from the API: ${nodes.stderr.trim().split('\n').at(-1)}\n`}${saves}`
}
