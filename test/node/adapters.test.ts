import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import type { Cluster } from '../../src/cluster/cluster.ts'
import { commandTransport } from '../../src/node/command.ts'
import { localTransport } from '../../src/node/local.ts'
import { shellNode } from '../../src/node/shell-node.ts'
import { type SshConnections, sshConnections } from '../../src/node/ssh.ts'
import type { Transport } from '../../src/node/transport.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'
import { NodeJobs } from '../../src/site/node-jobs.ts'
import { systemClock } from '../../src/system/clock.ts'
import { openWith } from '../contract/stage.ts'
import { type JobsCluster, startJobsCluster } from '../fakes/jobs-cluster.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'
import { nodeContract } from './contract.ts'
import { type Sshd, startSshd, whyNoSshd } from './sshd.ts'

const folder = temporaryFolder('adapters')
const open = async (transport: Transport): Promise<NodeAccess> =>
  shellNode({ name: 'cp1', transport, clock: systemClock })

nodeContract('local', () => open(localTransport()))

// On the node, the target of sh decides which shell runs. Here, each shell is chosen explicitly.
for (const shell of ['dash', 'bash']) {
  const program = ['/bin', '/usr/bin'].map((bin) => join(bin, shell)).find((path) => existsSync(path))
  describe.skipIf(program === undefined)(`with ${shell}`, () => {
    nodeContract(`command, whose sh is ${shell}`, () =>
      open(commandTransport(['env', pathWith(shell, program!)])),
    )
  })
}

function pathWith(shell: string, program: string): string {
  const bin = join(folder, shell)
  mkdirSync(bin)
  symlinkSync(program, join(bin, 'sh'))
  return `PATH=${bin}:/usr/bin:/bin:/usr/sbin:/sbin`
}

const busybox = ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path))
describe.skipIf(busybox === undefined)('with busybox (apt-get install busybox)', () => {
  nodeContract('command, whose every tool is of busybox', () => {
    const bin = join(folder, 'busybox')
    mkdirSync(bin)
    execFileSync(busybox!, ['--install', '-s', bin])
    return open(commandTransport(['env', '-i', `PATH=${bin}`]))
  })
})

const noise = `echo Welcome; printf 'You have mail. '; exec "$@"`
nodeContract('command, that greets', () => open(commandTransport(['sh', '-c', noise, 'sh'])))

describe.skipIf(!existsSync('/usr/bin/sudo') || userInfo().uid !== 0)('with sudo, as root', () => {
  nodeContract('command, that becomes root by sudo', () => open(commandTransport([], 'sudo')))
})

describe('by Jobs', () => {
  let cluster: JobsCluster
  let connection: Cluster
  let nodeJobs: NodeJobs

  beforeAll(async () => {
    cluster = await startJobsCluster(['cp1'])
    connection = await openWith(cluster.server.writeKubeconfig(join(folder, 'jobs.conf')))
    nodeJobs = await NodeJobs.open({
      ...{ cluster: connection, image: 'registry.example.com/kcert:1', random: randomBytes, tell: () => {} },
    })
  })

  afterAll(async () => {
    await nodeJobs.close()
    connection.close()
    await cluster.server.close()
  })

  nodeContract('jobs', () => open(nodeJobs.transport('cp1')))
})

describe.skipIf(whyNoSshd !== undefined)('with sshd', () => {
  let sshd: Sshd
  let connections: SshConnections

  beforeAll(async () => {
    sshd = await startSshd(join(folder, 'sshd'))
    connections = sshConnections()
  })

  afterAll(async () => {
    await connections.close()
    await sshd.stop()
  })

  nodeContract('ssh', () => open(connections.transport({ host: 'node', configFile: sshd.configFile })))
})
