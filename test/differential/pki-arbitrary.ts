import { constants, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'
import { constructedTag, DerReader, tags } from '../../src/x509/der.ts'
import {
  bitString,
  directoryString,
  element,
  explicit,
  integer,
  nullElement,
  oid,
  sequence,
  setOf,
  utf8String,
} from '../../src/x509/der-writer.ts'
import {
  type AltNamesDescription,
  issueCertificate,
  keyIdentifierOf,
  type RawExtension,
  type SubtreesDescription,
} from '../../src/x509/issuing.ts'
import { type Name, readName } from '../../src/x509/name.ts'
import { oidOf } from '../../src/x509/oids.ts'

// Random PKIs to compare verifiers. Most fields are usually correct, so many chains are valid and the others fail for one reason.
// CAs share names and keys and sign each other, so there is often more than one path.

/** The question for all verifiers. */
export interface GeneratedQuestion {
  readonly leaf: Uint8Array
  readonly roots: readonly Uint8Array[]
  readonly intermediates: readonly Uint8Array[]
  readonly at: Date
  readonly purpose: 'server' | 'client' | 'any'
  readonly name?: string | undefined
  /** The private key of the leaf, for verifiers that need a handshake. */
  readonly leafKey: KeyObject
}

const ec = (namedCurve: string): KeyObject => generateKeyPairSync('ec', { namedCurve }).privateKey
const rsa = (modulusLength: number): KeyObject => generateKeyPairSync('rsa', { modulusLength }).privateKey

/** Identities of CAs: a name and a key. The first ones sign fast and are therefore the common ones. */
const caKeys: readonly KeyObject[] = [
  ec('P-256'),
  ec('P-256'),
  ec('P-256'),
  ec('P-256'),
  rsa(2048),
  ec('P-384'),
  generateKeyPairSync('ed25519').privateKey,
  rsa(1024),
  rsa(768),
]
const leafKeys: readonly KeyObject[] = [ec('P-256'), rsa(2048), ec('P-384'), rsa(1024)]
const publicKeys = new Map([...caKeys, ...leafKeys].map((key) => [key, createPublicKey(key)]))
const keyIds = new Map([...publicKeys].map(([key, publicKey]) => [key, keyIdentifierOf(publicKey)]))

/** Returns a name in the given encoding: verifiers differ in whether two encodings are the same name. */
function nameOf(text: string, encode: (text: string) => Uint8Array = directoryString): Name {
  const der = sequence(setOf(sequence(oid('2.5.4.3'), encode(text))))
  return readName(new DerReader(text === '' ? sequence() : der, 'name'), '')
}

// One of them looks like a host. Some verifiers check this for leaves, but none for CAs.
const caNames: readonly Name[] = caKeys.map((_, i) => nameOf(i === 3 ? 'ca.example.org' : `ca ${i}`))
const twistedNames: readonly Name[] = [nameOf('ca 0', utf8String), nameOf('CA  0'), nameOf('')]

const day = 24 * 60 * 60 * 1000

/** Start and end relative to the time of the question, in milliseconds. */
const validities: Readonly<Record<string, readonly [number, number]>> = {
  valid: [-day, 365 * day],
  expired: [-2 * day, -day],
  future: [day, 2 * day],
  endsNow: [-day, 0],
  endedASecondAgo: [-day, -1000],
  beginsNow: [0, day],
  beginsInASecond: [1000, day],
}

const keyUsageChoices = [
  undefined,
  ['keyCertSign', 'cRLSign', 'digitalSignature'],
  ['digitalSignature'],
  ['cRLSign'],
  ['keyEncipherment'],
  ['keyAgreement'],
  [],
] as const

const extendedKeyUsageChoices = [
  [],
  ['serverAuth', 'clientAuth'],
  ['serverAuth'],
  ['clientAuth'],
  ['anyExtendedKeyUsage'],
  ['emailProtection'],
  ['1.3.6.1.4.1.55555.1', 'clientAuth'],
  ['msSGC'],
] as const

const dnsChoices = [
  'a.example.com',
  'example.com',
  '*.example.com',
  'x.y.example.com',
  'A.EXAMPLE.COM',
  'example.org',
  'foo*.example.com',
  '*.com',
  'under_score.example.com',
  '.example.com',
  'example.com.',
  'a..example.com',
  'xn--a.example.com',
  '*',
  '10.0.0.1',
  'kubernetes',
  'a-example.com',
]
const ipChoices = ['10.0.0.1', '10.9.9.10', '192.168.1.1', 'fd00::1', '::1', '::ffff:10.0.0.1']
const emailChoices = [
  'a@example.com',
  'A@EXAMPLE.com',
  'a@x.example.com',
  '"a b"@example.com',
  'nobody',
  'a@example.org',
]
const uriChoices = [
  'spiffe://cluster.local/ns/x',
  'https://a.example.com/',
  'https://a.example.com:8443/',
  'https://A.example.com/',
  'https://10.0.0.1/',
  'https://[::1]:443/',
  'urn:x',
  'db://a:1,b:2/',
]
const dnsConstraints = [
  'example.com',
  '.example.com',
  'a.example.com',
  'com',
  '',
  'EXAMPLE.com',
  'example.org',
  'ple.com',
  'a-example.com',
]
const ipConstraints = [
  '10.0.0.0/8',
  '10.0.0.0/24',
  '10.9.9.9/8',
  '9.0.0.0/8',
  '0.0.0.0/0',
  'fd00::/8',
  '::/0',
  '::ffff:10.0.0.0/104',
]
const emailConstraints = ['example.com', '.example.com', 'a@example.com', 'x.example.com', '']
const uriConstraints = ['example.com', '.example.com', 'a.example.com', 'cluster.local', 'local']

/** Values of --name. */
export const askedNames = [
  ...dnsChoices,
  ...ipChoices,
  'b.example.com',
  'a.example.com.',
  'A.example.COM',
  'foobar.example.com',
  '[fd00::1]',
  '[10.0.0.1]',
  'leaf',
  'host.example.com',
  'host.example.org',
  'a b',
]

const policyChoices = ['2.5.29.32.0', '1.2.3.1', '1.2.3.2'] as const

const rawExtensions: readonly RawExtension[] = [
  { oid: '1.3.6.1.4.1.55555.2', critical: true, value: nullElement },
  { oid: '1.3.6.1.4.1.55555.2', critical: false, value: nullElement },
  // policyConstraints: requireExplicitPolicy 0 and 1, inhibitPolicyMapping 0
  { oid: '2.5.29.36', critical: true, value: sequence(element(0x80, Uint8Array.of(0))) },
  { oid: '2.5.29.36', critical: true, value: sequence(element(0x80, Uint8Array.of(1))) },
  { oid: '2.5.29.36', critical: true, value: sequence(element(0x81, Uint8Array.of(0))) },
  // policyMappings
  { oid: '2.5.29.33', critical: false, value: sequence(sequence(oid('1.2.3.1'), oid('1.2.3.2'))) },
  { oid: '2.5.29.33', critical: false, value: sequence(sequence(oid('2.5.29.32.0'), oid('1.2.3.2'))) },
  { oid: '2.5.29.54', critical: true, value: integer(0) },
  // nameConstraints on a directory name, critical and not
  {
    oid: '2.5.29.30',
    critical: true,
    value: sequence(explicit(0, sequence(explicit(4, nameOf('leaf').der)))),
  },
  {
    oid: '2.5.29.30',
    critical: false,
    value: sequence(explicit(0, sequence(explicit(4, nameOf('leaf').der)))),
  },
  {
    oid: '2.5.29.30',
    critical: false,
    value: sequence(explicit(1, sequence(explicit(4, nameOf('LEAF').der)))),
  },
  // a constraint with a minimum, and one on nothing
  {
    oid: '2.5.29.30',
    critical: true,
    value: sequence(
      explicit(0, sequence(element(0x82, Buffer.from('com')), element(0x80, Uint8Array.of(1)))),
    ),
  },
  { oid: '2.5.29.30', critical: true, value: sequence() },
  // authorityKeyIdentifier by issuer and serial number: the right one of "ca 0", and a wrong one
  {
    oid: '2.5.29.35',
    value: sequence(element(0xa1, element(0xa4, nameOf('ca 0').der)), element(0x82, Uint8Array.of(7))),
  },
  {
    oid: '2.5.29.35',
    value: sequence(element(0xa1, element(0xa4, nameOf('ca 1').der)), element(0x82, Uint8Array.of(9))),
  },
  // nsCertType: an SSL client, an SSL CA
  { oid: '2.16.840.1.113730.1.1', value: bitString(Uint8Array.of(0x80), 7) },
  { oid: '2.16.840.1.113730.1.1', value: bitString(Uint8Array.of(0x04), 2) },
  { oid: '2.5.29.19', critical: false, value: sequence() },
]

/** Returns the first value most of the time. */
function usually<T>(value: T, others: fc.Arbitrary<T>, weight: number): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: others })
}

