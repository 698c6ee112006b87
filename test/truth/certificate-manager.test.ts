import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { PairStore } from '../../src/kubelet/pair-store.ts'
import { rotationDeadlineMs } from '../../src/kubelet/schedule.ts'
import { type HeldCertificate, templateOf, unmetBy } from '../../src/kubelet/template.ts'
import { pairFiles } from '../../src/system/pair-files.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { generatePrivateKey, writePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'
import { recorded } from './recorded.ts'

// The cases of client-go's certificate manager and its file store.

interface Names {
  readonly cn?: string
  readonly o?: string[]
  readonly dns?: string[]
  readonly ip?: string[]
}

interface Truth {
  readonly deadlines: readonly {
    id: string
    notBefore: number
    notAfter: number
    fixedFraction: number
    deadline: number
    dueNow: boolean
  }[]
  readonly template: readonly { id: string; cert: Names | null; template: Names | null; satisfies: boolean }[]
  readonly store: readonly { case: string; want: string }[]
}

const truth = recorded<Truth>('rotation-deadline.json')
const nowMs = Date.parse('2026-11-21T22:00:00Z')

describe.runIf(truth)('rotation deadlines of client-go', () => {
  // The smallest possible draw: 70 %.
  test.each(truth?.deadlines ?? [])('$id', ({ notBefore, notAfter, deadline, dueNow }) => {
    const validity = { notBeforeMs: nowMs + notBefore * 1000, notAfterMs: nowMs + notAfter * 1000 }
    const foundMs = rotationDeadlineMs(validity, () => 0)
    expect(foundMs - nowMs).toBeCloseTo(deadline * 1000, 3)
    expect(foundMs <= nowMs).toBe(dueNow)
  })
})

test('10,000 deadlines are between 70 and 90 % of the lifetime, and their mean is 80 %', () => {
  const validity = { notBeforeMs: nowMs, notAfterMs: nowMs + 365 * 86_400_000 }
  const life = validity.notAfterMs - validity.notBeforeMs
  const drawn = Array.from(
    { length: 10_000 },
    () => (rotationDeadlineMs(validity, Math.random) - validity.notBeforeMs) / life,
  )
  expect(Math.min(...drawn)).toBeGreaterThanOrEqual(0.7)
  expect(Math.max(...drawn)).toBeLessThan(0.9)
  expect(drawn.reduce((sum, one) => sum + one, 0) / drawn.length).toBeCloseTo(0.8, 2)
})

describe.runIf(truth)('templates of client-go', () => {
  test.each(truth?.template ?? [])('$id', ({ cert, template, satisfies }) => {
    const held: HeldCertificate | undefined = cert
      ? { ...templateOf(named(cert)), notBeforeMs: nowMs, notAfterMs: nowMs + 1000 }
      : undefined
    expect(unmetBy(held, template ? templateOf(named(template)) : undefined) === undefined).toBe(satisfies)
  })
})

function named({ cn = '', o = [], dns = [], ip = [] }: Names) {
  return { commonName: cn, organization: o, dns, ip }
}

