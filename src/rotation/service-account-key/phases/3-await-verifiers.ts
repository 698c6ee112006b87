import { definePhase, inParts } from '../../phase.ts'
import { apiServers, fileAt, type Observed } from '../../snapshot.ts'
import type { KeyChange } from '../../target.ts'
import { askForUpload, wait } from '../../tasks.ts'
import { keyPart, keysIn, privatePath, publicPaths } from '../keys.ts'
import type { KeyObservation } from '../observation.ts'
import { keyRow } from '../phase-table.ts'
import { externalVerifiersIn, jwksMaxAgeSeconds } from '../plan.ts'
import { unreadTokens } from '../tokens.ts'

/** The sections that show whether other programs verify tokens. */
export const verifierSections = [
  'nodes',
  'components',
  'files',
  'servedKeys',
  'tokens',
  'kubeconfigs',
] as const satisfies readonly (keyof KeyObservation)[]
export type VerifierSections = (typeof verifierSections)[number]
type Sees = VerifierSections

/** The IDs with which the operator accepts these risks. A hook of the inventory may do the upload. */
export const uploadId = 'jwks-upload'
export const maxAgeId = 'jwks-max-age'
export const lastUploadId = 'jwks-last-upload'

const informed = keyPart<Sees>((observed, target, key) => {
  const { mayExist } = externalVerifiersIn(observed)
  if (target.reason === 'compromise' || hasSignedNew(observed, key)) return { gaps: [], steps: [] }
  // The audiences of a token show who verifies it.
  if (!mayExist) return { gaps: unreadTokens(observed), steps: [] }
  const { waivers, confirmedAtMs } = target
  // A program may have read the place of the upload just before.
  const uploadedMs = waivers.has(uploadId) ? (confirmedAtMs?.get(uploadId) ?? 0) : observed.atMs
  const untilMs = Math.max(servedSinceMs(observed), uploadedMs) + jwksMaxAgeSeconds * 1000
  const uploads = waivers.has(uploadId)
    ? []
    : [
        askForUpload(
          uploadId,
          'Upload /openid/v1/jwks to every place outside of the cluster that has a copy.',
        ),
      ]
  const isLate = observed.atMs < untilMs && !waivers.has(maxAgeId)
  return {
    gaps: [
      ...uploads.map(() => ({
        at: '/openid/v1/jwks',
        what: 'not yet uploaded to the places outside of the cluster that have a copy',
      })),
      ...(isLate
        ? [
            {
              at: '/openid/v1/jwks',
              what: `programs that verify tokens may have a copy without the new key until ${new Date(untilMs).toISOString()}`,
            },
          ]
        : []),
    ],
    steps: [
      ...uploads,
      // The wait begins with the upload.
      ...(isLate && uploads.length === 0
        ? [
            wait(
              { kind: 'instant', atMs: untilMs },
              'no copy of /openid/v1/jwks without the new key is valid any more',
              jwksMaxAgeSeconds * 1000 + 120_000,
            ),
          ]
        : []),
    ],
  }
})

export const awaitVerifiers = definePhase<Sees>(keyRow('await-verifiers'), {
  sees: verifierSections,
  ...inParts(informed),

  remarks(observed, { reason }) {
    const { mayExist, why } = externalVerifiersIn(observed)
    if (!mayExist) return []
    const cost = `with --reason compromise there is no wait: these programs reject new tokens for up to ${jwksMaxAgeSeconds / 60} minutes, or until the upload in phase 5`
    return [
      `programs outside of the API servers may verify tokens: ${why.join('; ')}`,
      reason === 'compromise'
        ? cost
        : `kcert waits for max-age (${jwksMaxAgeSeconds / 60} minutes) and runs the hooks with "when: upload-jwks" of the inventory, in phase 7 again. If no program keeps a copy: --waive ${uploadId} --waive ${maxAgeId} --waive ${lastUploadId}`,
    ]
  },

  undo: () => [],
})

/**
 * Returns the question for an upload without the old key. Until then, programs outside of the cluster accept tokens of a leaked key, and
 * reject tokens of the new key if the first upload was skipped.
 */
export const lastUpload = keyPart<Sees>((observed, { waivers }) => {
  if (waivers.has(lastUploadId) || !externalVerifiersIn(observed).mayExist) return { gaps: [], steps: [] }
  return {
    gaps: [{ at: '/openid/v1/jwks', what: 'not yet uploaded without the old key' }],
    steps: [
      askForUpload(
        lastUploadId,
        'Upload /openid/v1/jwks again, to every place outside of the cluster that has a copy: the old key must not be in it.',
      ),
    ],
  }
})

/** From then on, every answer of an API server has both keys: both processes and files are from before. */
function servedSinceMs(observed: Observed<'components' | 'files'>): number {
  const times = apiServers(observed).flatMap((api) => [
    api.process?.startedAtMs ?? observed.atMs,
    ...publicPaths(api).map((path) => fileAt(observed, api.node, path)?.changedAtMs ?? observed.atMs),
  ])
  return Math.max(...times, 0)
}

/** Once a process may sign with the new key, the wait is over. Restarts of later phases must not begin it again. */
function hasSignedNew(observed: Observed<'components' | 'files'>, { newKey }: KeyChange): boolean {
  return apiServers(observed).some(
    (api) => keysIn(fileAt(observed, api.node, privatePath(api))).join() === newKey,
  )
}
