import { readInventory } from '../../src/rotation/inventory.ts'
import { inventoryObjects } from '../../src/rotation-io/recovering.ts'
import { Certificates } from '../../src/site/certificates.ts'
import { FileReading } from '../../src/site/file-reading.ts'
import type { Site } from '../../src/site/site.ts'
import { type MemoryNode, now } from './memory-node.ts'

/**
 * Returns a function that opens a site of nodes in memory, each time as a new process. cp1… are control planes, e1… are machines of external etcd. No connection to
 * a server is possible.
 */
export async function sitesOf(nodes: ReadonlyMap<string, MemoryNode>): Promise<() => Site> {
  const lines = [...nodes.keys()].map((name, index) => {
    const role = name.startsWith('cp') ? 'control-plane' : 'worker'
    const said = name.startsWith('e') ? '' : ` role: ${role},`
    return `- {name: ${name},${said} addresses: [192.0.2.${index + 1}], layout: kubeadm}\n`
  })
  const machines = lines.filter((line) => !line.includes(' role: '))
  const etcd = machines.length === 0 ? '' : `etcd:\n${machines.join('')}`
  const inventory = await readInventory(
    `apiVersion: kcert/v1\nkind: Inventory\naccess: {by: command, argv: ['false']}\nnodes:\n${lines.filter((line) => !machines.includes(line)).join('')}${etcd}`,
  )
  return () => {
    const certificates = new Certificates()
    return {
      inventory,
      objects: inventoryObjects(inventory),
      clock: () => now,
      certificates,
      reading: new FileReading(certificates),
      node: (name) => nodes.get(name)?.access,
      dial: () => {
        throw new Error('nobody is dialled')
      },
      apiServerOn: async () => {
        throw new Error('nobody is dialled')
      },
      listAt: () => {
        throw new Error('nobody is dialled')
      },
      readAt: async () => {
        throw new Error('nobody is dialled')
      },
      clockAheadMs: async () => 0,
      startedAtMs: async () => 0,
      close: async () => {},
    }
  }
}
