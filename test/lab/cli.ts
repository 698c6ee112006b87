import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { down, joinNode, removeNode, up } from './cluster.ts'
import { endRunningCommands, runOnTerminal } from './command.ts'
import { buildHelm } from './helm.ts'
import { kubectlCommand } from './kubectl.ts'
import { describeError, LabError } from './lab-error.ts'
import { onNodeWithTerminal } from './node.ts'
import { restore, save } from './save.ts'
import { allReleases, type ClusterRequest, minorsByRole } from './spec.ts'
import { paths } from './state.ts'
import { status } from './status.ts'
import { stepsOn } from './steps.ts'
import { upgrade } from './upgrade.ts'

const usage = `npm run lab -- COMMAND   a kubeadm cluster on this machine; test/lab/README.md tells the rest

  up [--control-planes 1] [--workers 0] [--kubernetes 1.37 | --kubernetes cp=1.37,worker=1.34] [--addons]
     [--keys RSA-2048|ECDSA-P256] [--all-flags] [--flavour kubeadm|plain] [--etcd-machines 0]
  down                      ends the cluster and removes it; saves are kept
  status                    nodes, their addresses and states, and what is saved
  exec NODE -- COMMAND…     runs a command on a node
  kubectl ARGUMENT…         as the cluster's administrator, through the load balancer
  save NAME | restore NAME  the files of all nodes as of one moment, etcd's data included
  join NODE --worker|--control-plane     adds cp1 to cp9 or w1 to w9
  remove NODE               drains, resets and removes a node
  upgrade --to 1.37 [NODE…] kubeadm upgrade of these nodes, one after the other; without names of all that are behind
  probe [--help]            fresh TLS connections, counted and judged
  helm                      builds helm, for the test of deploy/helm, and prints its path
  endure [--times 20]       up, save, restore and down in a row, counted
`

const steps = stepsOn((line) => process.stderr.write(`${line}\n`))

/** A command's result is its exit code if it is a number. */
type Command = (args: string[]) => Promise<unknown>

const commands: Record<string, Command> = {
  async up(args) {
    const { values } = parseArgs({
      args,
      options: {
        'control-planes': { type: 'string' },
        workers: { type: 'string' },
        'etcd-machines': { type: 'string' },
        flavour: { type: 'string' },
        keys: { type: 'string' },
        'all-flags': { type: 'boolean' },
        addons: { type: 'boolean' },
        kubernetes: { type: 'string' },
      },
    })
    const request: Record<string, unknown> = {}
    if (values['control-planes'] !== undefined) request.controlPlanes = count(values['control-planes'], 1)
    if (values.workers !== undefined) request.workers = count(values.workers, 0)
    if (values['etcd-machines'] !== undefined) request.etcdMachines = count(values['etcd-machines'], 0)
    if (values.flavour !== undefined) request.flavour = oneOf(values.flavour, ['kubeadm', 'plain'])
    if (values.keys !== undefined) request.keys = oneOf(values.keys, ['RSA-2048', 'ECDSA-P256'])
    if (values['all-flags']) request.allFlags = true
    if (values.addons) request.addons = true
    if (values.kubernetes !== undefined) {
      request.kubernetes = minorsByRole(values.kubernetes)
      if (request.kubernetes === undefined)
        throw wrongUsage(`--kubernetes ${allReleases.join(', ')}, or cp=1.37,worker=1.34`)
    }
    await orDown(() => up(request as ClusterRequest, steps))
  },
  down: () => down(steps),
  async status() {
    process.stdout.write(await status())
  },
  async exec([node, ...rest]) {
    const command = rest[0] === '--' ? rest.slice(1) : rest
    if (node === undefined || command.length === 0) throw wrongUsage('exec NODE -- COMMAND…')
    return onNodeWithTerminal(node, command)
  },
  kubectl: async (args) => runOnTerminal(await kubectlCommand(args)),
  save: ([name]) => save(named(name, 'save NAME'), steps),
  restore: async ([name]) => orDown(() => restore(named(name, 'restore NAME'), steps)),
  async join([node, role]) {
    const wanted = node?.startsWith('cp') ? '--control-plane' : '--worker'
    if (node === undefined || role !== wanted)
      throw wrongUsage('join w1 --worker, or join cp2 --control-plane')
    await joinNode(node, steps)
  },
  remove: ([name]) => removeNode(named(name, 'remove NODE'), steps),
  async upgrade(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { to: { type: 'string', default: '' } },
    })
    await upgrade(oneOf(values.to, allReleases), positionals, steps)
  },
  async probe(args) {
    const { probeCommand } = await import('./prober.ts')
    return probeCommand(args, steps)
  },
  async helm() {
    process.stdout.write(`${await buildHelm(steps)}\n`)
  },
  async endure(args) {
    const { endure } = await import('./endurance.ts')
    const { values } = parseArgs({ args, options: { times: { type: 'string', default: '20' } } })
    return orDown(() => endure(count(values.times, 1, 1000), steps))
  },
}

/**
 * Runs work that creates a cluster. Ctrl-C removes a partial cluster. A separate process does that while this one waits, so that
 * this one creates nothing in the meantime.
 */
async function orDown<T>(work: () => Promise<T>): Promise<T> {
  const interrupt = (): void => {
    process.stderr.write('  interrupted: taking the cluster down\n')
    endRunningCommands()
    rmSync(paths.lock, { force: true })
    spawnSync(process.execPath, [fileURLToPath(import.meta.url), 'down'], { stdio: 'inherit' })
    process.exit(130)
  }
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  try {
    return await work()
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
}

function count(text: string, least: number, most = 9): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < least || number > most)
    throw wrongUsage(`a count from ${least} to ${most}, not ${text}`)
  return number
}

function oneOf<Choice extends string>(text: string, choices: readonly Choice[]): Choice {
  const found = choices.find((choice) => choice === text)
  if (found === undefined) throw wrongUsage(`one of ${choices.join(', ')}, not ${text}`)
  return found
}

function named(name: string | undefined, form: string): string {
  if (name === undefined || !/^[\w.-]+$/.test(name)) throw wrongUsage(form)
  return name
}

function wrongUsage(form: string): LabError {
  return new LabError(`want ${form}`, { next: 'npm run lab' })
}

async function main(): Promise<number> {
  const [name, ...args] = process.argv.slice(2)
  const command = name === undefined ? undefined : commands[name]
  if (command === undefined) {
    process.stderr.write(usage)
    return name === undefined || name === '--help' ? 0 : 2
  }
  const result = await command(args)
  return typeof result === 'number' ? result : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  const isUsage = (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') ?? false
  process.stderr.write(isUsage ? `lab: ${(error as Error).message}\n\n${usage}` : `${describeError(error)}\n`)
  process.exitCode = isUsage ? 2 : 1
}