const some = <T>(choices: readonly T[], maxLength = 2): fc.Arbitrary<T[]> =>
  fc.array(fc.constantFrom(...choices), { maxLength })

const altNames: fc.Arbitrary<AltNamesDescription> = fc.record({
  dns: some(dnsChoices),
  ip: some(ipChoices),
  email: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: some(emailChoices, 1) }),
  uri: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: some(uriChoices, 1) }),
})

const subtrees: fc.Arbitrary<SubtreesDescription> = fc.record({
  dns: some(dnsConstraints, 3),
  ip: some(ipConstraints, 3),
  email: usually([], some(emailConstraints), 2),
  uri: usually([], some(uriConstraints), 2),
})

interface CertificatePlan {
  readonly identity: number
  readonly twistedName: number | undefined
  /** The issuing CA, counted over all CAs of the case. */
  readonly issuer: number
  readonly signedByAnother: boolean
  readonly serialNumber: number
  readonly validity: string
  readonly isCa: boolean | undefined
  readonly pathLength: number | undefined
  readonly keyUsage: number
  readonly extendedKeyUsage: number
  readonly hasSubjectKeyId: 'right' | 'none' | 'wrong'
  readonly hasAuthorityKeyId: 'right' | 'none' | 'wrong'
  readonly altNames: AltNamesDescription | undefined
  readonly constraints:
    | { permitted: SubtreesDescription; excluded: SubtreesDescription; critical: boolean }
    | undefined
  readonly policies: readonly string[]
  readonly extension: number | undefined
  readonly resign: Resigning | undefined
  readonly place: 'usual' | 'other' | 'both' | 'twice' | 'nowhere'
}

