import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { client, createCa, type Issued, issued, sessionTime } from '../../test/scripts/small-pki.ts'
import type { UnseenForm } from '../inspection/entries.ts'
import { Certificate } from '../x509/certificate.ts'
import type { CertificateInput } from './input.ts'
import { type VerificationReport, verificationReportSchema } from './report.ts'
import { type VerificationOptions, verify } from './verification.ts'

const ca = createCa('kubernetes')
const namesake = createCa('kubernetes')
const issuing = issued(
  { subject: { commonName: 'issuing' }, basicConstraints: { ca: true }, keyUsage: ['keyCertSign'] },
  ca,
)
const server = issued(
  {
    subject: { commonName: 'kube-apiserver' },
    extendedKeyUsage: ['serverAuth'],
    subjectAltNames: { dns: ['kubernetes'], ip: ['10.96.0.1'] },
  },
  issuing,
)

function input(source: string, ...some: readonly Issued[]): CertificateInput {
  const entry = (i: number) => (some.length === 1 ? '' : `certificate ${i + 1}`)
  return {
    certificates: some.map(({ der }, i) => ({
      source,
      entry: entry(i),
      certificate: Certificate.parse(der),
    })),
    unreadable: [],
    isKubeconfig: false,
  }
}

const now = new Date(sessionTime)

function report(
  leaf: CertificateInput,
  roots: readonly CertificateInput[],
  options: Partial<VerificationOptions> = {},
): VerificationReport {
  const made = verify({ leaf, roots, intermediates: [] }, { now, at: now, purpose: 'server', ...options })
  // Every report matches the contract in every field.
  return v.parse(v.strictObject(verificationReportSchema.entries), made)
}

