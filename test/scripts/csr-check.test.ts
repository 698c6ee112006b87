import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { beforeAll, describe, expect, test } from 'vitest'
import { schemaFiles } from '../../scripts/docs/schemas.ts'
import type { CheckReport } from '../../src/csr/check-report.ts'
import { createRequest, type RequestDescription } from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'
import { nodeNames, requestPem, servingDescription } from '../csr/made-requests.ts'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

const folder = temporaryFolder('csr-check')
const file = (name: string): string => join(folder, name)
const serving = 'kubernetes.io/kubelet-serving'
const usages = ['--usage', 'digital signature', '--usage', 'server auth']

function manifest(description: RequestDescription, spec: object): string {
  const request = Buffer.from(requestPem(description)).toString('base64')
  return JSON.stringify({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-7x2lq' },
    spec: { request, ...spec },
  })
}

const kubelets = {
  signerName: serving,
  usages: ['digital signature', 'server auth'],
  username: 'system:node:node-1',
  groups: ['system:nodes', 'system:authenticated'],
}

function nodes(addresses: readonly string[]): string {
  const items = [
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-1' },
      status: {
        addresses: addresses.map((address) => ({
          type: /[a-z]-/.test(address) ? 'InternalDNS' : 'InternalIP',
          address,
        })),
      },
    },
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

beforeAll(() => {
  writeFileSync(file('serving.csr'), requestPem(servingDescription()))
  writeFileSync(file('csr.json'), manifest(servingDescription(), kubelets))
  writeFileSync(file('nodes.json'), nodes([...nodeNames.dns, ...nodeNames.ip]))
  writeFileSync(
    file('policy.yaml'),
    'apiVersion: kcert/v1\nkind: ApprovalPolicy\ncluster:\n  apiServers: [10.1.0.2]\n  serviceCidrs: [10.96.0.0/12]\nrules:\n- builtin: kubelet-serving\n',
  )
})

function report(args: readonly string[], stdin?: string): CheckReport {
  const { stdout } = kcert(['csr', 'check', ...args, '-o', 'json'], stdin === undefined ? {} : { stdin })
  return JSON.parse(stdout) as CheckReport
}

describe('kcert csr check', () => {
  test('answers the three questions separately, and shows what to change', () => {
    const wrong = ['--signer', serving, '--usage', 'digital signature', '--usage', 'client auth']
    const { stdout, stderr, exit } = kcert(['csr', 'check', file('serving.csr'), ...wrong])
    expect(stdout).toContain('Will the API server accept it? yes\n')
    expect(stdout).toContain('Should an approver approve it? NO: deny it\n')
    expect(stdout).toContain('Will the signer sign it? NO: it would set the condition Failed\n')
    expect(stdout).toMatch(
      /NO {2}signer-usages .*but "server auth" is missing, "client auth" is not allowed\n +fix: use --usage/,
    )
    expect(stdout).toMatch(
      /^identity +unknown whether the requester holds the private key and is who the request says$/m,
    )
    expect(stdout).toMatch(
      /^entitlement +unknown whether the requester is entitled to what the request asks for$/m,
    )
    expect({ stderr, exit }).toEqual({ stderr: '', exit: 3 })
  })

  test('accepts a valid request', () => {
    const { exit } = kcert(['csr', 'check', file('serving.csr'), '--signer', serving, ...usages])
    expect(exit).toBe(0)
  })

  test('prints JSON that is valid against its schema, and the same data in YAML', () => {
    const schema = JSON.parse(schemaFiles().find(([path]) => path.endsWith('/RequestCheck.json'))![1])
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema)
    for (const args of [
      [file('serving.csr'), '--signer', serving, ...usages],
      [file('csr.json')],
      [file('csr.json'), '--nodes', file('nodes.json'), '--policy', file('policy.yaml')],
    ])
      expect([validate(report(args)), validate.errors]).toEqual([true, null])
    const yaml = kcert(['csr', 'check', file('csr.json'), '-o', 'yaml']).stdout
    expect(yaml).toContain('kind: RequestCheck\n')
    expect(yaml).toContain('decision: ignore\n')
  })

  test('checks against the built-in policies by default, or against the one that --policy names', () => {
    const byDefault = report([file('csr.json')])
    expect(report([file('csr.json'), '--policy', 'builtin']).rules).toEqual(byDefault.rules)
    const serving = report([file('csr.json'), '--policy', 'kubelet-serving'])
    expect(serving.rules).toEqual(byDefault.rules)
    const client = report([file('csr.json'), '--policy', 'kubelet-client'])
    expect([serving.reason, client.reason]).toEqual([byDefault.reason, 'no policy applies to it'])
  })

  test('reads PEM, DER, JSON and YAML, from a file and from standard input', () => {
    const pem = readFileSync(file('serving.csr'), 'utf8')
    const der = createRequest(
      servingDescription(),
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
    )
    writeFileSync(file('serving.der'), der)
    const yaml = `# from the cluster\n---\napiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: a}\nspec:\n  signerName: ${serving}\n  usages: [digital signature, server auth]\n  request: |\n    ${Buffer.from(
      pem,
    )
      .toString('base64')
      .replaceAll(/(.{64})/g, '$1\n    ')}\n`
    const list = `{"apiVersion":"v1","kind":"List","items":[{"kind":"ConfigMap"},${readFileSync(file('csr.json'), 'utf8')}]}`
    const subjects = [
      report([file('serving.csr'), '--signer', serving, ...usages]),
      report(['-', '--signer', serving, ...usages], pem),
      report([file('serving.der'), '--signer', serving, ...usages]),
      report([file('csr.json')]),
      report(['-'], yaml),
      report(['-'], list),
    ].map((one) => one.request?.subject.commonName)
    expect(subjects).toEqual(Array(6).fill('system:node:node-1'))
  })

  test('approves an object with a known requester only when Nodes and policy are known too', () => {
    expect(report([file('csr.json')])).toMatchObject({ isSubmitted: true, decision: 'ignore' })
    const known = ['--nodes', file('nodes.json'), '--policy', file('policy.yaml')]
    expect(report([file('csr.json'), ...known])).toMatchObject({ decision: 'approve' })
    expect(kcert(['csr', 'check', file('csr.json'), ...known]).exit).toBe(0)
    expect(kcert(['csr', 'check', file('csr.json')]).exit).toBe(3)

    writeFileSync(file('other-nodes.json'), nodes(['10.1.0.9']))
    const foreign = report([
      file('csr.json'),
      '--nodes',
      file('other-nodes.json'),
      '--policy',
      file('policy.yaml'),
    ])
    expect(foreign).toMatchObject({ decision: 'ignore' })
    expect(foreign.reason).toMatch(/^own-names: "node-1", .* is not an address of Node "node-1"/)
  })

  test('gives flags precedence over the file', () => {
    const other = report([
      file('csr.json'),
      '--requester',
      'system:node:node-2',
      '--requester-group',
      'system:nodes,x',
    ])
    expect(other.spec).toMatchObject({ username: 'system:node:node-2', groups: ['system:nodes', 'x'] })
    expect(other.rules.filter(({ ok }) => !ok).map(({ id }) => id)).toEqual(['node-restriction', 'requester'])
    const short = report([file('csr.json'), '--expiration-seconds', '60'])
    expect(short.rules.find(({ ok }) => !ok)).toMatchObject({
      id: 'expiration-seconds',
      question: 'admission',
    })
  })

  test('requires a name to select one of several objects', () => {
    const several = `${readFileSync(file('csr.json'), 'utf8')}\n---\n${readFileSync(file('csr.json'), 'utf8').replace('csr-7x2lq', 'other')}`
    expect(kcert(['csr', 'check', '-'], { stdin: several })).toEqual({
      stdout: '',
      stderr:
        'KCERT_USAGE: standard input contains 2 requests, and kcert checks one at a time\nwhy: it contains csr-7x2lq, other\nnext: kcert csr check - --name csr-7x2lq\n',
      exit: 2,
    })
    expect(report(['-', '--name', 'other'], several).spec.name).toBe('other')
  })

  test.each<[string, string[], string | Uint8Array, string, number]>([
    [
      'no signer',
      ['-'],
      requestPem(servingDescription()),
      'KCERT_USAGE: standard input is a CSR without a Kubernetes object',
      2,
    ],
    [
      'nothing',
      ['-', '--signer', 'a.b/c'],
      '',
      'KCERT_MANIFEST_MALFORMED: standard input contains no CSR',
      2,
    ],
    [
      'another kind',
      ['-'],
      '{"kind":"CertificateSigningRequestX"}',
      'KCERT_MANIFEST_MALFORMED: standard input contains no CertificateSigningRequest',
      2,
    ],
    [
      'broken YAML',
      ['-'],
      'kind: CertificateSigningRequest\nspec: [',
      'KCERT_MANIFEST_MALFORMED: the manifest cannot be read',
      2,
    ],
    ['a file that is not there', ['/nonexistent/csr.yaml'], '', 'KCERT_FILE_NOT_FOUND', 2],
    [
      'two standard inputs',
      ['-', '--policy', '-'],
      '',
      'KCERT_USAGE: only one file can be standard input',
      2,
    ],
  ])('%s: reports what is wrong, and why or next', (_name, args, stdin, message, exit) => {
    const run = kcert(['csr', 'check', ...args], { stdin })
    expect(run.stderr).toContain(message)
    expect(run.stderr).toMatch(/\n(?:why|fix|next): /)
    expect(run).toMatchObject({ stdout: '', exit })
  })

  test('escapes hostile names on a terminal', () => {
    const name = 'system:node:\u001b[2Jnode\u202e\u0007'
    const hostile = manifest(
      { subject: { commonName: name, organization: ['system:nodes\n\u001b]0;x\u0007'] } },
      { ...kubelets, username: name },
    )
    for (const format of ['text', 'json', 'yaml']) {
      const { stdout, exit } = kcert(['csr', 'check', '-', '-o', format], { stdin: hostile })
      expect(exit).toBe(3)
      expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/)
    }
  })

  test('never fails with a defect, whatever is in the file', () => {
    const pem = requestPem(servingDescription())
    const der = Buffer.from(pem.split('\n').slice(1, -2).join(''), 'base64')
    const hostile = [
      ...[1, 7, 40, 90, 200].map((length) => writePem('CERTIFICATE REQUEST', der.subarray(0, length))),
      manifest(servingDescription(), {
        signerName: ['a'],
        usages: 'x',
        groups: { a: 1 },
        expirationSeconds: 'soon',
        username: [],
      }),
      '{"kind":"CertificateSigningRequest","spec":{"request":{"a":1}},"status":{"conditions":"x","certificate":[]}}',
      'kind: CertificateSigningRequest\nspec: null\nmetadata: []\n',
      `kind: CertificateSigningRequest\nspec: {usages: [${'a,'.repeat(50_000)}]}\n`,
      `kind: CertificateSigningRequestList\nitems: [1, null, [], {}]\nname: x\n`,
    ]
    for (const stdin of hostile) {
      const { stderr, exit } = kcert(['csr', 'check', '-', '--signer', serving, ...usages], { stdin })
      expect({ stdin: stdin.slice(0, 80), stderr, exit }).toMatchObject({
        stderr: expect.not.stringContaining('KCERT_DEFECT'),
        exit: expect.toBeOneOf([2, 3]),
      })
    }
  })
})
