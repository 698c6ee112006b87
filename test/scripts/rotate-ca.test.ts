import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { certificatePem, testCa, testKey } from '../pki/kubeadm-tree.ts'
import { kcert, kcertBeside } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Messages of the rotate-ca commands before they reach a cluster. Their effects are tested in test/rotation and test/lab.

const folder = temporaryFolder('rotate-ca')
const commands = [
  [],
  ['plan'],
  ['status'],
  ['verify'],
  ['rollback'],
  ['runbook', 'DIR', '--phase', '1'],
  ['recover'],
]

function rotateCa(...args: string[]) {
  return kcert(['rotate-ca', ...args], { cwd: folder, env: { KUBECONFIG: join(folder, 'none.conf') } })
}

test.each(commands)('rotate-ca %s: has exit codes and at least three examples in its help', (...words) => {
  const { stdout, exit } = rotateCa(...words, '--help')
  expect(exit).toBe(0)
  expect(stdout).toMatch(/EXIT CODES\n {2}0 {2}/)
  expect(stdout.match(/^ +\$ kcert rotate-ca/gm)?.length).toBeGreaterThanOrEqual(3)
})

test.each(commands)('rotate-ca %s: without an inventory, names the command that writes one', (...words) => {
  const { stdout, stderr, exit } = rotateCa(...words)
  expect({ stdout, exit }).toEqual({ stdout: '', exit: 2 })
  expect(stderr).toContain('KCERT_FILE_NOT_FOUND: inventory kcert.yaml does not exist')
  expect(stderr).toContain('next: kcert rotate-ca discover')
})

test.each([
  [['--phase', '13'], 'invalid phase "13": phases are 1 to 12'],
  [['--phase', '0'], 'invalid phase "0": phases are 1 to 12'],
  [['--phase', '6-2'], 'invalid phase "6-2": phases are 1 to 12'],
  [['--phase', '3', '--all'], '--phase and --all are mutually exclusive'],
  [['--through', '12', '--all'], 'are mutually exclusive'],
  [['--ca', 'etcd,cluster'], 'invalid --ca "etcd,cluster"'],
  [['--ca', 'etcd', '--phase', '7'], 'invalid phase "7": phases are 1 to 6'],
  [['--ca', 'etcd', '--through', '7'], 'invalid phase "7": phases are 1 to 6'],
  [['plan', '--ca', 'etcd', '--new-keys'], '--new-keys cannot be used with --ca etcd'],
  [['plan', '--ca', 'etcd', '--reason', 'compromise'], '--reason compromise cannot be used with --ca etcd'],
  [['verify', '--ca', 'etcd'], 'verify does not check the etcd CA'],
  [['plan', '--algorithm', 'ECDSA-P521'], 'kubeadm does not support the key type "ECDSA-P521"'],
  [['--phase', '1', '--algorithm', 'ed25519'], 'kubeadm does not support the key type "Ed25519"'],
  [['plan', '--algorithm', '__proto__'], 'unsupported key type "__proto__"'],
  [['rollback', '--algorithm', 'ECDSA-P256'], '--algorithm'],
  [['--pace', 'fast'], '--pace "fast" is not a duration'],
  [['--ca-cert', 'ca.crt'], '--ca-key'],
  [['plam'], 'plam'],
])('%s is wrong usage with a reason', (args, text) => {
  const { stdout, stderr, exit } = rotateCa(...args)
  expect({ stdout, exit }).toEqual({ stdout: '', exit: 2 })
  expect(stderr).toContain(text)
})

test('plan --sources needs a folder, and never waits for a FIFO', () => {
  writeFileSync(join(folder, 'file'), '')
  execFileSync('mkfifo', [join(folder, 'fifo')])
  symlinkSync('fifo', join(folder, 'link'))
  for (const [name, what] of [
    ['missing', 'does not exist'],
    ['file', 'is a file'],
    ['fifo', 'is a FIFO'],
    ['link', 'is a FIFO'],
  ] as const) {
    const { stdout, stderr, exit } = rotateCa('plan', '--sources', name)
    expect({ stdout, exit }).toEqual({ stdout: '', exit: 2 })
    expect(stderr).toContain(`KCERT_FILE_NOT_FOUND: ${name} ${what}`)
  }
})

