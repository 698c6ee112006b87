import { orUndefined } from '../../errors/caught.ts'
import { decodeBase64 } from '../../kubeconfig/base64.ts'
import type { Range } from '../../kubeconfig/node.ts'
import { Certificate } from '../../x509/certificate.ts'
import { isCertificateLabel } from '../../x509/pem.ts'
import type { CaChange, CaName } from '../target.ts'
import { joinedBase64 } from './keys-in.ts'

// CAs in the text of a file of a repository, in YAML, JSON and templates alike. A change is spliced into the text, so comments,
// quotes and indentation stay.

/** A rotated CA. Without `newPem`, the new CA does not exist yet, or was not read. */
export interface SourceCa extends Pick<CaChange, 'ca' | 'oldCa' | 'newCa'> {
  readonly newPem?: string | undefined
}

/** `overlap`: both CAs are trusted; `final`: only the new one. */
export type Step = 'overlap' | 'final'

export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A place in a text that would restore an old CA. Offsets are in UTF-16 units. */
export interface CaPlace {
  readonly start: number
  readonly end: number
  readonly ca: CaName
  readonly form: 'PEM' | 'base64' | 'CA cert hash' | 'other'
  readonly contains: 'old' | 'both'
  /** Those of the text's splices that edit this place. */
  readonly splices: readonly Splice[]
  /** Why the place is not edited in the text. */
  readonly byHand?: string
}

export interface CaText {
  readonly places: readonly CaPlace[]
  readonly splices: readonly Splice[]
  /** Certificates, which may be shown. Other PEM and base64 may contain a private key. */
  readonly shown: readonly Range[]
}

