import type { AccessQuestion } from '../csr/approval/facts.ts'
import type { ApiClient } from './api-client.ts'
import { statusIn } from './failures.ts'
import type { ApiObject } from './malformed.ts'

/** The user that the API server authenticated. */
export interface Identity {
  readonly username: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

export interface AccessApi {
  /** Returns the authenticated user (SelfSubjectReview); undefined where the API server does not report it. */
  whoAmI(): Promise<Identity | undefined>
  /**
   * Returns whether the cluster allows the action to another user (SubjectAccessReview); undefined when kcert may not create the
   * review.
   */
  isAllowed(question: AccessQuestion): Promise<boolean | undefined>
}

/** Returns the client of the authentication and authorization reviews. Reviews change nothing, so they are retried like reads. */
export function accessOf(client: ApiClient): AccessApi {
  const review = async (group: string, resource: string, kind: string, spec?: object): Promise<ApiObject> => {
    const answer = await client.call({
      method: 'POST',
      path: `/apis/${group}/v1/${resource}`,
      body: { apiVersion: `${group}/v1`, kind, ...(spec && { spec }) },
      isRepeatable: true,
      purpose: `create a ${kind}`,
    })
    return (answer.status ?? {}) as ApiObject
  }
  return {
    async whoAmI() {
      const status = await review('authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview').catch(
        undefinedWhenRefused,
      )
      const info = status?.userInfo as (Partial<Identity> & { username?: string }) | undefined
      if (typeof info?.username !== 'string') return undefined
      const { username, uid, groups = [], extra = {} } = info
      return { username, groups, extra, ...(uid && { uid }) }
    },
    async isAllowed({ user, uid, groups, extra, resource }) {
      const spec = { user, groups, extra, ...(uid && { uid }), resourceAttributes: resource }
      const status = await review(
        'authorization.k8s.io',
        'subjectaccessreviews',
        'SubjectAccessReview',
        spec,
      ).catch(undefinedWhenRefused)
      return status && status.allowed === true
    },
  }
}

function undefinedWhenRefused(error: unknown): undefined {
  if (statusIn(error) === 403 || statusIn(error) === 404) return undefined
  throw error
}