test("refuses an operator's CA that cannot sign before it reads anything", () => {
  const cn = ['--cn', 'old', '--out', 'ca.crt', '--key-out', 'ca.key']
  expect(kcert(['ca', 'init', ...cn], { cwd: folder }).exit).toBe(0)
  expect(kcert(['key', 'generate', '--out', 'other.key'], { cwd: folder }).exit).toBe(0)
  const { stderr, exit } = rotateCa('--phase', '1', '--ca-cert', 'ca.crt', '--ca-key', 'other.key')
  expect(stderr).toContain('KCERT_CA_UNFIT')
  expect(exit).toBe(3)
})

test('does not overwrite an existing evidence file, and never the inventory', () => {
  mkdirSync(join(folder, 'lab'), { recursive: true })
  writeFileSync(join(folder, 'evidence.json'), '{}')
  const existing = rotateCa('verify', '--evidence', 'evidence.json')
  expect([existing.exit, existing.stderr]).toEqual([5, expect.stringContaining('KCERT_FILE_EXISTS')])
  writeFileSync(join(folder, 'lab/kcert.yaml'), '')
  const own = rotateCa('verify', '--inventory', 'lab/kcert.yaml', '--evidence', 'lab/kcert.yaml', '--force')
  expect([own.exit, own.stderr]).toEqual([5, expect.stringContaining('--inventory')])
})

test.each([
  ['a serving certificate that has expired', 'KCERT_API_CERT_EXPIRED'],
  ['a CA of the kubeconfig that has expired', 'KCERT_API_CERT_EXPIRED'],
  ['a client certificate that has expired', 'KCERT_API_CLIENT_EXPIRED'],
  ['a serving certificate of another CA', 'KCERT_API_UNTRUSTED'],
])('%s: advises a recovery only where a certificate has expired', async (what, code) => {
  const past = new Date('2026-01-02T00:00:00Z')
  const server = await startApiServer(
    what.startsWith('a serving certificate that') ? { servingNotAfter: past } : {},
  )
  try {
    const name = what.replaceAll(' ', '-')
    const other = testCa('kubernetes', testKey('another'), past).certificate
    const cas = {
      'a CA of the kubeconfig that has expired': expiredCa(server, past),
      'a serving certificate of another CA': certificatePem(other),
    } as Readonly<Record<string, string>>
    const ca = cas[what]
    const cluster =
      ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }
    const user = what.startsWith('a client') ? { username: 'ann', notAfter: past } : undefined
    const kubeconfig = server.writeKubeconfig(join(folder, name), user, cluster)
    const node = '{name: cp1, role: control-plane, addresses: [192.0.2.1], layout: kubeadm}'
    const access = "access: {by: command, argv: ['false']}"
    writeFileSync(
      join(folder, `${name}.yaml`),
      `apiVersion: kcert/v1\nkind: Inventory\n${access}\nnodes: [${node}]\n`,
    )
    const { stderr, exit } = await kcertBeside(['rotate-ca', 'plan', '--inventory', `${name}.yaml`], {
      cwd: folder,
      stdin: '',
      env: { KUBECONFIG: kubeconfig },
    })
    expect(exit).not.toBe(0)
    expect(stderr).toContain(`${code}:`)
    expect(stderr.includes(`kcert rotate-ca recover --inventory ${name}.yaml --dry-run`)).toBe(
      code !== 'KCERT_API_UNTRUSTED',
    )
  } finally {
    await server.close()
  }
})

/** The server's own CA, with a notAfter in the past. */
function expiredCa({ signingCa: { certificate, key } }: FakeApiServer, notAfter: Date): string {
  const der = issueCertificate(
    {
      serialNumber: '07',
      subject: certificate.subject,
      issuer: certificate.subject,
      notBefore: new Date(notAfter.getTime() - 86_400_000),
      notAfter,
      publicKey: key,
      keyUsage: ['keyCertSign'],
      basicConstraints: { ca: true },
      ...(certificate.subjectKeyId === undefined ? {} : { subjectKeyId: certificate.subjectKeyId }),
    },
    key,
  )
  return certificatePem(der)
}
