import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { folder, folderWithCa, inFolder, openssl, opensslRequest } from './ca-files.ts'
import { temporaryFolder } from './temporary-folder.ts'

// A message names the file, flag or member that is wrong, and its next step works.

const signingCa = ['--ca', 'ca.pem', '--ca-key', 'ca-key.pem']
const user = ['--user', 'ann', '--key-out', 'ann.key']
const client = 'kubernetes.io/kube-apiserver-client'

const place = temporaryFolder('messages')

// A CA, a.csr and a.key, and the other files that the command lines below name.
beforeAll(() => {
  const at = place
  inFolder(at)(['ca', 'init', '--cn', 'signer', '--out', 'ca.pem', '--key-out', 'ca-key.pem'])
  opensslRequest(at, 'a')
  opensslRequest(at, 'b')
  const { stdout } = spawnSync('cat', ['a.csr', 'b.csr'], { cwd: at, encoding: 'utf8' })
  writeFileSync(join(at, 'two.csr'), stdout)
  writeFileSync(join(at, 'pw'), 'wrong\n')
  writeFileSync(join(at, 's.json'), '{"CN":"x","ca":{"expiry":"foo"}}')
  const user = 'client-certificate-data: aGVsbG8=, client-key-data: aGVsbG8='
  writeFileSync(
    join(at, 'admin.conf'),
    `apiVersion: v1\nkind: Config\nusers: [{name: u, user: {${user}}}]\ncontexts: [{name: u, context: {user: u}}]\ncurrent-context: u\n`,
  )
  writeFileSync(join(at, 'k.yaml'), 'kind: ClusterConfiguration\n')
  openssl(at, 'genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', 'rsa.key')
  openssl(at, 'ecparam', '-name', 'secp256k1', '-genkey', '-noout', '-out', 'koblitz.key')
  openssl(at, 'pkcs8', '-topk8', '-in', 'a.key', '-passout', 'pass:right', '-out', 'locked.key')
})