// A certificate in base64 has at least 300 characters. The lookbehinds keep the time linear, and the upper limits, above what an object
// can contain, keep it within V8's stack for regular expressions.
const material =
  /-----BEGIN ([A-Z0-9 ]{1,64})-----([^-]{0,65536})-----END \1-----|(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{300,1500000}(?![A-Za-z0-9+/])={0,2}|(?<![A-Za-z0-9+/])([0-9a-f]{64})(?![A-Za-z0-9+/])/g
/** Between blocks of one bundle. In a quoted text a line end is an escape, doubled for each level of quotes. */
const gap = /^(?:\s|\\+[nr]|#[^\n]*\n)*$/
const space = /^(?:\s|\\+[nr])*/
const lineEnd = /^(?:\r?\n[ \t]*|(?:\\+r)?\\+n)(?=[A-Za-z0-9+/])/
const longestGap = 65_536

// A kubeconfig in base64 in a Secret has certificates in base64. No legitimate text is deeper.
const deepest = 3
const mixed = 'the value is more than CA certificates, and may contain a private key'

interface Block {
  readonly start: number
  readonly end: number
  readonly certificate: Certificate
  /** Line end and indentation; undefined if the block has none. */
  readonly lineEnd: string | undefined
}

/** Returns the places of old CAs in a text, and the splices of a step. */
export function readCaText(text: string, cas: readonly SourceCa[], step: Step, depth = 0): CaText {
  const places: CaPlace[] = []
  const splices: Splice[] = []
  const shown: Range[] = []
  let run: Block[] = []
  const endRun = (): void => {
    for (const one of cas) {
      const contains = contentOf(run, one)
      const [first, last] = [run[0], run.at(-1)]
      if (contains === undefined || first === undefined || last === undefined) continue
      const edits = editsOf(text, run, one, step)
      const byHand = edits === undefined ? { byHand: 'the lines of its PEM are joined' } : {}
      const at = { start: first.start, end: last.end }
      places.push({ ...at, ca: one.ca, form: 'PEM', contains, splices: edits ?? [], ...byHand })
      splices.push(...(edits ?? []))
    }
    run = []
  }
  for (const match of text.matchAll(material)) {
    const [whole, label, body = '', pin] = match
    const [start, end] = [match.index, match.index + whole.length]
    if (pin !== undefined) {
      const one = cas.find(({ oldCa }) => oldCa.spki === pin)
      if (one === undefined) continue
      const edits = step === 'final' ? [{ start, end, text: one.newCa.spki }] : []
      places.push({ start, end, ca: one.ca, form: 'CA cert hash', contains: 'old', splices: edits })
      splices.push(...edits)
      continue
    }
    if (label !== undefined) {
      const certificate = isCertificateLabel(label) ? certificateOf(body) : undefined
      if (certificate === undefined) continue
      const before = run.at(-1)
      if (before !== undefined && !isGap(text.slice(before.end, start))) endRun()
      run.push({ start, end, certificate, lineEnd: lineEnd.exec(body)?.[0] })
      shown.push([start, end])
      continue
    }
    const inner = readEncoded(whole, cas, step, depth)
    if (inner.isBundle) shown.push([start, end])
    const edits = inner.edited === undefined ? [] : [{ start, end, text: inner.edited }]
    splices.push(...edits)
    for (const { ca, contains, byHand, splices: inside } of inner.places) {
      const reason = inner.isBundle ? byHand : mixed
      places.push({
        ...{ start, end, ca, form: 'base64', contains },
        splices: inside.length === 0 ? [] : edits,
        ...(reason !== undefined && { byHand: reason }),
      })
    }
  }
  endRun()
  const inOrder = (a: { start: number }, b: { start: number }): number => a.start - b.start
  return { places: places.sort(inOrder), splices: splices.sort(inOrder), shown }
}

/** Returns the text with the splices, which are in order. */
export function spliced(text: string, splices: readonly Splice[]): string {
  let at = 0
  const parts = splices.flatMap((splice) => {
    const kept = text.slice(at, splice.start)
    // Removals of two CAs in one bundle may share a line end.
    at = Math.max(at, splice.end)
    return [kept, splice.text]
  })
  return [...parts, text.slice(at)].join('')
}

/** Returns what a base64 text contains. `edited` is its replacement; undefined if it stays. */
function readEncoded(token: string, cas: readonly SourceCa[], step: Step, depth: number) {
  const none = { isBundle: false, places: [], edited: undefined }
  const decoded = decodeBase64(token)
  if ('reason' in decoded || depth >= deepest) return none
  const der = certificateFrom(decoded.bytes)
  if (der !== undefined) {
    const block = { start: 0, end: 0, certificate: der, lineEnd: undefined }
    const places = cas.flatMap((one): CaPlace[] => {
      const contains = contentOf([block], one)
      const byHand = 'it is a certificate in DER, which has one CA at a time'
      return contains === undefined
        ? []
        : [{ start: 0, end: 0, ca: one.ca, form: 'base64', contains, splices: [], byHand }]
    })
    return { isBundle: true, places, edited: undefined }
  }
  const text = Buffer.from(decoded.bytes).toString('utf8')
  const { places, splices, shown } = readCaText(text, cas, step, depth + 1)
  const rest = spliced(
    text,
    shown.map(([start, end]) => ({ start, end, text: '' })),
  )
  // A key in a comment would be shown with the bundle.
  const isBundle =
    shown.length > 0 && isGap(`${rest}\n`) && !/[A-Za-z0-9+/_-]{40}|passw|secret|token|private/i.test(rest)
  const isExact = isBundle && Buffer.from(text, 'utf8').equals(decoded.bytes)
  if (!isExact || splices.length === 0) return { isBundle, places, edited: undefined }
  return { isBundle, places, edited: Buffer.from(spliced(text, splices), 'utf8').toString('base64') }
}

function contentOf(blocks: readonly Block[], { oldCa, newCa }: SourceCa): CaPlace['contains'] | undefined {
  if (!blocks.some(({ certificate }) => isOld(certificate, oldCa))) return undefined
  return blocks.some(({ certificate }) => certificate.fingerprintSha256 === newCa.digest) ? 'both' : 'old'
}

/** A CA that was renewed with its key is trusted like the original. */
function isOld({ publicKey }: Certificate, { spki }: SourceCa['oldCa']): boolean {
  return publicKey.sha256 === spki
}

function isGap(text: string): boolean {
  return text.length <= longestGap && gap.test(text)
}

/** Returns the splices of one bundle; undefined if kcert does not edit its layout. */
function editsOf(
  text: string,
  run: readonly Block[],
  { oldCa, newCa, newPem }: SourceCa,
  step: Step,
): readonly Splice[] | undefined {
  if (newPem === undefined) return []
  const olds = run.flatMap((block, index) => (isOld(block.certificate, oldCa) ? [{ block, index }] : []))
  const hasNew = run.some(({ certificate }) => certificate.fingerprintSha256 === newCa.digest)
  const [first] = olds
  const last = olds.at(-1)
  if (first === undefined || last === undefined || (step === 'overlap' && hasNew)) return []
  if (olds.some(({ block }) => block.lineEnd === undefined)) return undefined
  const newBlock = newPem.trimEnd().split('\n').join(first.block.lineEnd)
  if (step === 'overlap') {
    const { end } = last.block
    // The old CA stays first, as in `bundleOf`.
    return [{ start: end, end, text: `${first.block.lineEnd}${newBlock}` }]
  }
  return olds.map(({ block: { start, end }, index }, number) => {
    if (number === 0 && !hasNew) return { start, end, text: newBlock }
    const before = run[index - 1]
    if (index === run.length - 1 && before !== undefined) return { start: before.end, end, text: '' }
    const [after = ''] = space.exec(text.slice(end, run[index + 1]?.start ?? end)) ?? []
    return { start, end: end + after.length, text: '' }
  })
}

function certificateOf(body: string): Certificate | undefined {
  const decoded = decodeBase64(joinedBase64(body))
  return 'bytes' in decoded ? certificateFrom(decoded.bytes) : undefined
}

function certificateFrom(der: Uint8Array): Certificate | undefined {
  return der[0] === 0x30 ? orUndefined(() => Certificate.parse(der)) : undefined
}
