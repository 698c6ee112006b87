import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { IssuanceLog, type IssuanceLogStore } from './issuance-log.ts'
import { issueRoot } from './root.ts'

const now = new Date('2026-11-21T09:00:00Z')
const key = generateKeyPairSync('ed25519').privateKey
const certificate = (serialNumber: string, commonName = 'ca') =>
  issueRoot({ subject: { commonName, organization: ['Käse'] }, ttlMs: 86_400_000 }, key, now, serialNumber)

class MemoryStore implements IssuanceLogStore {
  readonly name = 'ca.issuance-log.jsonl'
  text: string

  constructor(text = '') {
    this.text = text
  }

  read(): Uint8Array {
    return Buffer.from(this.text)
  }

  append(bytes: Uint8Array): void {
    this.text += Buffer.from(bytes).toString('utf8')
  }

  cut(length: number): void {
    this.text = Buffer.from(this.text).subarray(0, length).toString('utf8')
  }
}

const counting = (from: number) => (count: number) => new Uint8Array(count).fill(from++)

test('records a signed certificate as one line of JSON', () => {
  const store = new MemoryStore()
  const signed = certificate('0abc')
  new IssuanceLog(store).record([signed], now)
  expect(store.text.endsWith('\n')).toBe(true)
  expect(JSON.parse(store.text)).toEqual({
    serialNumber: '0abc',
    subject: 'CN=ca,O=Käse',
    issuer: signed.issuer.text,
    notBefore: '2026-11-21T08:55:00Z',
    notAfter: '2026-11-22T08:55:00Z',
    fingerprintSha256: signed.fingerprintSha256,
    issuedAt: '2026-11-21T09:00:00Z',
  })
})

test('escapes every character that could hide or move text', () => {
  const store = new MemoryStore()
  const name = 'a\u0000\u009b31m\u202eb\u200b\u2800\u{e0041}é'
  new IssuanceLog(store).record([certificate('0a', name)], now)
  expect(store.text).toContain('"subject":"CN=a\\\\00\\u009b31m\\u202eb\\u200b\\u2800\\udb40\\udc41é,O=Käse"')
  expect((JSON.parse(store.text) as { subject: string }).subject).toBe(
    `CN=${name.replace('\0', '\\00')},O=Käse`,
  )
})

test('never draws a serial number that is in the log, in any spelling', () => {
  const [upper, padded] = ['0A'.repeat(16), `00${'0b'.repeat(16)}`]
  const store = new MemoryStore(`{"serialNumber":"${upper}"}\n\n{"serialNumber":"${padded}"}\n`)
  expect(new IssuanceLog(store).draw(counting(10))).toBe('0c'.repeat(16))
})

test('never draws a serial number twice before it is recorded, nor that of the CA', () => {
  const issuanceLog = new IssuanceLog(new MemoryStore())
  const repeating = [1, 1, 2, 3]
  const random = (count: number) => new Uint8Array(count).fill(repeating.shift()!)
  const ca = certificate('02'.repeat(16))
  expect([issuanceLog.draw(random, ca), issuanceLog.draw(random, ca)]).toEqual([
    '01'.repeat(16),
    '03'.repeat(16),
  ])
})

test('removes a last line that a crash cut short, and keeps the others', () => {
  const whole = '{"serialNumber":"01"}\n'
  const store = new MemoryStore(`${whole}{"serialNumber":"02","subj`)
  new IssuanceLog(store)
  expect(store.text).toBe(whole)
})

test.each(['{"serialNumber":"02","subj', '{"seri', '{'])(
  'removes "%s", the beginning of an entry',
  (torn) => {
    const store = new MemoryStore(torn)
    new IssuanceLog(store)
    expect(store.text).toBe('')
  },
)

test.each(['-----BEGIN CERTIFICATE-----', 'my only copy', '{"other":1}'])(
  'does not change a file with other content ("%s"), although its last line has no newline',
  (text) => {
    const store = new MemoryStore(text)
    expect(() => new IssuanceLog(store)).toThrow(
      'line 1 of the issuance log ca.issuance-log.jsonl is not an entry',
    )
    expect(store.text).toBe(text)
  },
)

test('accepts a complete last line without a newline, and appends the newline', () => {
  const store = new MemoryStore(`{"serialNumber":"${'07'.repeat(16)}"}`)
  const issuanceLog = new IssuanceLog(store)
  expect(issuanceLog.draw(counting(7))).toBe('08'.repeat(16))
  issuanceLog.record([certificate('05')], now)
  expect(store.text.split('\n')).toHaveLength(3)
})

test.each([
  'nonsense',
  '{}',
  '{"serialNumber":7}',
  '{"serialNumber":"xyz"}',
  `{"serialNumber":"${'a'.repeat(41)}"}`,
  '[]',
  'null',
])('draws no serial number when a line other than the last is %s', (line) => {
  const open = () =>
    new IssuanceLog(new MemoryStore(`{"serialNumber":"01"}\n${line}\n{"serialNumber":"02"}\n`))
  expect(open).toThrow('line 2 of the issuance log ca.issuance-log.jsonl is not an entry')
})

test('returns no certificate when the log cannot be written', () => {
  const store = new MemoryStore()
  store.append = () => {
    throw new Error('disk full')
  }
  expect(() => new IssuanceLog(store).record([certificate('01')], now)).toThrow('disk full')
})
