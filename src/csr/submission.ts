import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { listed, quoted } from './quoting.ts'
import { requestWord } from './request-name.ts'
import { newRequestObject, signingRequestOfObject } from './request-object.ts'
import type { RequestObject, RequestsApi } from './requests-api.ts'
import { readRequestContent, type SigningRequest } from './signing-request.ts'

/** What became of a request that was sent. */
export interface Submission {
  /** present: the same request was there before, so nothing was written. */
  readonly outcome: 'created' | 'present' | 'dry-run'
  readonly object: RequestObject
}

export interface SubmissionChoice {
  readonly dryRun: boolean
  /**
   * bytes: only the very same request is the same. key: one for the same key, names, signer and usages is as good, as client-go
   * takes it after a restart; signatures by ECDSA differ each time.
   */
  readonly sameBy: 'bytes' | 'key'
}

/** A write whose answer was lost is looked up and sent again so often; the adapter has tried again by then itself. */
const mostTries = 4

/**
 * Sends a request and returns its object, which may have been there before: it can be called again after any crash. Throws
 * KCERT_API_CONFLICT when an object of this name asks for something else, and whatever the port throws.
 */
export async function submitRequest(
  api: RequestsApi,
  request: SigningRequest,
  { dryRun, sameBy }: SubmissionChoice,
): Promise<Submission> {
  const object = newRequestObject(request)
  for (let tries = 1; ; tries++) {
    try {
      const created = await api.create(object, { dryRun })
      return { outcome: dryRun ? 'dry-run' : 'created', object: created }
    } catch (error) {
      // Kubernetes before 1.31 draws a name once, and refuses where that is taken: nothing was made.
      if (request.name === undefined && isConflict(error) && tries < mostTries) continue
      const present = await presentAfter(error, api, request)
      if (present !== undefined) {
        // Where the answer was lost, it was most likely ours that arrived.
        const outcome = isCutOff(error) ? 'created' : 'present'
        return { outcome, object: sameOrThrow(present, request, sameBy) }
      }
      if (tries === mostTries || request.name === undefined) throw error
    }
  }
}

/** The object that a failed create may have run into, or made; undefined when there is none. Throws errors that mean neither. */
async function presentAfter(
  error: unknown,
  api: RequestsApi,
  { name }: SigningRequest,
): Promise<RequestObject | undefined> {
  const isTaken = isConflict(error)
  // With generateName the objects cannot be told apart.
  if ((!isTaken && !isCutOff(error)) || name === undefined) throw error
  try {
    return await api.get(name)
  } catch (unseen) {
    // What stopped the write says more than what stopped the look at it, but for a name that is taken: then both say it.
    if (!isTaken) throw error
    if (!(unseen instanceof KcertError)) throw unseen
    const { code, message, fix, next } = unseen
    const what = `the CertificateSigningRequest ${quoted(name)} exists already, and kcert could not compare it with yours`
    const why = [message, unseen.why].filter(Boolean).join(': ')
    throw new KcertError(code, what, { why, fix, next, cause: unseen })
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof KcertError && error.code === 'KCERT_API_CONFLICT'
}

function isCutOff(error: unknown): boolean {
  return error instanceof KcertError && error.code === 'KCERT_UNREACHABLE'
}

function sameOrThrow(
  present: RequestObject,
  wanted: SigningRequest,
  sameBy: SubmissionChoice['sameBy'],
): RequestObject {
  const differences = differencesOf(signingRequestOfObject(present), wanted, sameBy)
  if (differences.length === 0) return present
  const name = wanted.name ?? ''
  throw new KcertError(
    'KCERT_API_CONFLICT',
    `the CertificateSigningRequest ${quoted(name)} exists already, with other content`,
    {
      why: `${differences.join('; ')}; use another name (--name NAME), or delete the existing object`,
      next: commandLine`kcert csr describe ${requestWord(name)}`,
    },
  )
}

/** Returns in words how an object on the cluster differs from the one that was to be sent. */
export function differencesOf(
  present: SigningRequest,
  wanted: SigningRequest,
  sameBy: SubmissionChoice['sameBy'],
): string[] {
  return [
    ...contentDifferences(present, wanted, sameBy),
    ...difference('its signer', quoted(present.signerName), quoted(wanted.signerName)),
    ...difference('its usages', present.usages.toSorted().join(', '), wanted.usages.toSorted().join(', ')),
    ...difference(
      'its expirationSeconds',
      `${present.expirationSeconds ?? 'none'}`,
      `${wanted.expirationSeconds ?? 'none'}`,
    ),
  ]
}

function contentDifferences(
  present: SigningRequest,
  wanted: SigningRequest,
  sameBy: SubmissionChoice['sameBy'],
): string[] {
  const isSame = Buffer.compare(present.request ?? Buffer.alloc(0), wanted.request ?? Buffer.alloc(0)) === 0
  if (isSame) return []
  const one = readRequestContent(present.request).request
  const other = readRequestContent(wanted.request).request
  if (one === undefined || other === undefined) return ['its request differs']
  const found = [
    ...difference('its subject', quoted(one.subject.text), quoted(other.subject.text)),
    ...(['dns', 'ip', 'email', 'uri', 'other'] as const).flatMap((kind) =>
      difference(
        `its ${kind} names`,
        listed(one.subjectAltNames[kind].toSorted()) || 'none',
        listed(other.subjectAltNames[kind].toSorted()) || 'none',
      ),
    ),
    ...(one.publicKey.sha256 === other.publicKey.sha256 ? [] : ['it is for another key']),
  ]
  if (found.length > 0 || sameBy === 'key') return found
  return ['it is another request for the same key and names, signed again']
}

function difference(what: string, present: string, wanted: string): string[] {
  return present === wanted ? [] : [`${what}: found ${present}, expected ${wanted}`]
}