type Resigning = 'v1' | 'sha1' | 'md5' | 'sha224' | 'pss' | 'pss-odd-salt' | 'broken'

const keyIdChoice = fc.constantFrom('none', 'wrong') as fc.Arbitrary<'none' | 'wrong'>
const somePolicies: fc.Arbitrary<readonly string[]> = fc.subarray([...policyChoices])
const policyExtensions = rawExtensions.flatMap(({ oid }, i) =>
  ['2.5.29.33', '2.5.29.36', '2.5.29.54'].includes(oid) ? i : [],
)

/** Rules that only take effect when many certificates of a chain have the corresponding extension. */
type Emphasis = 'none' | 'policies' | 'constraints'

interface Defaults {
  readonly isCa: boolean
  readonly keyUsage: number
  readonly extendedKeyUsage: number
}

function certificatePlan(defaults: Defaults, emphasis: Emphasis): fc.Arbitrary<CertificatePlan> {
  const policies = usually([], somePolicies, emphasis === 'policies' ? 0 : 8)
  const extension =
    emphasis === 'policies'
      ? usually<number | undefined>(undefined, fc.constantFrom(...policyExtensions), 1)
      : usually<number | undefined>(undefined, fc.nat(rawExtensions.length - 1), 15)
  return fc.record({
    identity: fc.oneof(
      { weight: 6, arbitrary: fc.nat(3) },
      { weight: 1, arbitrary: fc.nat(caKeys.length - 1) },
    ),
    twistedName: usually<number | undefined>(undefined, fc.nat(twistedNames.length - 1), 40),
    issuer: fc.nat(5),
    signedByAnother: usually(false, fc.constant(true), 40),
    serialNumber: fc.constantFrom(7, 8, 9),
    validity: usually('valid', fc.constantFrom(...Object.keys(validities)), 15),
    isCa: usually<boolean | undefined>(defaults.isCa, fc.constantFrom(undefined, !defaults.isCa), 25),
    pathLength: usually<number | undefined>(undefined, fc.nat(2), 6),
    keyUsage: usually(defaults.keyUsage, fc.nat(keyUsageChoices.length - 1), 12),
    extendedKeyUsage: usually(defaults.extendedKeyUsage, fc.nat(extendedKeyUsageChoices.length - 1), 8),
    hasSubjectKeyId: usually<'right' | 'none' | 'wrong'>('right', keyIdChoice, 6),
    hasAuthorityKeyId: usually<'right' | 'none' | 'wrong'>('right', keyIdChoice, 6),
    altNames: defaults.isCa
      ? usually(undefined, altNames, emphasis === 'constraints' ? 2 : 15)
      : usually({ dns: ['a.example.com'], ip: ['10.0.0.1'] }, altNames, 1),
    constraints: usually<CertificatePlan['constraints']>(
      undefined,
      fc.record({
        permitted: usually({}, subtrees, 1),
        excluded: usually({}, subtrees, 1),
        critical: fc.boolean(),
      }),
      emphasis === 'constraints' ? 1 : 8,
    ),
    policies,
    extension,
    resign: usually<Resigning | undefined>(
      undefined,
      fc.constantFrom('v1', 'sha1', 'md5', 'sha224', 'pss', 'pss-odd-salt', 'broken'),
      40,
    ),
    place: usually<CertificatePlan['place']>(
      'usual',
      fc.constantFrom('other', 'both', 'twice', 'nowhere'),
      15,
    ),
  })
}

