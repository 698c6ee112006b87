import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { clusterCa, countingPods } from './addons.ts'
import { buildBinaries } from './binaries.ts'
import { issue, type KeyPair } from './certificates.ts'
import { existing } from './cluster.ts'
import { endProcess, type ProcessIdentity, runOnTerminal, sleep, startDetached } from './command.ts'
import { kubectl, newestKey, patientKubectl } from './kubectl.ts'
import { LabError } from './lab-error.ts'
import { type ClusterSpec, defaultMinor, machineIdentity, network } from './spec.ts'
import { folders, writeWhole } from './state.ts'
import type { Steps } from './steps.ts'
import {
  describeVerdict,
  type Expectation,
  evaluate,
  parseSamples,
  type Sample,
  type Verdict,
} from './verdict.ts'

const help = `npm run lab -- probe [--duration 30s] [--output samples.jsonl] [--expect table.json] [-- PROBER FLAGS…]

Without flags of the prober: the lab's cluster, with {old, both, new} × {old-cert, new-cert, token} × {each API server, lb},
logs and exec of each node through each API server, and the in-pod counters. Trust and credentials are files in
${join(folders.state, 'probe')}; the new CA's may appear there while the prober runs (both.crt, new.crt, new-cert.crt, new-cert.key).
With flags after --: any cluster; prober --help lists them. --expect is a JSON list of rows as in test/lab/verdict.ts.
Exit code: 0 as expected, 3 not, 1 a defect.
`

/** The files that the prober reads. The rotation writes those of the new CA. */
export const probeFiles = {
  folder: join(folders.state, 'probe'),
  trust: (name: 'old' | 'both' | 'new') => join(folders.state, 'probe', `${name}.crt`),
  certificate: (name: string) => join(folders.state, 'probe', `${name}.crt`),
  key: (name: string) => join(folders.state, 'probe', `${name}.key`),
  token: join(folders.state, 'probe', 'token'),
}

/** A prober that runs during a test. */
export interface Prober {
  /** Returns the samples so far. */
  samples(): Sample[]
  /** Stops the prober and evaluates all samples. */
  stop(table?: readonly Expectation[]): Promise<Verdict>
}

/** Starts the prober on the lab's cluster. `more` are additional flags. */
export async function startProber(more: readonly string[] = []): Promise<Prober> {
  const output = join(probeFiles.folder, 'samples.jsonl')
  rmSync(probeFiles.folder, { recursive: true, force: true })
  const argv = [...(await labCommand(more.includes('--logs') ? [] : undefined)), '--output', output, ...more]
  const prober: ProcessIdentity = await startDetached(argv, join(probeFiles.folder, 'prober.log'))
  await sleep(1000)
  const samples = (): Sample[] => (existsSync(output) ? parseSamples(readFileSync(output, 'utf8')) : [])
  return {
    samples,
    async stop(table = []) {
      await endProcess(prober, 'SIGTERM')
      const observed = samples()
      if (observed.length === 0) {
        throw new LabError('the prober saw nothing', {
          why: readFileSync(join(probeFiles.folder, 'prober.log'), 'utf8'),
        })
      }
      return evaluate(observed, table)
    },
  }
}

/**
 * Returns the prober's command line for the lab's cluster, and writes its trust and credentials. `targets`: the pods whose logs
 * are read.
 */
