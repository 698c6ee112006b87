import pMap from 'p-map'
import type { Context } from '../../cli/context.ts'
import { readInput } from '../../cli/input.ts'
import { clusterRequest } from '../../csr/cluster-request.ts'
import { completedDraft, preflight, refuseBroken } from '../../csr/draft.ts'
import { quoted } from '../../csr/quoting.ts'
import { requestWord } from '../../csr/request-name.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { ClusterRequest } from '../../csr/request-report.ts'
import type { RequestsApi } from '../../csr/requests-api.ts'
import { kubeletClient } from '../../csr/signers.ts'
import type { SigningRequest } from '../../csr/signing-request.ts'
import { submitRequest } from '../../csr/submission.ts'
import type { SubmissionItem } from '../../csr/submission-report.ts'
import { commandLine, embed } from '../../errors/command-line.ts'
import { adviceFields, KcertError } from '../../errors/kcert-error.ts'
import { type RequestFlags, readSigningRequestsOf } from './request-input.ts'

/** A request from a file, complete and valid. */
export interface Draft {
  readonly source: string
  readonly request: SigningRequest
  readonly notices: readonly string[]
}

/**
 * Returns the requests of all files, before anything is sent. Throws KCERT_CSR_SIGNER_REFUSED for the first one that would be
 * refused or fail, unless it is forced; KCERT_USAGE for two with the same name.
 */
export async function readDrafts(
  sources: readonly string[],
  flags: RequestFlags & { readonly force: boolean },
  context: Context,
): Promise<Draft[]> {
  const drafts: Draft[] = []
  for (const source of sources) {
    const requests = await readSigningRequestsOf(await readInput(source, context), source, flags)
    drafts.push(...requests.map((request) => draftOf(request, source, flags.force)))
  }
  const names = drafts.flatMap(({ request }) => request.name ?? [])
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice === undefined) return drafts
  throw new KcertError('KCERT_USAGE', `two requests have the name ${quoted(twice)}`, {
    why: 'object names are unique; submit them one by one, each with --name NAME',
    next: 'kcert csr submit --help',
  })
}

function draftOf(read: SigningRequest, source: string, force: boolean): Draft {
  const request = completedDraft(read)
  const found = preflight(request)
  if (!force) refuseBroken(request, found)
  return {
    source,
    request,
    notices: [
      ...found.broken.map(({ detail }) => `sent anyway: ${detail}`),
      ...found.advice.map(({ detail, fix }) => `${detail}; ${fix}`),
    ],
  }
}

export interface SubmitSettings {
  readonly dryRun: boolean
  readonly now: () => Date
}

/** Sends all requests and returns the outcome of each; a failure does not stop the others. */
export async function submitDrafts(
  api: RequestsApi,
  drafts: readonly Draft[],
  { dryRun, now }: SubmitSettings,
): Promise<{ items: SubmissionItem[]; errors: KcertError[] }> {
  const errors: KcertError[] = []
  const items = await pMap(
    drafts,
    async ({ source, request, notices }): Promise<SubmissionItem> => {
      const named = request.name === undefined ? {} : { name: request.name }
      try {
        const { outcome, object } = await submitRequest(api, request, { dryRun, sameBy: 'bytes' })
        const found = clusterRequest(signingRequestOfObject(object), now())
        const next = dryRun ? [] : nextCommands(found)
        return { source, name: found.name, outcome, request: found, notices: [...notices], next }
      } catch (error) {
        if (!(error instanceof KcertError)) throw error
        errors.push(error)
        return {
          source,
          ...named,
          outcome: 'failed',
          error: errorFields(error),
          notices: [...notices],
          next: [],
        }
      }
    },
    { concurrency: 8 },
  )
  return { items, errors }
}

/** Returns the next commands for a request that is on the cluster. */
export function nextCommands({ name, state, signerName }: ClusterRequest): string[] {
  const word = requestWord(name)
  if (state === 'denied' || state === 'failed') return [commandLine`kcert csr explain ${word}`]
  const fetch = commandLine`kcert csr fetch ${word} --out ${/^[A-Za-z0-9_.-]+$/.test(name) ? name : 'certificate'}.crt`
  if (state === 'issued') return [fetch]
  if (state === 'approved' || signerName === kubeletClient) return [commandLine`${embed(fetch)} --wait 20m`]
  return [commandLine`kcert csr approve ${word}`, commandLine`${embed(fetch)} --wait 20m`]
}

function errorFields({ code, message, why, ...advice }: KcertError): NonNullable<SubmissionItem['error']> {
  return { code, message, ...(why === undefined ? {} : { why }), ...adviceFields(advice) }
}