const caPlan = (emphasis: Emphasis) =>
  certificatePlan({ isCa: true, keyUsage: 1, extendedKeyUsage: 0 }, emphasis)
const leafPlan = (emphasis: Emphasis) =>
  certificatePlan({ isCa: false, keyUsage: 2, extendedKeyUsage: 1 }, emphasis)

/** Returns an arbitrary for questions about a random PKI at this time. */
export function questionAbout(now: Date): fc.Arbitrary<GeneratedQuestion> {
  return fc.oneof(
    { weight: 7, arbitrary: emphasizing('none', now) },
    { weight: 2, arbitrary: emphasizing('constraints', now) },
    { weight: 1, arbitrary: emphasizing('policies', now) },
  )
}

function emphasizing(emphasis: Emphasis, now: Date): fc.Arbitrary<GeneratedQuestion> {
  return fc
    .record({
      roots: fc.array(caPlan(emphasis), { minLength: 1, maxLength: 3 }),
      intermediates: fc.array(caPlan(emphasis), { maxLength: 4 }),
      leaf: leafPlan(emphasis),
      leafPlace: usually<'usual' | 'root' | 'intermediate'>(
        'usual',
        fc.constantFrom('root', 'intermediate'),
        30,
      ),
      reversed: fc.boolean(),
      milliseconds: fc.constantFrom(0, 0, 0, 500),
      purpose: fc.constantFrom('server', 'client', 'any'),
      name: fc.oneof(
        { weight: 8, arbitrary: fc.constant(undefined) },
        { weight: 3, arbitrary: fc.nat(5) },
        { weight: 2, arbitrary: fc.constantFrom(...askedNames) },
      ),
    })
    .map((plan) => {
      const { roots, intermediates, leaf, leafPlace, reversed, milliseconds, purpose } = plan
      const own = [...(leaf.altNames?.dns ?? []), ...(leaf.altNames?.ip ?? [])]
      const name = typeof plan.name === 'number' ? own[plan.name % own.length] : plan.name
      const cas = [...roots, ...intermediates]
      const rootDers = roots.map((root) => issue(root, root, now))
      // Any CA signs an intermediate, including itself and later ones. Usually one of the last CAs signs a leaf.
      const intermediateDers = intermediates.map((ca) => issue(ca, cas[ca.issuer % cas.length]!, now))
      const leafDer = issue(leaf, cas[cas.length - 1 - (leaf.issuer % Math.min(cas.length, 3))]!, now, true)
      const placed = { roots: [] as Uint8Array[], intermediates: [] as Uint8Array[] }
      const put = (
        der: Uint8Array,
        place: CertificatePlan['place'],
        usual: 'roots' | 'intermediates',
      ): void => {
        const other = usual === 'roots' ? 'intermediates' : 'roots'
        if (place !== 'other' && place !== 'nowhere') placed[usual].push(der)
        if (place === 'twice') placed[usual].push(der)
        if (place === 'other' || place === 'both') placed[other].push(der)
      }
      for (const [i, der] of rootDers.entries()) put(der, roots[i]!.place, 'roots')
      for (const [i, der] of intermediateDers.entries()) put(der, intermediates[i]!.place, 'intermediates')
      if (leafPlace === 'root') placed.roots.push(leafDer)
      if (leafPlace === 'intermediate') placed.intermediates.push(leafDer)
      const ordered = (ders: Uint8Array[]): Uint8Array[] => (reversed ? ders.toReversed() : ders)
      return {
        leaf: leafDer,
        roots: ordered(placed.roots),
        intermediates: ordered(placed.intermediates),
        at: new Date(now.getTime() + milliseconds),
        purpose,
        name,
        leafKey: leafKeyOf(leaf),
        // A counterexample shows the plan, which determines the certificates.
        [fc.toStringMethod]: () => JSON.stringify({ ...plan, name }, null, 1),
      }
    })
}

