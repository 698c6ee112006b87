import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { listed, quoted } from './quoting.ts'
import { requestWord } from './request-name.ts'
import { newRequestObject, signingRequestOfObject } from './request-object.ts'
import type { RequestObject, RequestsApi } from './requests-api.ts'
import { readRequestContent, type SigningRequest } from './signing-request.ts'

/** The result of submitting a request. */
export interface Submission {
  /** present: the same request already existed, so nothing was written. */
  readonly outcome: 'created' | 'present' | 'dry-run'
  readonly object: RequestObject
}

export interface SubmissionChoice {
  readonly dryRun: boolean
  /**
   * bytes: only a byte-identical request is the same. key: a request with the same key, names, signer and usages is the same, as
   * for client-go after a restart; ECDSA signatures differ each time.
   */
  readonly sameBy: 'bytes' | 'key'
}

/** How often kcert looks up and repeats a write whose response was lost, in addition to the retries of the adapter. */
const mostTries = 4

/**
 * Submits a request and returns its object, which may already exist: it is safe to call again after a crash. Throws
 * KCERT_API_CONFLICT when an object with this name has another request, and every error of the API.
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
      // Kubernetes before 1.31 draws a name once and rejects the request if it is taken: nothing was created.
      if (request.name === undefined && isConflict(error) && tries < mostTries) continue
      const present = await presentAfter(error, api, request)
      if (present !== undefined) {
        // When the response was lost, the object is most likely ours.
        const outcome = isCutOff(error) ? 'created' : 'present'
        const differences = differencesOf(signingRequestOfObject(present), request, sameBy)
        if (differences.length > 0) throw otherContent(request.name ?? '', differences)
        return { outcome, object: present }
      }
      if (tries === mostTries || request.name === undefined) throw error
    }
  }
}

/** Returns the object that a failed create conflicts with or created; undefined when there is none. Throws other errors. */
async function presentAfter(
  error: unknown,
  api: RequestsApi,
  { name }: SigningRequest,
): Promise<RequestObject | undefined> {
  const isTaken = isConflict(error)
  // With generateName, the objects cannot be distinguished.
  if ((!isTaken && !isCutOff(error)) || name === undefined) throw error
  try {
    return await api.get(name)
  } catch (unseen) {
    // The error of the write is more useful than that of the read, except for a taken name: then the message has both.
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

function otherContent(name: string, differences: readonly string[]): KcertError {
  const what = `the CertificateSigningRequest ${quoted(name)} exists already, with other content`
  return new KcertError('KCERT_API_CONFLICT', what, {
    why: `${differences.join('; ')}; use another name (--name NAME), or delete the existing object`,
    next: commandLine`kcert csr describe ${requestWord(name)}`,
  })
}

/** Returns the differences between an object on the cluster and the submitted one, as text. */
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
