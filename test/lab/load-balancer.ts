import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endCgroup, enterCgroup, removeCgroup } from './cgroups.ts'
import { endProcess, isRunning, type ProcessIdentity, run, startDetached } from './command.ts'
import { makeDeadEnd, makeNamespace, namespaceOf, removeNamespace } from './network.ts'
import { type Machine, network } from './spec.ts'
import { paths } from './state.ts'

const name = 'lb'
const configFile = join(paths.loadBalancer, 'haproxy.cfg')
const processFile = join(paths.loadBalancer, 'process.json')

/** Starts HAProxy in front of the control planes: TCP, with /readyz checks twice a second. */
export async function startLoadBalancer(nodes: readonly Machine[]): Promise<void> {
  mkdirSync(paths.loadBalancer, { recursive: true })
  await makeNamespace(name, network.loadBalancer)
  await makeDeadEnd(name, nodes)
  writeConfig(nodes)
  await launch()
}

/** Switches HAProxy to another set of control planes. Its open connections are cut. */
export async function changeBackends(nodes: readonly Machine[]): Promise<void> {
  writeConfig(nodes)
  await makeDeadEnd(name, nodes)
  await endBalancer()
  await launch()
}

export async function stopLoadBalancer(): Promise<void> {
  await endBalancer()
  endCgroup(name)
  await removeNamespace(name)
  await removeCgroup(name)
  rmSync(processFile, { force: true })
}

export function isBalancing(): boolean {
  const process = readProcess()
  return process !== undefined && isRunning(process)
}

async function launch(): Promise<void> {
  await run(['haproxy', '-c', '-f', configFile])
  const command = [
    ...enterCgroup(name),
    'nsenter',
    `--net=/run/netns/${namespaceOf(name)}`,
    'haproxy',
    '-f',
    configFile,
    '-db',
  ]
  writeFileSync(
    processFile,
    JSON.stringify(await startDetached(command, join(paths.loadBalancer, 'haproxy.log'))),
  )
}

async function endBalancer(): Promise<void> {
  const process = readProcess()
  if (process !== undefined) await endProcess(process)
}

function readProcess(): ProcessIdentity | undefined {
  return existsSync(processFile)
    ? (JSON.parse(readFileSync(processFile, 'utf8')) as ProcessIdentity)
    : undefined
}

function writeConfig(nodes: readonly Machine[]): void {
  const servers = nodes
    .filter(({ role }) => role === 'control-plane')
    .map((node) => `  server ${node.name} ${node.address}:6443`)
  const lines = [
    ...[
      'global',
      '  maxconn 4096',
      'defaults',
      '  mode tcp',
      '  timeout connect 2s',
      // A server that refuses connections is removed at once. A slow response on a busy machine does not mean that it is down.
      '  timeout check 4s',
      '  timeout client 1h',
      '  timeout server 1h',
    ],
    ...[
      '  option redispatch',
      '  retries 3',
      'frontend api',
      `  bind ${network.loadBalancer}:6443`,
      '  default_backend control-planes',
    ],
    ...[
      'backend control-planes',
      '  option httpchk GET /readyz',
      '  http-check expect status 200',
      '  balance roundrobin',
    ],
    ...['  default-server check check-ssl verify none inter 500ms fall 1 rise 1', ...servers, ''],
  ]
  writeFileSync(configFile, lines.join('\n'))
}