function leafKeyOf({ identity }: CertificatePlan): KeyObject {
  return leafKeys[Math.max(0, identity - 3) % leafKeys.length]!
}

function subjectOf({ identity, twistedName }: CertificatePlan): Name {
  return twistedName === undefined ? caNames[identity]! : twistedNames[twistedName]!
}

function keyIdOf(choice: 'right' | 'none' | 'wrong', right: string): string | undefined {
  return choice === 'none' ? undefined : choice === 'right' ? right : 'ff00'
}

// Some verifiers check common names that look like hosts.
const leafNames = ['leaf', 'host.example.com', 'host.example.org'].map((text) => nameOf(text))

function issue(plan: CertificatePlan, issuer: CertificatePlan, now: Date, isLeaf = false): Uint8Array {
  const key = isLeaf ? leafKeyOf(plan) : caKeys[plan.identity]!
  const issuerKey = caKeys[issuer.identity]!
  const signer = plan.signedByAnother ? caKeys[(issuer.identity + 1) % 4]! : issuerKey
  const [begin, end] = validities[plan.validity]!
  const keyUsage = keyUsageChoices[plan.keyUsage]
  const { isCa, pathLength, constraints } = plan
  const der = issueCertificate(
    {
      serialNumber: `0${plan.serialNumber}`,
      subject: isLeaf ? leafNames[plan.serialNumber % leafNames.length]! : subjectOf(plan),
      issuer: subjectOf(issuer),
      notBefore: new Date(now.getTime() + begin),
      notAfter: new Date(now.getTime() + end),
      publicKey: publicKeys.get(key)!,
      ...(keyUsage && { keyUsage }),
      extendedKeyUsage: extendedKeyUsageChoices[plan.extendedKeyUsage]!,
      ...(isCa !== undefined && {
        basicConstraints: { ca: isCa, ...(pathLength !== undefined && { pathLength }) },
      }),
      ...defined('subjectKeyId', keyIdOf(plan.hasSubjectKeyId, keyIds.get(key)!)),
      ...defined('authorityKeyId', keyIdOf(plan.hasAuthorityKeyId, keyIds.get(issuerKey)!)),
      ...defined('subjectAltNames', plan.altNames),
      ...defined('nameConstraints', constraints),
      policies: plan.policies,
      ...(plan.extension !== undefined && { extensions: [rawExtensions[plan.extension]!] }),
    },
    signer,
  )
  return plan.resign === undefined ? der : resigned(der, plan.resign, signer)
}