test.each([
  ...['a/b', '..', '.', 'a%b'].map((name): [string[], number, string] => [
    ['csr', 'create', ...user, '--name', name, '-o', 'manifest'],
    3,
    `request "${name}" for signer ${client} would be refused: "${name}" `,
  ]),
  [['inspect', 'ca.pem', '--ouput', 'json'], 2, 'unknown flag: --ouput\nwhy: did you mean "--output"?'],
  [['--hepl'], 2, 'unknown command "--hepl"\nnext: kcert --help'],
  [
    ['csr', 'check', 'a.csr'],
    2,
    '--signer is missing\nwhy: the rules depend on the signer\nnext: kcert csr check ',
  ],
  [['csr', 'check', 'ca.pem'], 2, 'ca.pem contains no CSR\nwhy: it contains CERTIFICATE'],
  [['csr', 'check', 'two.csr', '--signer', client], 2, 'two.csr contains 2 CSRs, and an object has one'],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'a.key', '--usage', 'bogus'],
    2,
    '--usage has no effect here\nwhy: it applies to the Kubernetes object (-o manifest) only',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'a.key', '--expiration-seconds', '5', '-o', 'cfssl'],
    2,
    '--expiration-seconds has no effect here',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'a.key', '--node-name', 'y'],
    2,
    '--node-name has no effect here\nwhy: it applies to the certificates of a control plane (--kubeadm NAME) only',
  ],
  [
    ['csr', 'create', '--service', 'web', '--key', 'a.key'],
    2,
    'next: kcert csr create --key a.key --service web.NAMESPACE',
  ],
  [['csr', 'create', ...user, '--cluster-domain', 'x'], 2, '--cluster-domain has no effect here'],
  [
    ['csr', 'create', '--kubeadm', 'all', '--key', 'a.key', '--cert-dir', '.', '--kubeconfig-dir', '.'],
    2,
    '--key cannot be used with --kubeadm all',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'a.key', '--dns', `${'a'.repeat(64)}.example.com`],
    2,
    'has a label of more than 63 characters',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'a.key', '--dns', '10.0.0.999'],
    2,
    '--dns "10.0.0.999" ends in a number, so clients read it as an IP address',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'a.key', '--ip', '10.0.0.999'],
    2,
    '--ip "10.0.0.999" is not an IP address\n$',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key-out', 'k', '--key-type', 'RSA-2048', '--key-format', 'sec1'],
    2,
    'fix: use pkcs8, or kubernetes for the formats that its own tools write',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'koblitz.key'],
    3,
    'koblitz.key: EC key on curve secp256k1 is not supported\nwhy: Kubernetes supports RSA, ECDSA',
  ],
  [
    ['csr', 'create', ...user, '--signer', 'kubernetes.io/bogus', '-o', 'manifest'],
    3,
    'would wait forever: "kubernetes.io/bogus" is not a signer of Kubernetes, and its domain is reserved for Kubernetes\nwhy: the API server accepts the object, but no signer signs it',
  ],
  [['csr', 'create', '--cn', 'x', '--key', 'a.csr'], 3, 'a.csr: no private key found'],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'locked.key', '--password-file', 'pw'],
    3,
    'locked.key: the password does not open the private key\nwhy: the password is the first line of the password file',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'locked.key'],
    2,
    'the private key locked.key is encrypted, and no password was given\nwhy: give a file whose first line is the password with --password-file',
  ],
  [
    [
      ...['csr', 'create', '--kubeadm', 'admin.conf', '--advertise-address', '10.0.0.1'],
      ...['--kubeconfig-dir', '.', '--ca-cert', 'ca-key.pem'],
    ],
    3,
    'ca-key.pem: no certificate found',
  ],
  [
    ['ca', 'init', '--cn', 'x', '--key', 'locked.key', '--password-file', 'pw', '--out', 'x.pem'],
    3,
    'locked.key: the password does not open the private key\nwhy: the password is the first line of the password file',
  ],
  [
    ['ca', 'init', '--cn', 'x', '--key', 'locked.key', '--out', 'x.pem'],
    2,
    'no password was given\nwhy: give a file whose first line is the password with --password-file',
  ],
  [
    ['ca', 'init', '--cn', 'x', '--out', 'x.pem', '--key-out', 'x.key', '--expiry', 'foo'],
    2,
    'KCERT_USAGE: --expiry "foo" is not a duration',
  ],
  [
    ['ca', 'init', '--cfssl', 's.json', '--out', 'x.pem', '--key-out', 'x.key'],
    2,
    'KCERT_CFSSL_INVALID: the cfssl request is invalid: ca.expiry: "foo" is not a duration',
  ],
  [
    ['ca', 'sign', 'a.csr', ...signingCa, '--usage', 'server auth', '--duration', 'foo', '--out', '-'],
    2,
    '--duration "foo" is not a duration',
  ],
  [
    ['ca', 'sign', '-', ...signingCa, '--profile', 'server', '--out', '-'],
    3,
    'standard input contains no certificate request',
  ],
  [['ca', 'init', '--cfssl', '-', '--out', 'x.pem', '--key-out', 'k'], 2, 'add "CN" to the JSON\n'],
  [
    ['key', 'generate', '--out', 'k', '--key-type', 'RSA-2049'],
    2,
    'RSA keys from 2048 to 4096 bits whose length is a multiple of 8',
  ],
  [['completion'], 2, 'SHELL is missing\nwhy: it is a shell: bash, zsh or fish\n'],
  [['csr', 'check', '--usage', 'client auth'], 2, 'REQUEST is missing\nwhy: it is a CSR in PEM or DER'],
  [['ca', 'bundle', 'a.csr'], 3, 'next: kcert inspect a.csr'],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'admin.conf'],
    3,
    'KCERT_X509_MALFORMED: admin.conf is a kubeconfig, not a private key\nwhy: its private key is in client-key-data, in base64\nnext: (umask 077; kubectl config view ',
  ],
  [
    ['kubeconfig', 'set-client', 'admin.conf', '--cert', 'admin.conf', '--key', 'a.key'],
    3,
    'KCERT_X509_MALFORMED: admin.conf is a kubeconfig, not a certificate\nwhy: its certificate is in client-certificate-data, in base64\nnext: (umask 077; kubectl config view ',
  ],
  [
    ['ca', 'renew', ...signingCa, '--force', '--out', 'absent/x.pem'],
    4,
    '^KCERT_FILE_NOT_WRITTEN: absent/x.pem',
  ],
] as [string[], number, string][])('%j: exit %i', (args, exit, words) => {
  const before = readdirSync(place)
  const run = inFolder(place)(args, args.includes('--cfssl') ? '{}' : 'nothing')
  expect(run.stderr).toMatch(pattern(words))
  expect(run.stderr).not.toMatch(/Note: /)
  expect([run.exit, run.stdout]).toEqual([exit, ''])
  // A used serial number stays recorded. Nothing else is left behind.
  expect(readdirSync(place)).toEqual(before)
})

