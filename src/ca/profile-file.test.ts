import { expect, test } from 'vitest'
import { readProfile } from './profile-file.ts'

const hour = 3_600_000

// The content of the example in the Kubernetes documentation (managing-tls-in-a-cluster).
const servingConfig = {
  signing: {
    default: {
      usages: ['digital signature', 'key encipherment', 'server auth'],
      expiry: '876000h',
      ca_constraint: { is_ca: false },
    },
  },
}

const own = `
apiVersion: kcert/v1
kind: SigningProfiles
default:
  usages: [digital signature, server auth]
profiles:
  client:
    usages:
      - digital signature
      - client auth
    duration: 24h
    backdate: 1m
    ocsp_url: http://ocsp.example.com
    issuer_urls: [http://example.com/ca.crt]
`

const read = (config: object | string, name?: string) =>
  readProfile(typeof config === 'string' ? config : JSON.stringify(config), 'config', name)

test('reads the cfssl configuration of the documentation unchanged, including its hundred years', async () => {
  expect(await read(servingConfig)).toEqual({
    usages: ['digital signature', 'key encipherment', 'server auth'],
    ttlMs: 876_000 * hour,
    backdateMs: 5 * 60_000,
    subjectAttributes: [],
    ocspUrls: [],
    issuerUrls: [],
    crlUrls: [],
  })
})

test('a named cfssl profile without URLs takes those of the default, and its auth_key is ignored', async () => {
  const config = {
    signing: {
      default: { expiry: '168h', crl_url: 'http://example.com/crl', ocsp_url: 'http://a' },
      profiles: {
        www: {
          expiry: '8760h',
          usages: ['signing', 's/mime'],
          auth_key: 'k',
          ocsp_url: 'http://b',
          backdate: '1h',
        },
      },
    },
    auth_keys: { k: { type: 'standard', key: '00' } },
  }
  expect(await read(config, 'www')).toEqual({
    usages: ['signing', 's/mime'],
    ttlMs: 8760 * hour,
    backdateMs: hour,
    subjectAttributes: [],
    ocspUrls: ['http://b'],
    issuerUrls: [],
    crlUrls: ['http://example.com/crl'],
  })
})

test('the YAML format of kcert has a default of 8760h', async () => {
  expect((await read(own)).ttlMs).toBe(8760 * hour)
  expect(await read(own, 'client')).toMatchObject({
    usages: ['digital signature', 'client auth'],
    ttlMs: 24 * hour,
    backdateMs: 60_000,
    ocspUrls: ['http://ocsp.example.com'],
    issuerUrls: ['http://example.com/ca.crt'],
  })
})

test.each([
  ['a profile that is not there', own, 'server', 'config has no profile "server"'],
  ['a name of Object.prototype', own, 'constructor', 'config has no profile "constructor"'],
  ['no default', 'profiles: {}', undefined, 'config has no default profile'],
  [
    'a misspelt member',
    'default: {usages: [any], duratoin: 1h}',
    undefined,
    'config: default has an unknown field "duratoin"',
  ],
  ['a misspelt section', 'defaults: {}', undefined, 'config has an unknown field "defaults"'],
  ['no usages', 'default: {duration: 1h}', undefined, 'config: default has no usages'],
  [
    'an unknown usage',
    'default: {usages: [server auth, fly]}',
    undefined,
    'config: default has the unknown usage "fly"',
  ],
  [
    'no duration',
    'default: {usages: [any], duration: soon}',
    undefined,
    'config: default: duration: "soon" is not a duration',
  ],
  [
    'a duration of nothing',
    'default: {usages: [any], duration: 0h}',
    undefined,
    'config: default has a validity that is not positive',
  ],
  [
    'a begin in the future',
    'default: {usages: [any], backdate: -1h}',
    undefined,
    'config: default has a negative backdate',
  ],
  ['a list', '[]', undefined, 'config is not a file of signing profiles'],
  ['nothing', '', undefined, 'config is not a file of signing profiles'],
  ['broken JSON', '{"signing": {', undefined, 'config is not a file of signing profiles'],
  ['depth', '{"a":'.repeat(5000), undefined, 'config is not a file of signing profiles'],
  [
    'growth by aliases',
    `a: &a [x, x]\nb: &b [${'*a,'.repeat(999)}*a]\nc: &c [${'*b,'.repeat(999)}*b]\nd: [${'*c,'.repeat(999)}*c]`,
    undefined,
    'config is not a file of signing profiles',
  ],
])('refuses %s', async (_, text, name, message) => {
  await expect(read(text, name)).rejects.toThrow(message)
})

test.each([
  [{ ca_constraint: { is_ca: true } }, 'is for CA certificates'],
  [{ copy_extensions: true }, '"copy_extensions"'],
  [{ name_whitelist: '^a' }, '"name_whitelist"'],
  [{ remote: 'server' }, '"remote"'],
  [{ not_after: '2030-01-01T00:00:00Z' }, '"not_after"'],
  [{ ct_log_servers: ['http://x'] }, '"ct_log_servers"'],
  [{ lint_error_level: 3 }, '"lint_error_level"'],
  [{ expiry: '' }, 'has no "expiry"'],
])('refuses the cfssl field %j instead of ignoring it', async (member, message) => {
  const config = { signing: { default: { usages: ['any'], expiry: '1h', ...member } } }
  await expect(read(config)).rejects.toThrow(message)
})

test('ignores cfssl fields that have no effect', async () => {
  const unused = {
    copy_extensions: false,
    ct_log_servers: [],
    name_whitelist: '',
    lint_error_level: 0,
    _comment: 'x',
  }
  const config = { signing: { default: { usages: ['any'], expiry: '1h', ...unused } } }
  expect((await read(config)).ttlMs).toBe(hour)
})

test('reads subjectAttributes from the profile or the default, and refuses unsupported attributes', async () => {
  const withAttributes = `${own.replace('default:', 'default:\n  subjectAttributes: [OU, C]')}    subjectAttributes: [L]\n`
  expect((await read(withAttributes)).subjectAttributes).toEqual(['OU', 'C'])
  expect((await read(withAttributes, 'client')).subjectAttributes).toEqual(['L'])
  await expect(read(withAttributes.replace('[L]', '[emailAddress]'), 'client')).rejects.toMatchObject({
    code: 'KCERT_PROFILE_INVALID',
    message: 'config: profile client allows the subject attribute "emailAddress"',
    why: expect.stringContaining('OU'),
  })
})
