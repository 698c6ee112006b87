import { spawn, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { putServing } from '../scripts/cluster-session.ts'
import { client, createCa } from '../scripts/small-pki.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'
import { filesOfGuide } from './blocks.ts'

// Checks that every file in docs/guides/monitoring.md does what the page describes. Only the paths differ.

const files = filesOfGuide('monitoring')
const at = temporaryFolder('monitoring')
const bin = join(at, 'bin')
const day = 86_400_000
const ends = (days: number): { notAfter: Date; notBefore: Date } => ({
  notBefore: new Date(Date.now() - 300 * day),
  notAfter: new Date(Date.now() + days * day),
})

beforeAll(() => {
  const ca = createCa()
  mkdirSync(bin)
  for (const [name, days] of Object.entries({ fine: 200, soon: 20, urgent: 3 })) {
    mkdirSync(join(at, name))
    writeFileSync(join(at, name, `${name}.crt`), client(`a "${name}"\\leaf`, ca, ends(days)).pem)
  }
  program('kcert', `exec '${process.execPath}' '${resolve('bin/run.js')}' "$@"`)
  const packing = spawnSync('npm', ['pack', '--ignore-scripts', '--pack-destination', at], {
    encoding: 'utf8',
  })
  expect(packing.stdout).toBe('kcert-0.1.0.tgz\n')
  expect(run('sha256sum kcert-0.1.0.tgz > kcert.sha256').exit).toBe(0)
  program('npm', `echo "npm $*" >> '${join(at, 'npm.log')}'`)
})

function program(name: string, body: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`)
  chmodSync(join(bin, name), 0o755)
}

/** Runs a command line as a shell on that machine would, with this build of kcert instead of the installed one. */
function run(line: string, env: Record<string, string> = {}) {
  const { stdout, stderr, status } = spawnSync('sh', ['-e', '-c', line.replaceAll('/usr/local/bin/', '')], {
    cwd: at,
    encoding: 'utf8',
    env: { PATH: `${bin}${delimiter}${process.env.PATH}`, HOME: at, ...env },
  })
  return { stdout, stderr, exit: status }
}

test('the page contains these files', () => {
  expect(Object.keys(files).sort()).toEqual([
    'Dockerfile',
    'certificates.yaml',
    'kcert-alerts.yaml',
    'kcert-cronjob.yaml',
    'kcert-textfile.service',
    'kcert-textfile.timer',
    'kcert.cfg',
  ])
})

describe('node_exporter', () => {
  const service = files['kcert-textfile.service']!
  const settingOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(service)![1]!

  test('the unit writes a world-readable file in the exposition format, and its alerts use metrics in that file', () => {
    const file = join(at, 'kcert.prom')
    const line = settingOf('ExecStart')
      .replace('/etc/kubernetes /var/lib/kubelet/pki', 'fine soon')
      .replace(/\S+\/kcert\.prom/, file)
    expect(settingOf('ExecStart')).toContain(`${settingOf('ReadWritePaths')}/kcert.prom`)
    expect(run(line).exit).toBe(Number(settingOf('SuccessExitStatus')))
    expect(statSync(file).mode & 0o777).toBe(0o644)
    const metrics = exposition(readFileSync(file, 'utf8'))
    const { groups } = parse(files['kcert-alerts.yaml']!) as {
      groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[]
    }
    for (const { expr, annotations } of groups[0]!.rules) {
      const [name = ''] = /(?:kcert|node)_\w+/.exec(expr)!
      if (name.startsWith('node_')) continue
      const samples = metrics.get(name)!
      expect(samples.length, name).toBeGreaterThan(0)
      for (const [, label = ''] of annotations.summary.matchAll(/\$labels\.(\w+)/g))
        if (label !== 'instance') expect(samples[0]!.labels, expr).toHaveProperty(label)
    }
    const [ending] = metrics.get('kcert_certificate_not_after_timestamp_seconds')!
    // Escaped once by RFC 4514 and again by the exposition format.
    expect(ending!.labels.subject).toBe('CN=a \\\\\\"soon\\\\\\"\\\\\\\\leaf')
  })

  test('rejects an invalid exposition', () => {
    expect(() => exposition('a 1')).toThrow('end')
    expect(() => exposition('a 1\n')).toThrow('TYPE')
    expect(() => exposition('# TYPE a gauge\na{b="c} 1\n')).toThrow('sample')
    expect(() => exposition('# TYPE a gauge\na{b="c"} 1\na{b="c"} 2\n')).toThrow('twice')
  })

  const analyze = spawnSync('systemd-analyze', ['--version']).status === 0
  test.skipIf(!analyze)('systemd accepts the units (skipped without systemd-analyze)', () => {
    const units = ['kcert-textfile.service', 'kcert-textfile.timer'].map((name) => {
      writeFileSync(join(at, name), files[name]!.replace('/usr/local/bin/kcert', join(bin, 'kcert')))
      return join(at, name)
    })
    const { stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', '--man=no', '--recursive-errors=no', ...units],
      {
        encoding: 'utf8',
      },
    )
    expect((stdout + stderr).split('\n').filter((line) => line.includes('kcert'))).toEqual([])
  })
})

interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Reads Prometheus' text format 0.0.4 as strictly as Prometheus' parser. */
function exposition(text: string): Map<string, Sample[]> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const types = new Set<string>()
  const metrics = new Map<string, Sample[]>()
  const seen = new Set<string>()
  for (const line of text.slice(0, -1).split('\n')) {
    const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (?:gauge|counter)$/.exec(line)
    if (type !== null) {
      if (types.has(type[1]!)) throw new Error(`TYPE of ${type[1]} twice`)
      types.add(type[1]!)
      continue
    }
    if (/^# HELP [a-zA-Z_:][a-zA-Z0-9_:]* \S/.test(line)) continue
    const sample =
      /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(
        line,
      )
    if (sample === null) throw new Error(`no sample: ${line}`)
    const [, name = '', labels = '', value = ''] = sample
    if (!types.has(name)) throw new Error(`${name} has no TYPE before it`)
    if (seen.has(`${name}{${labels}}`)) throw new Error(`${name}{${labels}} twice`)
    seen.add(`${name}{${labels}}`)
    const pairs = [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)]
    const one = {
      labels: Object.fromEntries(pairs.map(([, key, text = '']) => [key!, text])),
      value: Number(value),
    }
    metrics.set(name, [...(metrics.get(name) ?? []), one])
  }
  return metrics
}

describe('Nagios', () => {
  const config = files['kcert.cfg']!
  const commandLine = /command_line\s+(.*)/.exec(config)![1]!
  const [name, ...values] = /check_command\s+(.*)/.exec(config)![1]!.split('!')

  test.each([
    ['fine', 0, 'OK'],
    ['soon', 1, 'WARNING'],
    ['urgent', 2, 'CRITICAL'],
    ['not-there', 3, 'UNKNOWN'],
  ])('the check of %s exits with %i', (target, exit, word) => {
    expect(config).toContain(`command_name    ${name}\n`)
    const macros: Record<string, string> = { $ARG1$: target, $ARG2$: values[1]!, $ARG3$: values[2]! }
    const session = run(commandLine.replaceAll(/\$ARG\d\$/g, (macro) => macros[macro]!))
    expect(session.exit).toBe(exit)
    expect(session.stdout).toMatch(new RegExp(`^${word} - [^|\n]+(?:\\|[^|\n]+)?\n$`))
  })
})

describe('GitHub Actions', () => {
  const { jobs, on } = parse(files['certificates.yaml']!) as {
    on: Record<string, unknown>
    jobs: Record<
      string,
      { env: { TARGETS: string }; steps: { name?: string; run?: string; uses?: string }[] }
    >
  }
  const { steps, env } = jobs.certificates!

  test('runs on a schedule and on demand, with known actions in its steps', () => {
    expect(Object.keys(on)).toEqual(['schedule', 'workflow_dispatch'])
    expect(steps.flatMap(({ uses }) => uses ?? [])).toEqual([
      'actions/checkout@v4',
      'actions/setup-node@v4',
      'actions/upload-artifact@v4',
    ])
    for (const target of env.TARGETS.split(' ')) expect(target).toMatch(/^[\w.]+:\d+$/)
  })

  test.each([
    ['fine', [0, 0, 0]],
    ['soon', [0, 0, 3]],
    ['not-there', [0, 1, 2]],
  ])('its steps for %s exit with %j', (target, exits) => {
    const sessions = steps.flatMap(({ run: script }) =>
      script === undefined ? [] : [run(script, { TARGETS: target })],
    )
    expect(sessions.map(({ exit }) => exit)).toEqual(exits)
    expect(readFileSync(join(at, 'npm.log'), 'utf8')).toContain('npm install -g ./kcert-0.1.0.tgz\n')
  })

  test('installs nothing when the checksum of the package differs', () => {
    const script = steps.find(({ name }) => name === 'Install')!.run!
    rmSync(join(at, 'npm.log'))
    appendFileSync(join(at, 'kcert-0.1.0.tgz'), 'x')
    expect(run(script).exit).toBe(1)
    expect(existsSync(join(at, 'npm.log'))).toBe(false)
    truncateSync(join(at, 'kcert-0.1.0.tgz'), statSync(join(at, 'kcert-0.1.0.tgz')).size - 1)
  })

  test('the page exists', () => {
    expect(readFileSync(join(at, 'certificates.html'), 'utf8')).toContain('<!doctype html>')
  })
})

describe('the image', () => {
  test.each(['monitoring', 'approve-kubelet-serving'])(
    'of %s verifies the checksum of the package before it installs it',
    (guide) => {
      const [, script = ''] = /^RUN (.*)$/m.exec(filesOfGuide(guide).Dockerfile!)!
      const folder = join(at, guide)
      const inFolder = script.replace('/tmp', folder)
      mkdirSync(folder)
      for (const name of ['kcert-0.1.0.tgz', 'kcert.sha256']) copyFileSync(join(at, name), join(folder, name))
      appendFileSync(join(folder, 'kcert-0.1.0.tgz'), 'x')
      expect(run(inFolder).exit).toBe(1)
      copyFileSync(join(at, 'kcert-0.1.0.tgz'), join(folder, 'kcert-0.1.0.tgz'))
      expect(run(inFolder)).toMatchObject({ exit: 0, stdout: 'kcert-0.1.0.tgz: OK\n' })
    },
  )
})

describe('the CronJob', () => {
  interface Rule {
    readonly apiGroups: string[]
    readonly resources: string[]
    readonly verbs: string[]
  }
  interface Manifest {
    readonly kind: string
    readonly metadata: { readonly name: string; readonly namespace?: string }
    readonly rules?: Rule[]
    readonly roleRef?: { readonly name: string; readonly kind: string }
    readonly subjects?: { readonly name: string; readonly namespace: string }[]
    readonly spec?: {
      readonly jobTemplate: {
        readonly spec: {
          readonly template: {
            readonly spec: { serviceAccountName: string; containers: { command: string[] }[] }
          }
        }
      }
    }
  }
  const objects = parseAllDocuments(files['kcert-cronjob.yaml']!).map((one) => one.toJS() as Manifest)
  const [account, role, binding, cronJob] = objects as [Manifest, Manifest, Manifest, Manifest]
  const pod = cronJob.spec!.jobTemplate.spec.template.spec
  let server: FakeApiServer

  beforeAll(async () => {
    server = await startApiServer({
      signer: 'controller',
      tokens: { monitor: { username: 'kcert-monitor', groups: [] } },
      certificateKinds: { clustertrustbundles: 'v1', podcertificaterequests: 'v1' },
    })
  })
  afterAll(() => server.close())

  test('has objects that refer to each other', () => {
    expect(objects.map(({ kind }) => kind)).toEqual([
      'ServiceAccount',
      'ClusterRole',
      'ClusterRoleBinding',
      'CronJob',
    ])
    expect(pod.serviceAccountName).toBe(account.metadata.name)
    expect(cronJob.metadata.namespace).toBe(account.metadata.namespace)
    expect(binding.roleRef).toMatchObject({ kind: 'ClusterRole', name: role.metadata.name })
    expect(binding.subjects).toEqual([
      { kind: 'ServiceAccount', name: account.metadata.name, namespace: account.metadata.namespace },
    ])
  })

  /** Runs the container's command with these rights, as the lab does in a pod (test/lab/probe.test.ts). */
  const runWith = (rules: readonly Rule[], change: (argument: string) => string, ...more: string[]) => {
    server.rules = rules.map(({ apiGroups, resources, verbs }) => ({
      user: 'kcert-monitor',
      groups: apiGroups,
      resources,
      verbs,
    }))
    const kubeconfig = server.writeKubeconfig(join(at, 'monitor.conf'), { token: 'monitor' })
    const [program = '', ...args] = pod.containers[0]!.command
    return runBeside([join(bin, program), ...args.map(change), '--kubeconfig', kubeconfig, ...more])
  }

  const unreadWith = async (rules: readonly Rule[]): Promise<string[]> => {
    const { stdout } = await runWith(rules, (argument) => argument, '-o', 'json')
    const { problems } = JSON.parse(stdout) as { problems: { code: string; source: string }[] }
    return problems.filter(({ code }) => code === 'SOURCE_UNREADABLE').map(({ source }) => source)
  }

  test('finds nothing due in a cluster that kubeadm created, and exits with 3 for a longer warning period', async () => {
    putWhatKubeadmMakes(server)
    const fine = await runWith(role.rules!, (argument) => argument)
    expect({ exit: fine.exit, stderr: fine.stderr }).toEqual({ exit: 0, stderr: '' })
    expect(fine.stdout).toContain('configmap kube-system/extension-apiserver-authentication')
    // The API server's certificate is valid for one year.
    const due = await runWith(role.rules!, (argument) => argument.replace(/^30d$/, '400d'))
    expect([due.exit, due.stdout]).toEqual([3, expect.stringContaining('CERT_EXPIRING')])
  })

  test('has sufficient rights for everything that it reads, and needs each of them', async () => {
    expect(await unreadWith(role.rules!)).toEqual([])
    for (const { apiGroups, resources, verbs } of role.rules!) {
      for (const resource of resources) {
        // EndpointSlices add API servers to the check. Without them, no test fails.
        if (resource === 'endpointslices') continue
        const others = role.rules!.map((rule) => ({
          ...rule,
          resources: rule.resources.filter((one) => one !== resource),
        }))
        expect(await unreadWith(others), `${verbs} ${resource}.${apiGroups}`).not.toEqual([])
      }
    }
  })
})

/** Creates the objects of a new cluster that contain certificates. */
function putWhatKubeadmMakes(server: FakeApiServer): void {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const mounted = '/var/run/secrets/kubernetes.io/serviceaccount'
  const put = (namespace: string, name: string, data: Record<string, string>): void => {
    const key = { group: '', version: 'v1', resource: 'configmaps', namespace } as const
    server.put(key, { metadata: { name, namespace }, data })
  }
  const kubeconfig = (cluster: object, rest: object): string =>
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [{ name: 'default', cluster }], ...rest })
  put('default', 'kube-root-ca.crt', { 'ca.crt': server.caPem })
  put('kube-public', 'cluster-info', {
    kubeconfig: kubeconfig(
      { server: 'https://192.0.2.10:6443', 'certificate-authority-data': base64(server.caPem) },
      { users: null, contexts: null, 'current-context': '' },
    ),
    'jws-kubeconfig-abcdef': 'e30..c2lnbmF0dXJl',
  })
  put('kube-system', 'extension-apiserver-authentication', {
    'client-ca-file': server.caPem,
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-client-ca-file': createCa('front-proxy-ca').pem,
  })
  put('kube-system', 'kube-proxy', {
    'config.conf': 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n',
    'kubeconfig.conf': kubeconfig(
      { server: 'https://192.0.2.10:6443', 'certificate-authority': `${mounted}/ca.crt` },
      {
        users: [{ name: 'default', user: { tokenFile: `${mounted}/token` } }],
        contexts: [{ name: 'default', context: { cluster: 'default', user: 'default' } }],
        'current-context': 'default',
      },
    ),
  })
  putServing(server, 'csr-1', {}, { status: { conditions: [{ type: 'Approved', status: 'True' }] } })
}

/** Runs a program without blocking this process, because the fake API server runs in it. */
function runBeside([program = '', ...args]: readonly string[]) {
  const child = spawn(program, args, { env: { PATH: process.env.PATH, HOME: at } })
  const written = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text
    })
  }
  return new Promise<typeof written & { exit: number | null }>((done, failed) => {
    child.once('error', failed)
    child.once('close', (exit) => done({ ...written, exit }))
  })
}