async function labCommand(targets?: readonly string[]): Promise<string[]> {
  const record = existing()
  await writeCredentials()
  const nodes = record.nodes.map(machineIdentity)
  const endpoints = [
    ...nodes
      .filter(({ role }) => role === 'control-plane')
      .map(({ name, address }) => `${name}=${address}:6443`),
    `lb=${network.loadBalancer}:6443`,
  ]
  const pods = record.spec.addons ? await countingPods() : []
  const everyNode =
    targets ??
    pods
      .filter(({ name }) => name.startsWith('client-ds-'))
      .map(({ node, name }) => `${node}=lab/${name}/client`)
  const flag = (name: string, values: readonly string[]): string[] =>
    values.flatMap((value) => [`--${name}`, value])
  return [
    join(folders.cache, newestKey(record.binaries), 'bin/prober'),
    ...flag('endpoint', endpoints),
    ...flag(
      'trust',
      (['old', 'both', 'new'] as const).map((name) => `${name}=${probeFiles.trust(name)}`),
    ),
    ...flag(
      'credential',
      ['old-cert', 'new-cert'].map(
        (name) => `${name}=cert:${probeFiles.certificate(name)},${probeFiles.key(name)}`,
      ),
    ),
    ...flag('credential', [`token=token:${probeFiles.token}`]),
    ...flag('logs', everyNode),
    ...flag('exec', everyNode),
    ...flag(
      'counter',
      pods.map(({ name, url }) => `${name}=${url}`),
    ),
    ...['--kubelet-trust', 'both', '--kubelet-credential', 'token'],
  ]
}

/** Issues an administrator's client certificate from the current cluster CA on cp1, with its key. */
export async function issueAdministrator(spec: ClusterSpec): Promise<KeyPair> {
  const subject = { commonName: 'lab-prober', organizations: ['system:masters'] }
  return await issue(clusterCa(spec), { ...subject, usages: ['clientAuth'] }, spec.keys)
}

/** Writes an administrator's client certificate of the old CA, a service account's token, and the old CA as trust. */
async function writeCredentials(): Promise<void> {
  const { spec } = existing()
  mkdirSync(probeFiles.folder, { recursive: true, mode: 0o700 })
  const ca = clusterCa(spec)
  const admin = await issueAdministrator(spec)
  writeWhole(probeFiles.trust('old'), ca.certificate)
  // Until the new CA exists, the bundle contains only the old one.
  writeWhole(probeFiles.trust('both'), ca.certificate)
  writeWhole(probeFiles.certificate('old-cert'), admin.certificate)
  writeWhole(probeFiles.key('old-cert'), admin.key, 0o600)
  await kubectl(['-n', 'kube-system', 'create', 'serviceaccount', 'lab-prober'], { mayFail: true })
  const binding = [
    'create',
    'clusterrolebinding',
    'lab:prober',
    '--clusterrole=cluster-admin',
    '--serviceaccount=kube-system:lab-prober',
  ]
  await kubectl(binding, { mayFail: true })
  await issueToken()
}

/** Writes a token for a day. The prober and the watcher read the file for each connection. */
export async function issueToken(): Promise<void> {
  const token = await patientKubectl(['-n', 'kube-system', 'create', 'token', 'lab-prober', '--duration=24h'])
  writeWhole(probeFiles.token, token.stdout, 0o600)
}

/** `npm run lab -- probe`: probes for a given time, prints the path of the samples and the verdict. */
export async function probeCommand(args: readonly string[], steps: Steps): Promise<number> {
  const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args
  const flags = args.includes('--') ? args.slice(args.indexOf('--') + 1) : []
  const { values } = parseArgs({
    args: [...own],
    options: {
      duration: { type: 'string', default: '30s' },
      output: { type: 'string', default: join(folders.state, 'probe', 'samples.jsonl') },
      expect: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) {
    process.stdout.write(help)
    return 0
  }
  const table =
    values.expect === undefined ? [] : (JSON.parse(readFileSync(values.expect, 'utf8')) as Expectation[])
  const command =
    flags.length > 0
      ? [join((await buildBinaries(defaultMinor, steps)).folder, 'prober'), ...flags]
      : await labCommand()
  mkdirSync(dirname(values.output), { recursive: true, mode: 0o700 })
  rmSync(values.output, { force: true })
  const code = await steps.step(`probe for ${values.duration}`, () =>
    runOnTerminal([...command, '--output', values.output, '--duration', values.duration]),
  )
  if (code !== 0) return 1
  const verdict = evaluate(parseSamples(readFileSync(values.output, 'utf8')), table)
  process.stdout.write(`${values.output}\n${describeVerdict(verdict)}`)
  return verdict.holds ? 0 : 3
}