function defined<Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } {
  return value === undefined ? {} : ({ [key]: value } as { [K in Key]: Value })
}

/** Returns the same certificate as version 1, or signed with another algorithm. */
function resigned(der: Uint8Array, how: Resigning, signer: KeyObject): Uint8Array {
  const isRsa = signer.asymmetricKeyType === 'rsa'
  const fields = tbsFields(der)
  if (how === 'broken') {
    const broken = Buffer.from(der)
    broken[broken.length - 1]! ^= 1
    return broken
  }
  if (how === 'v1') {
    const isOptional = (field: Uint8Array): boolean =>
      field[0] === constructedTag(0) || field[0] === constructedTag(3)
    const kept = fields.filter((field) => !isOptional(field))
    const algorithm = kept[1]!
    const tbs = sequence(...kept)
    const digest = algorithmHash(algorithm)
    return sequence(tbs, algorithm, bitString(sign(digest, tbs, signer)))
  }
  const isEc = signer.asymmetricKeyType === 'ec'
  if (!isRsa && !(isEc && (how === 'sha1' || how === 'sha224'))) return der
  const { algorithm, signature } = signatureOf(how, isRsa)
  const tbs = sequence(...fields.map((field, i) => (i === 2 ? algorithm : field)))
  return sequence(tbs, algorithm, bitString(signature(tbs, signer)))
}

function tbsFields(der: Uint8Array): Uint8Array[] {
  const reader = new DerReader(der, 'certificate')
  reader.enter(tags.sequence, '')
  reader.enter(tags.sequence, '')
  const fields: Uint8Array[] = []
  while (!reader.atEnd) {
    reader.next('field')
    fields.push(Uint8Array.from(reader.lastElement))
  }
  return fields
}

function algorithmHash(identifier: Uint8Array): string | null {
  const reader = new DerReader(identifier, 'algorithm')
  reader.enter(tags.sequence, '')
  const dotted = reader.oid('')
  if (dotted === oidOf('Ed25519')) return null
  return dotted === oidOf('ecdsa-with-SHA384') ? 'sha384' : 'sha256'
}

interface OddSignature {
  readonly algorithm: Uint8Array
  readonly signature: (tbs: Uint8Array, key: KeyObject) => Uint8Array
}

function signatureOf(how: Exclude<Resigning, 'v1' | 'broken'>, isRsa: boolean): OddSignature {
  if (how === 'pss' || how === 'pss-odd-salt') {
    const saltLength = how === 'pss' ? 32 : 20
    const padding = constants.RSA_PKCS1_PSS_PADDING
    return {
      algorithm: pssIdentifier(saltLength),
      signature: (tbs, key) => sign('sha256', tbs, { key, padding, saltLength }),
    }
  }
  const names = {
    sha1: isRsa ? 'sha1WithRSAEncryption' : 'ecdsa-with-SHA1',
    sha224: isRsa ? 'sha224WithRSAEncryption' : 'ecdsa-with-SHA224',
    md5: 'md5WithRSAEncryption',
  } as const
  const parameters = isRsa ? [nullElement] : []
  return {
    algorithm: sequence(oid(oidOf(names[how])), ...parameters),
    signature: (tbs, key) => sign(how, tbs, key),
  }
}

/** RFC 4055 section 3.1. */
function pssIdentifier(saltLength: number): Uint8Array {
  const sha256 = sequence(oid(oidOf('sha256')), nullElement)
  const mgf1 = sequence(oid(oidOf('id-mgf1')), sha256)
  const parameters = sequence(explicit(0, sha256), explicit(1, mgf1), explicit(2, integer(saltLength)))
  return sequence(oid(oidOf('id-RSASSA-PSS')), parameters)
}