describe('a report', () => {
  test('of a trusted chain names the location of each certificate, and the end of its validity', () => {
    const { trusted, chains, trustedUntil, user, code } = report(input('server.crt', server, issuing), [
      input('bundle.crt', namesake, ca),
    ])
    expect({ trusted, trustedUntil, user, code }).toEqual({
      trusted: true,
      trustedUntil: '2027-12-31T00:00:00Z',
      user: undefined,
      code: undefined,
    })
    expect(chains).toEqual([
      [
        expect.objectContaining({ source: 'server.crt', entry: 'certificate 1' }),
        expect.objectContaining({ source: 'server.crt', entry: 'certificate 2' }),
        expect.objectContaining({
          source: 'bundle.crt',
          entry: 'certificate 2',
          fingerprintSha256: expect.any(String),
        }),
      ],
    ])
  })

  test('of a leaf with several chains is valid until the last of them expires', () => {
    const soon = new Date('2027-03-01T00:00:00Z')
    const [shortLived, longLived] = [createCa('short-lived'), createCa('long-lived')]
    const crossSigned = (by: Issued, notAfter: Date): Issued =>
      issued(
        { subject: issuing.subject, publicKey: issuing.key, basicConstraints: { ca: true }, notAfter },
        by,
      )
    const sent = [crossSigned(shortLived, soon), crossSigned(longLived, new Date('2027-06-01T00:00:00Z'))]
    const { chains, trustedUntil } = report(input('server.crt', server, ...sent), [
      input('roots.crt', shortLived, longLived),
    ])
    expect([chains.length, trustedUntil]).toEqual([2, '2027-06-01T00:00:00Z'])
  })

  test('of a root that was also sent shows its location among the roots', () => {
    const { chains } = report(input('server.crt', server, issuing, ca), [input('ca.crt', ca)])
    expect(chains[0]?.at(-1)?.source).toBe('ca.crt')
  })

  test('of a client certificate names the user that an API server authenticates', () => {
    const admin = issued(
      {
        subject: { organization: ['system:masters', 'ops'], commonName: 'admin' },
        extendedKeyUsage: ['clientAuth'],
      },
      ca,
    )
    const { user, warnings } = report(input('admin.crt', admin), [input('ca.crt', ca)], { purpose: 'client' })
    expect([user, warnings]).toEqual([{ name: 'admin', groups: ['ops', 'system:masters'] }, []])
  })

  test('of a client certificate without a common name warns that the API server will respond with 401', () => {
    const nameless = issued({ subject: { organization: ['ops'] }, extendedKeyUsage: ['clientAuth'] }, ca)
    const { trusted, warnings } = report(input('x.crt', nameless), [input('ca.crt', ca)], {
      purpose: 'client',
    })
    expect([trusted, warnings.map(({ code, source }) => [code, source])]).toEqual([
      true,
      [['USER_NAME_MISSING', 'x.crt']],
    ])
    expect(warnings[0]!.message).toContain('system:anonymous or respond with 401')
  })

  const withUids = (...uids: string[]) =>
    issued(
      {
        subject: [
          [{ type: '2.5.4.10', value: 'ops' }],
          [{ type: '2.5.4.3', value: 'ann' }],
          ...uids.map((value) => [{ type: '1.3.6.1.4.1.57683.2', value }]),
        ],
        extendedKeyUsage: ['clientAuth'],
      },
      ca,
    )
  const verified = (leaf: Issued, purpose: 'client' | 'any' = 'client') =>
    report(input('x.crt', leaf), [input('ca.crt', ca)], { purpose })

  test('of a client certificate with a user UID names it, as API servers since 1.33 do', () => {
    expect(verified(withUids('u-1'))).toMatchObject({
      trusted: true,
      user: { name: 'ann', groups: ['ops'], uid: 'u-1' },
      leaf: { subject: { userUids: ['u-1'] } },
    })
  })

  test.each([
    [['u-1', 'u-2'], '2 user UIDs: "u-1", "u-2"', 'expected 1 UID, but found multiple: [u-1 u-2]'],
    [[''], 'an empty user UID', 'UID cannot be an empty string'],
  ])('of a client certificate with the user UIDs %j refuses it, as API servers do', (uids, what, goError) => {
    const refused = verified(withUids(...uids))
    expect(refused).toMatchObject({
      trusted: false,
      chains: [],
      code: 'USER_UID_INVALID',
      reason: expect.stringContaining(what),
      advice: 'reissue it with at most one user UID',
      goError,
    })
    expect(refused.user).toBeUndefined()
    // Only an API server reads the user.
    expect(verified(withUids(...uids), 'any').trusted).toBe(true)
  })

  test('of a refused chain has the code, the certificate at fault, its location, and the fix', () => {
    const { trusted, chains, code, reason, certificate, issuer, path, next, goError } = report(
      input('server.crt', server, issuing),
      [input('old ca.crt', namesake)],
    )
    expect({ trusted, chains, code, reason, next }).toEqual({
      trusted: false,
      chains: [],
      code: 'ISSUER_KEY_OTHER',
      reason:
        '"issuing" was not signed with the key of the CA "kubernetes" in old ca.crt: the signature does not verify',
      next: "kcert inspect server.crt 'old ca.crt' -o tree",
    })
    expect(certificate).toMatchObject({
      source: 'server.crt',
      entry: 'certificate 2',
      subject: { text: 'CN=issuing' },
    })
    expect(issuer).toMatchObject({ source: 'old ca.crt', entry: '' })
    expect(path?.map(({ subject }) => subject.commonName)).toEqual(['kube-apiserver', 'issuing'])
    expect(goError).toMatch(/^x509: certificate signed by unknown authority \(possibly because of/)
  })

  test('quotes a file name with a space in a command', () => {
    const alone = issued({ subject: { commonName: 'alone' } })
    expect(report(input("it's mine.crt", alone), [input('ca.crt', ca)]).next).toContain(
      "--roots 'it'\\''s mine.crt'",
    )
  })

  test('lists the other verifiers by result, and explains differences', () => {
    const { alsoRefusedBy, acceptedBy, differences } = report(input('server.crt', server), [
      input('issuing.crt', issuing),
    ])
    expect({ alsoRefusedBy, acceptedBy }).toEqual({
      alsoRefusedBy: ['openssl', 'node', 'python'],
      acceptedBy: [],
    })
    expect(differences[0]).toEqual({
      verifier: 'openssl',
      accepts: false,
      reason: 'it requires a chain that ends in a self-signed root, and the last CA is not self-signed',
      error: 'unable to get issuer certificate',
    })
  })

  test('warns of an unreadable root, and states the effect on each verifier', () => {
    const message = (purpose: 'server' | 'client', isUnseen: boolean): string | undefined => {
      const member = { source: 'ca.crt', entry: 'certificate 2', reason: 'bad', isUnseen }
      const roots = { ...input('ca.crt', ca), unreadable: [member] }
      return report(input('a.crt', client('a', ca)), [roots], { purpose }).warnings[0]?.message
    }
    const left = 'bad; it was left out, so remove the block or fetch the certificate again'
    expect(message('server', false)).toBe(`${left}, and Go ignores it without an error`)
    expect(message('client', false)).toBe(`${left}, and API servers reject the whole file because of it`)
    expect(message('client', true)).toBe(`${left}, and Go ignores it without an error`)
  })
})

describe('certificates in forms that Go does not find', () => {
  const formed = (one: CertificateInput, ...forms: (UnseenForm | undefined)[]): CertificateInput => ({
    ...one,
    certificates: one.certificates.map((located, i) => ({ ...located, form: forms[i] })),
  })
  const [roots, leafAlone] = [input('ca.crt', ca), input('server.crt', server)]
  const between = input('issuing.crt', issuing)
  const asked = (leaf: CertificateInput, someRoots: CertificateInput, ...intermediates: CertificateInput[]) =>
    verify({ leaf, roots: [someRoots], intermediates }, { now, at: now, purpose: 'server' })

  const sent = input('s.crt', server, issuing)
  const noRoots = 'Go finds no certificate in this, so clients with these roots trust no server'
  const nothing = 'Go finds no certificate in this'

  test.for<
    [
      what: string,
      made: () => VerificationReport,
      hidden: [reason: string, next: string] | undefined,
      acceptedBy: string[],
      warnings: [source: string, entry: string, message: string][],
    ]
  >([
    [
      'a root in DER',
      () => asked(sent, formed(roots, 'DER')),
      ['ca.crt is DER', 'openssl x509 -inform DER -in ca.crt -out ca.crt.new'],
      [],
      [['ca.crt', '', `is DER: ${noRoots}`]],
    ],
    [
      'a root with another label',
      () => asked(sent, formed(roots, 'label')),
      ['ca.crt has a label other than CERTIFICATE', 'openssl x509 -in ca.crt -out ca.crt.new'],
      ['openssl', 'node'],
      [['ca.crt', '', `has a label other than CERTIFICATE: ${noRoots}`]],
    ],
    [
      'a root behind a byte order mark',
      () => asked(sent, formed(roots, 'byte order mark')),
      ['ca.crt begins with a byte order mark', "sed -i '1s/^\\xef\\xbb\\xbf//' ca.crt"],
      ['openssl', 'node'],
      [['ca.crt', '', `begins with a byte order mark: ${noRoots}`]],
    ],
    [
      'an intermediate in DER',
      () => asked(leafAlone, roots, formed(between, 'DER')),
      ['issuing.crt is DER', 'openssl x509 -inform DER -in issuing.crt -out issuing.crt.new'],
      [],
      [['issuing.crt', '', `is DER: ${nothing}`]],
    ],
    [
      'the one behind the leaf',
      () => asked(formed(sent, undefined, 'headers'), roots),
      ['s.crt has PEM headers', 'remove the lines between BEGIN and the first empty line'],
      [],
      [['s.crt', 'certificate 2', 'has PEM headers: Go ignores this certificate']],
    ],
    [
      'the intermediate of two hidden ones that the chain needs',
      () => asked(leafAlone, roots, formed(input('two.crt', namesake, issuing), 'label', 'headers')),
      ['two.crt has PEM headers', 'remove the lines between BEGIN and the first empty line'],
      [],
      [['two.crt', '', `has a label other than CERTIFICATE: ${nothing}`]],
    ],
    [
      'an intermediate that would not help',
      () => asked(leafAlone, input('x.crt', namesake), formed(between, 'DER')),
      undefined,
      [],
      [['issuing.crt', '', `is DER: ${nothing}`]],
    ],
    [
      'a leaf',
      () => asked(formed(leafAlone, 'DER'), roots, between),
      undefined,
      ['openssl', 'node'],
      [['server.crt', '', `is DER: ${nothing}`]],
    ],
    [
      'a leaf whose issuer is missing',
      () => asked(formed(leafAlone, 'DER'), roots),
      undefined,
      [],
      [['server.crt', '', `is DER: ${nothing}`]],
    ],
    [
      'a leaf and the one behind it',
      () => asked(formed(sent, 'DER', 'DER'), roots),
      undefined,
      ['openssl', 'node'],
      [['s.crt', '', `is DER: ${nothing}`]],
    ],
    ['nothing', () => asked(leafAlone, roots, between), undefined, ['openssl', 'node'], []],
  ])('%s', ([, made, hidden, acceptedBy, warnings]) => {
    const { reason, next, acceptedBy: found, alsoRefusedBy, differences, warnings: all } = made()
    if (hidden === undefined) expect(`${reason}`).not.toContain('Go finds no certificate there')
    else {
      expect(reason).toContain(`: ${hidden[0]}, so Go finds no certificate there`)
      expect(next).toBe(hidden[1])
    }
    expect(differences.filter(({ accepts }) => accepts)).toEqual(
      (hidden === undefined ? [] : acceptedBy).map((verifier) => ({
        verifier,
        accepts: true,
        reason: 'it reads this form of PEM, too',
      })),
    )
    expect(all.filter(({ next }) => next.includes('pkey'))).toEqual([])
    expect(found).toEqual(acceptedBy)
    expect(alsoRefusedBy).toEqual(['openssl', 'node', 'python'].filter((one) => !acceptedBy.includes(one)))
    expect(all.map(({ code, source, entry, message }) => [code, source, entry, message])).toEqual(
      warnings.map((one) => ['NOT_PLAIN_PEM', ...one]),
    )
  })

  test('verifies a leaf in any form, and reports only a CA as hidden', () => {
    const { reason } = asked(formed(leafAlone, 'DER'), roots, formed(between, 'DER'))
    expect(reason).toContain(': issuing.crt is DER, so Go finds no certificate there')
  })

  test('names one of two chains that Go does not find', () => {
    const others = [createCa('other 1'), createCa('other 2')]
    const crossSigned = others.map((by) =>
      issued({ subject: issuing.subject, publicKey: issuing.key, basicConstraints: { ca: true } }, by),
    )
    const { reason } = asked(
      input('s.crt', server, ...crossSigned),
      formed(input('roots.crt', ...others), 'DER', 'DER'),
    )
    expect(reason).toContain(': roots.crt is DER, so Go finds no certificate there')
  })

  test('gives the errors of OpenSSL and Python as differences, and not the last error of Node', () => {
    const { differences } = asked(input('leaf.crt', server), input('issuing.crt', issuing))
    expect(differences.map(({ verifier, error }) => [verifier, error])).toEqual([
      ['openssl', 'unable to get issuer certificate'],
      ['node', undefined],
      ['python', 'Missing Authority Key Identifier'],
    ])
  })
})

test('rejects an input of a leaf without a certificate', () => {
  expect(() => report(input('server.crt'), [input('ca.crt', ca)])).toThrow(
    new TypeError('an input of a leaf has a certificate'),
  )
})

test('a report names the requested host', () => {
  expect(report(input('s.crt', server, issuing), [input('ca.crt', ca)], { name: 'kubernetes' }).name).toBe(
    'kubernetes',
  )
  expect(report(input('s.crt', server, issuing), [input('ca.crt', ca)])).not.toHaveProperty('name')
})

test('a report names the first of two locations of a certificate, and the one among the roots only for a root', () => {
  const twice = report(input('s.crt', server, issuing, issuing), [input('a.crt', ca), input('b.crt', ca)])
  expect(twice.chains[0]?.map(({ source, entry }) => `${source} ${entry}`)).toEqual([
    's.crt certificate 1',
    's.crt certificate 2',
    'a.crt ',
  ])
  const trustedLeaf = report(input('s.crt', server, ca), [input('r.crt', server)])
  expect([trustedLeaf.leaf.source, trustedLeaf.chains[0]?.[0]?.source]).toEqual(['s.crt', 'r.crt'])
})

test('a report shows a sent certificate at its location in the sent chain, also when it is among the roots', () => {
  const { chains } = report(input('s.crt', server, issuing), [input('r.crt', issuing, ca)])
  const whole = chains.find((chain) => chain.length === 3)
  expect(whole?.map(({ source }) => source)).toEqual(['s.crt', 's.crt', 'r.crt'])
})

test('a reason names the certificate in its file', () => {
  const { reason } = report(input('s.crt', server, issuing), [
    input('r.crt', issued({ subject: { commonName: 'x' } }), namesake),
  ])
  expect(reason).toContain('the CA "kubernetes" in r.crt: certificate 2:')
})

test('does not suggest the certificates that a server presented as a file to trust', () => {
  const alone = input('10.0.0.1:6443', issued({ subject: { commonName: 'alone' } }))
  const { advice, next } = report({ ...alone, isNoFile: true }, [input('ca.crt', ca)])
  expect([advice, next]).toEqual([
    expect.stringContaining('get its file from the owner'),
    'kcert inspect 10.0.0.1:6443',
  ])
})

test('skips unreadable certificates after the leaf with a warning', () => {
  const member = { source: 's.crt', entry: 'certificate 3', reason: 'bad', isUnseen: false }
  const { warnings } = report({ ...input('s.crt', server, issuing), unreadable: [member] }, [
    input('ca.crt', ca),
  ])
  expect(warnings).toEqual([
    {
      source: 's.crt',
      entry: 'certificate 3',
      code: 'CERT_UNREADABLE',
      message: 'bad; it was left out, so remove the block or fetch the certificate again',
      next: expect.stringMatching(/./),
    },
  ])
})

describe('the texts of a refusal', () => {
  const words = (
    leaf: Issued,
    roots: readonly Issued[],
    options: Partial<VerificationOptions> = {},
  ): string[] => {
    const {
      code = '',
      reason = '',
      advice = '',
      next = '',
    } = report(input('leaf.crt', leaf), [input('ca.crt', ...roots)], options)
    return [code, reason, `${advice}: ${next}`]
  }
  const leafOf = (asked: Parameters<typeof issued>[0]): Issued =>
    issued({ extendedKeyUsage: ['serverAuth'], ...asked }, ca)

  test.for<[code: string, reason: RegExp, next: RegExp, words: () => string[]]>([
    [
      'CERT_EXPIRED',
      /^the leaf "x" expired on 2026-11-20T00:00:00Z, 33 hours ago$/,
      /^renew it: kcert inspect leaf.crt$/,
      () => words(leafOf({ subject: { commonName: 'x' }, notAfter: new Date('2026-11-20T00:00:00Z') }), [ca]),
    ],
    [
      'CERT_NOT_YET_VALID',
      /^the leaf "x" is not valid before 2026-11-21T11:00:00Z, in 2 hours$/,
      /date -u/,
      () =>
        words(leafOf({ subject: { commonName: 'x' }, notBefore: new Date('2026-11-21T11:00:00Z') }), [ca]),
    ],
    [
      'HOST_NAME_MISMATCH',
      /^the leaf "x" is valid for a.example.com, 10.0.0.1, not for b.example.com$/,
      /reissue it with b.example.com/,
      () =>
        words(
          leafOf({
            subject: { commonName: 'x' },
            subjectAltNames: { dns: ['a.example.com'], ip: ['10.0.0.1'] },
          }),
          [ca],
          { name: 'b.example.com' },
        ),
    ],
    [
      'HOST_NAME_MISMATCH',
      /has no host name or IP address among its SANs, so it is not valid for x \(the common name is ignored\)$/,
      /connect to a name/,
      () => words(leafOf({ subject: { commonName: 'x' } }), [ca], { name: 'x' }),
    ],
    [
      'ISSUER_UNKNOWN',
      /^the issuer of "kube-apiserver" is not in the inputs: CN=issuing$/,
      /--intermediates: kcert inspect leaf.crt$/,
      () => words(server, [ca]),
    ],
    [
      'ISSUER_UNKNOWN',
      /of "x" is not in the inputs: CN=kubernetes$/,
      /\/etc\/kubernetes\/pki\/ca\.crt/,
      () => words(leafOf({ subject: { commonName: 'x' } }), [issuing]),
    ],
    [
      'ISSUER_UNKNOWN',
      /^the issuer of "x" is the subject of ca.crt, but with another encoding/,
      /byte for byte/,
      () =>
        words(issued({ subject: { commonName: 'x' } }, { ...ca, subject: { commonName: 'Kubernetes' } }), [
          ca,
        ]),
    ],
    [
      'USAGE_WRONG',
      /^the leaf "x" has the extended key usage serverAuth, not clientAuth$/,
      /^if a server uses it, add --purpose server, else/,
      () => words(leafOf({ subject: { commonName: 'x' } }), [ca], { purpose: 'client' }),
    ],
    [
      'NAME_NOT_ALLOWED',
      /^the DNS name "a.example.com" of "x" is excluded by the CA "constrained" \(ca.crt\): "example.com"$/,
      /without that name/,
      () => {
        const constrained = issued({
          subject: { commonName: 'constrained' },
          basicConstraints: { ca: true },
          nameConstraints: { excluded: { dns: ['example.com'] } },
        })
        const leaf = issued(
          { subject: { commonName: 'x' }, subjectAltNames: { dns: ['a.example.com'] } },
          constrained,
        )
        return words(leaf, [constrained])
      },
    ],
  ])('%s', ([code, reason, next, made]) => {
    expect(made()).toEqual([code, expect.stringMatching(reason), expect.stringMatching(next)])
  })
})
