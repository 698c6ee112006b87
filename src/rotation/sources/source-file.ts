import { readDocuments } from '../../kubeconfig/documents.ts'
import { entriesOf, itemsOf, type Node, textOf, valueAt } from '../../kubeconfig/node.ts'
import type { RotationSources } from '../report.ts'
import { readCaText, type SourceCa, type Step, spliced } from './ca-text.ts'
import { keysIn } from './keys-in.ts'
import { hiddenIn, isShowable } from './secret-lines.ts'
import { hunksOf, unifiedDiff } from './unified-diff.ts'

type SourcePlace = RotationSources['places'][number]

/** A rotated CA, with its public key and that of the new CA (SubjectPublicKeyInfo in DER). */
export interface SearchedCa extends SourceCa {
  readonly oldKey: Buffer
  /** Absent until phase 1 has created the new CA. */
  readonly newKey?: Buffer
}

export interface SourceFile {
  readonly places: readonly SourcePlace[]
  /** Empty if nothing changes, or a person must change it. */
  readonly diff: string
  /** Why it is not known whether the file contains an old CA. */
  readonly unchecked?: string
}

/** The time of an edit grows with the product of both. */
const mostPlaces = 1_000
const largestEdited = 4 * 1024 * 1024

// Old CAs in these are found only after decryption or extraction.
const opaqueFiles: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/ENC\[AES256_GCM,/, 'it has values that SOPS encrypted'],
  [/\$ANSIBLE_VAULT;/, 'it has values that ansible-vault encrypted'],
  [/\bkind["']?\s{0,99}:\s{0,99}["']?SealedSecret\b/, 'it contains a SealedSecret, which is encrypted'],
  [/^age-encryption\.org\/|-----BEGIN (?:PGP MESSAGE|AGE ENCRYPTED FILE|CMS)-----/, 'it is encrypted'],
  [/^\0GITCRYPT\0/, 'git-crypt encrypted it'],
  [/^version https:\/\/git-lfs\.github\.com\//, 'it is a pointer to a file in Git LFS'],
  [/\bH4sI[A-Za-z0-9+/]{80}/, 'it has compressed values: extract and check them'],
  [
    /^(?:\x1f\x8b|PK\x03\x04|\xfd7zXZ|\x28\xb5\x2f\xfd|BZh)/,
    'it is compressed: extract it and check its files',
  ],
  [/^(?:\xfe\xed\xfe\xed|0[\x80-\x84])/, 'it may be a keystore: check it with kcert inspect'],
]

/** Returns where a file contains an old CA, and the diff of a step. `name`: its path below the root, with slashes. */
export async function readSourceFile(
  name: string,
  bytes: Uint8Array,
  cas: readonly SearchedCa[],
  step: RotationSources['step'],
): Promise<SourceFile> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('utf8')
  const edit: Step = step === 'final' ? 'final' : 'overlap'
  const read = readCaText(text, cas, edit)
  const mentioned = keysIn(
    bytes,
    cas.flatMap(({ oldKey, newKey }) => (newKey === undefined ? [oldKey] : [oldKey, newKey])),
  )
  const others = cas.filter(
    (one) => mentioned.has(one.oldKey) && !read.places.some(({ ca }) => ca === one.ca),
  )
  const latin1 = buffer.toString('latin1')
  const unchecked = opaqueFiles.find(([pattern]) => pattern.test(latin1))?.[1]
  const rest = unchecked === undefined || others.length > 0 ? {} : { unchecked }
  if (read.places.length + others.length === 0) return { places: [], diff: '', ...rest }

  if (read.places.length > mostPlaces)
    return { places: [], diff: '', unchecked: `it contains old CAs in more than ${mostPlaces} places` }

  const isText = Buffer.from(text, 'utf8').equals(buffer)
  const reasonForFile = !isText
    ? 'the file is not UTF-8'
    : text.length > largestEdited
      ? 'the file is larger than 4 MiB'
      : isShowable(name)
        ? undefined
        : 'its name is not plain text'
  const reasons = hunksOf(text, read.splices).map((hunk) => {
    return { hunk, reason: reasonForFile ?? hiddenIn(text, read, hunk) }
  })
  const shown = reasons.filter(({ reason }) => reason === undefined).map(({ hunk }) => hunk)
  const splices = shown.flatMap((hunk) => hunk.splices)
  const isPartial =
    shown.length < reasons.length ||
    others.length > 0 ||
    read.places.some(({ byHand }) => byHand !== undefined)
  const isProven = splices.length === 0 || isPartial || isComplete(spliced(text, splices), cas, edit)
  const documents = text.length > 1 << 20 ? [] : (await readDocuments(text)).documents
  const lineAt = lineCounter(text)
  const places = read.places.map(({ start, ca, form, contains, splices: edits, byHand }): SourcePlace => {
    const needsChange = step !== 'overlap' || (contains === 'old' && form !== 'CA cert hash')
    const isOf = ({ hunk }: (typeof reasons)[number]) => hunk.splices.some((splice) => edits.includes(splice))
    const hidden = reasons.find((one) => one.reason !== undefined && isOf(one))?.reason
    const why =
      byHand ??
      hidden ??
      (edits.length > 0 ? undefined : 'kcert could not read the new CA on the nodes') ??
      (isProven ? undefined : 'kcert could not verify its own edit')
    return {
      file: name,
      line: lineAt(start),
      ...objectAt(documents, start),
      ...{ ca, form, contains, needsChange },
      ...(needsChange && step !== 'find' && why !== undefined && { byHand: why }),
    }
  })
  const inOtherForms = others.map((one): SourcePlace => {
    const contains = one.newKey !== undefined && mentioned.has(one.newKey) ? 'both' : 'old'
    return {
      ...{ file: name, line: 1, ca: one.ca, form: 'other', contains },
      needsChange: step !== 'overlap' || contains === 'old',
      byHand: 'kcert does not edit this format',
    }
  })
  return {
    places: [...places, ...inOtherForms],
    diff: isProven ? unifiedDiff(name, shown) : '',
    ...rest,
  }
}

/** Returns true if nothing in the text needs this step any more. */
function isComplete(text: string, cas: readonly SearchedCa[], step: Step): boolean {
  const { places } = readCaText(text, cas, step)
  if (step === 'overlap')
    return places.every(({ form, contains }) => form === 'CA cert hash' || contains === 'both')
  return (
    places.length === 0 &&
    keysIn(
      Buffer.from(text),
      cas.map(({ oldKey }) => oldKey),
    ).size === 0
  )
}

/** Returns a function that returns the line of an offset, from 1. The offsets must ascend. */
function lineCounter(text: string): (offset: number) => number {
  let [line, at] = [1, text.indexOf('\n')]
  return (offset) => {
    for (; at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++
    return line
  }
}

/** Returns the Kubernetes object at this offset; none in templates, which are not YAML. */
function objectAt(nodes: readonly Node[], offset: number): { readonly object?: string } {
  const around = nodes.find(({ range: [start, end] }) => start <= offset && offset < end)
  if (around === undefined) return {}
  const inner = objectAt([...entriesOf(around).map(([, value]) => value), ...itemsOf(around)], offset)
  if (inner.object !== undefined) return inner
  const [kind, name] = [textOf(valueAt(around, 'kind')), textOf(valueAt(around, 'metadata', 'name'))]
  const namespace = textOf(valueAt(around, 'metadata', 'namespace'))
  if (kind === undefined || name === undefined) return {}
  return { object: `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`.slice(0, 500) }
}
