import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { checkFiles } from '../../cli/command-files.ts'
import type { Context } from '../../cli/context.ts'
import { progressOn } from '../../cli/progress.ts'
import type { FetchedMany, FetchedOne } from '../../csr/fetch-report.ts'
import { readRequests } from '../../csr/many-requests.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { RequestObject, RequestsApi } from '../../csr/requests-api.ts'
import { type ErrorCode, type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { given } from '../../errors/given.ts'
import { errorFields, KcertError } from '../../errors/kcert-error.ts'
import { writeNewFiles } from '../../system/new-files.ts'
import { makeFolders } from '../../system/new-folder.ts'
import { writeCertificates } from '../../x509/certificate.ts'
import { type Expected, fetchedFacts, fitCertificate } from './fetch.ts'
import { writeIssued } from './issued-files.ts'
import { noSuchRequest } from './request-names.ts'

// `kcert csr fetch --out-dir`: reads the certificates of many requests in one pass, and writes each to a separate file.

export interface FetchManySettings {
  readonly names: readonly string[]
  readonly signer: string | undefined
  readonly selector: string | undefined
  /** Created if missing. */
  readonly folder: string
  readonly ca: Expected['ca']
  readonly acceptsNames: boolean
  readonly replace: boolean
}

export interface FetchManyAnswer {
  readonly report: FetchedMany
  readonly exit: ExitCode
}

/** Concurrent calls; each reads one object of a few kilobytes. */
const readAtOnce = 32

/**
 * Fetches the selected certificates, and returns the outcome of each. Throws an error of the API server, and then writes nothing.
 * A problem with one certificate or its file does not stop the others.
 */
export async function fetchMany(
  settings: FetchManySettings,
  api: RequestsApi,
  context: Context,
): Promise<FetchManyAnswer> {
  const selected = await selectRequests(settings, api, context)
  makeFolders(settings.folder, 0o777)
  const now = context.clock()
  const results = await written(selected.map(({ name, object }) => fetchOne(name, object, settings, now)))
  const counts: Record<string, number> = {}
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1
  const requests = results.map(({ error, ...rest }) =>
    error ? { ...rest, error: errorFields(error) } : rest,
  )
  return {
    report: {
      apiVersion: 'kcert/v1',
      kind: 'FetchedCertificates',
      folder: settings.folder,
      counts,
      requests,
    },
    exit: exitOf(results, new Set(settings.names)),
  }
}

interface SelectedRequest {
  readonly name: string
  /** Undefined when there is no such object. */
  readonly object: RequestObject | undefined
}

/** Returns the selected objects, each once: the named ones, then those of the selection in the order of the API server. */
async function selectRequests(
  { names, signer, selector }: FetchManySettings,
  api: RequestsApi,
  context: Context,
): Promise<SelectedRequest[]> {
  const reading = progressOn(context, 'read', names.length)
  const objects = await readRequests(api, names, { concurrency: readAtOnce, onRead: () => reading.step() })
  reading.end()
  const named = names.map((name, index): SelectedRequest => ({ name, object: objects[index] }))
  const found = new Map(named.map((one) => [one.name, one]))
  if (signer === undefined && selector === undefined) return named
  const selection = given({ signerName: signer, labelSelector: selector })
  for await (const object of api.list(selection)) {
    const name = object.metadata.name ?? ''
    found.set(name, { name, object })
  }
  return [...found.values()]
}

type Result = Omit<FetchedOne, 'error'> & { readonly error?: KcertError }

/** The result of a request after its file is written; `unwritten` does not exist yet. */
type Planned = Result & { readonly unwritten?: { readonly path: string; readonly text: string } }

function fetchOne(
  name: string,
  object: RequestObject | undefined,
  { folder, ca, acceptsNames, replace }: FetchManySettings,
  now: Date,
): Planned {
  try {
    if (object === undefined) throw noSuchRequest(name)
    const fetched = fitCertificate(signingRequestOfObject(object), { key: undefined, ca, acceptsNames, now })
    const file = join(folder, fileNameOf(name))
    // An existing file is first compared. If it differs and must stay, the write refuses it.
    checkFiles({
      inputs: [{ by: '--ca', path: ca?.place }],
      outputs: [{ by: '--out-dir', path: file, holds: 'public' }],
      replace: true,
    })
    const text = writeCertificates(fetched.chain)
    const done = { name, outcome: 'fetched', file, certificate: fetchedFacts(fetched) } as const
    if (!existsSync(file)) return { ...done, unwritten: { path: file, text } }
    const isWritten = writeIssued(file, text, { replace, isSecret: false })
    return isWritten ? done : { ...done, outcome: 'present' }
  } catch (error) {
    if (error instanceof KcertError) return failed(name, error)
    throw error
  }
}

/** Writes the files that do not exist yet. */
async function written(planned: readonly Planned[]): Promise<Result[]> {
  const files = planned.flatMap(({ unwritten }) => unwritten ?? [])
  const failures = await writeNewFiles(files)
  const failureOf = new Map(files.map((file, index) => [file, failures[index]]))
  return planned.map(({ unwritten, ...result }) => {
    const error = unwritten && failureOf.get(unwritten)
    return error === undefined ? result : failed(result.name, error)
  })
}

function failed(name: string, error: KcertError): Result {
  return { name, outcome: outcomes[error.code] ?? 'failed', error }
}

// Requesters choose these names. No file may be elsewhere, be hidden, be parsed as a flag (`openssl x509 -in *.crt`), or control
// the terminal that lists it. The API server allows no "%" in a name, so two names never become one.
const odd = /^[-.]|[/%\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Returns the file name for an object's certificate: NAME.crt, with unsafe characters percent-encoded (%0A) as in a URL. */
export function fileNameOf(name: string): string {
  const bytes = (character: string): string =>
    Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&')
  return `${name.replace(odd, bytes)}.crt`
}

const outcomes: Partial<Record<ErrorCode, FetchedOne['outcome']>> = {
  KCERT_CSR_NOT_ISSUED: 'not-issued',
  KCERT_CERTIFICATE_UNFIT: 'mismatch',
  KCERT_API_NOT_FOUND: 'not-found',
  KCERT_FILE_EXISTS: 'refused',
}

/** Returns the worst exit code of the results. An unissued request that was only selected, not named, does not count. */
function exitOf(results: readonly Result[], named: ReadonlySet<string>): ExitCode {
  const codes = results.map(({ name, outcome, error }) =>
    outcome === 'not-issued' && !named.has(name) ? exitCodes.done : (error?.exitCode ?? exitCodes.done),
  )
  return worstExit(codes)
}