/** Matches the words literally, except for ^ at the beginning and $ at the end. */
function pattern(words: string): RegExp {
  const [, begin, text, end] = /^(\^?)([\s\S]*?)(\$?)$/.exec(words)!
  return new RegExp(begin + RegExp.escape(text!) + end)
}

test('names the files of an expired CA in the message and in the next step', () => {
  const place = folderWithCa('--expiry', '5m1s')
  opensslRequest(place, 'a')
  const run = inFolder(place)
  const deadline = Date.now() + 60_000
  const sign = () =>
    run(['ca', 'sign', 'a.csr', ...signingCa, '--profile', 'server', '--out', 'a.pem', '--force'])
  let signed = sign()
  while (signed.exit === 0 && Date.now() < deadline) signed = sign()
  expect(signed.exit).toBe(3)
  expect(signed.stderr).toMatch(/^KCERT_CA_UNFIT: the CA ca\.pem has expired, /)
  expect(signed.stderr).toContain('next: kcert ca renew --ca ca.pem --ca-key ca-key.pem')
  const renewed = run(['ca', 'renew', ...signingCa, '--days', '30'])
  expect(renewed.exit).toBe(0)
  expect(renewed.stderr).toMatch(
    /^note: the old certificate expired at \d{4}-.*: clients do not trust the CA until/,
  )
  expect(renewed.stderr).not.toMatch(/trust it until|before the old one expires/)
})

test('says that Kubernetes does not read the key or signature of a request', () => {
  const place = folder()
  openssl(place, 'genpkey', '-algorithm', 'ed448', '-out', 'ed448.key')
  openssl(place, 'req', '-new', '-key', 'ed448.key', '-subj', '/CN=x', '-out', 'ed448.csr')
  const { stdout, exit } = inFolder(place)(['csr', 'check', 'ed448.csr', '--signer', client])
  expect(exit).toBe(3)
  expect(stdout).toContain('request-form        PKCS#10 request for the key Ed448\n')
  expect(stdout).toContain('request-signature   Kubernetes does not support its algorithm\n')
  expect(stdout).toContain('fix: create a key and a request that Kubernetes supports\n')
  expect(stdout).toContain('key-strength       Kubernetes does not support Ed448 keys\n')
})

test('reports that a label of more than 63 characters is not a DNS name to an approver as well', () => {
  const place = folder()
  opensslRequest(place, 'a', '-addext', `subjectAltName=DNS:${'a'.repeat(64)}.example.com`)
  const { stdout, exit } = inFolder(place)(['csr', 'check', 'a.csr', '--signer', 'example.com/serving'])
  expect(exit).toBe(3)
  expect(stdout).toMatch(/NO {2}plain-names {8}"a{64}\.example\.com" is not a DNS name/)
})