describe('the file store of client-go', () => {
  let folder: string
  let store: PairStore
  const now = new Date(2026, 10, 21, 22, 0, 0)
  const at = (name: string): string => join(folder, name)
  const first = makePair('first')
  const second = makePair('second')

  beforeAll(() => {
    // Fails when a case is missing here or in the recording.
    expect(truth === undefined || truth.store.length === Object.keys(cases).length).toBe(true)
  })
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kcert-store-'))
    folders.push(folder)
    store = new PairStore({ folder, prefix: 'kubelet-client' }, pairFiles())
  })
  const folders: string[] = []
  afterAll(() => {
    for (const one of folders) rmSync(one, { recursive: true })
  })

  const cases: Readonly<Record<string, () => void>> = {
    'update-symlink: a plain file sits at <prefix>-current.pem': () => {
      writeFileSync(at('kubelet-client-current.pem'), first.pem)
      expect(() => store.update(second.chain, second.key, now)).toThrow(/not a symbolic link/)
      expect(readFileSync(at('kubelet-client-current.pem'), 'utf8')).toBe(first.pem)
    },
    'update-symlink: target file absent': () => {
      store.update(first.chain, first.key, now)
      // The disk removes the new pair before the link is created.
      const lossy = new PairStore(
        { folder, prefix: 'kubelet-client' },
        {
          ...pairFiles(),
          writeNew: () => {
            throw new Error('no space left on device')
          },
        },
      )
      expect(() => lossy.update(second.chain, second.key, now)).toThrow('no space')
      expect(store.current()?.pair.chain[0].subject.commonName).toBe('first')
    },
    'update-symlink: no current link yet': () => {
      store.update(first.chain, first.key, now)
      expect(store.current()?.path).toBe(at('kubelet-client-current.pem'))
      expect(readFileSync(at('kubelet-client-2026-11-21-22-00-00.pem'), 'utf8')).toBe(first.pem)
    },
    'update-symlink: current link exists': () => {
      store.update(first.chain, first.key, now)
      store.update(second.chain, second.key, now)
      expect(readFileSync(at('kubelet-client-current.pem'), 'utf8')).toBe(second.pem)
      expect(readFileSync(at('kubelet-client-2026-11-21-22-00-00.pem'), 'utf8')).toBe(first.pem)
    },
    'load combined file (cert+key)': () => {
      writeFileSync(at('kubelet-client-current.pem'), first.pem)
      expect(store.current()?.pair.chain[0].subject.commonName).toBe('first')
    },
    'update without rotation dir content': () => {
      const deep = new PairStore({ folder: at('a/b'), prefix: 'kubelet-client' }, pairFiles())
      expect(deep.update(first.chain, first.key, now).path).toBe(
        at('a/b/kubelet-client-2026-11-21-22-00-00.pem'),
      )
      expect(deep.current()?.pair.chain).toHaveLength(1)
    },
    'update over an existing pair': () => {
      writeFileSync(at('kubelet-client-2020-01-01-00-00-00.pem'), first.pem)
      symlinkSync('kubelet-client-2020-01-01-00-00-00.pem', at('kubelet-client-current.pem'))
      store.update(second.chain, second.key, now)
      expect(store.current()?.pair.chain[0].subject.commonName).toBe('second')
    },
    'update with two certificates (chain)': () => {
      store.update(first.chain + second.chain, first.key, now)
      const chain = store.current()!.pair.chain
      expect(chain.map(({ subject }) => subject.commonName)).toEqual(['first', 'second'])
    },
    'update with bad certificate data (bytes 00 00)': () => {
      const bad = writePem('CERTIFICATE', Buffer.from([0, 0]))
      expect(() => store.update(bad, first.key, now)).toThrow(/does not contain a matching/)
      expect(store.current()).toBeUndefined()
    },
    'current from pair file / crt+key files / two-cert chain': () => {
      writeFileSync(at('kubelet-client.crt'), first.chain + second.chain)
      writeFileSync(at('kubelet-client.key'), first.key)
      expect(store.current()?.pair.chain).toHaveLength(2)
      mkdirSync(at('beside'))
      writeFileSync(at('beside/tls.crt'), second.chain)
      writeFileSync(at('beside/tls.key'), second.key)
      const beside = { certificate: at('beside/tls.crt'), key: at('beside/tls.key') }
      const other = new PairStore({ folder, prefix: 'kubelet-client', beside }, pairFiles())
      expect(other.current()?.pair.chain[0].subject.commonName).toBe('second')
    },
    'current with no files': () => expect(store.current()).toBeUndefined(),
    'recover: current missing, updated symlink present': () => {
      writeFileSync(at('kubelet-client-2020-01-01-00-00-00.pem'), first.pem)
      symlinkSync(at('kubelet-client-2020-01-01-00-00-00.pem'), at('kubelet-client-updated.pem'))
      store.recover()
      expect(store.current()?.path).toBe(at('kubelet-client-current.pem'))
    },
    'recover: updated exists but is a plain file': () => {
      writeFileSync(at('kubelet-client-updated.pem'), first.pem)
      expect(() => store.recover()).toThrow(/not a symbolic link/)
    },
  }

  test.each(Object.entries(cases))('%s', (name, prove) => {
    if (truth) expect(truth.store.map((one) => one.case)).toContain(name)
    prove()
  })
})

function makePair(commonName: string) {
  const key = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
  const der = issueCertificate(
    {
      serialNumber: '01',
      subject: { commonName },
      issuer: { commonName },
      notBefore: new Date('2026-01-01T00:00:00Z'),
      notAfter: new Date('2027-01-01T00:00:00Z'),
      publicKey: key,
    },
    key,
  )
  const pem = { chain: writePem('CERTIFICATE', der), key: writePrivateKey(key, 'kubernetes') }
  return { ...pem, pem: pem.chain + pem.key }
}
