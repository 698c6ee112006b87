import { commandLine } from '../errors/command-line.ts'
import { isObject } from '../errors/is-object.ts'
import type { ApiClient } from './api-client.ts'
import { StatusError } from './failures.ts'
import { type ApiObject, MalformedAnswer } from './malformed.ts'
import { describeResource, type Resource } from './resource.ts'

/**
 * Returns the newest version in which the API server serves a resource, by discovery. RBAC returns 403 before the server checks
 * whether it serves the resource. Throws a StatusError of 404 where it serves no version.
 */
export async function servedVersion(
  client: Pick<ApiClient, 'call'>,
  { group, version, olderVersions = [], resource }: Resource,
): Promise<string> {
  const kind = describeResource({ group, version, resource })
  const purpose = `find out whether ${kind} is served`
  const discover = (path: string): Promise<ApiObject> =>
    client.call({ method: 'GET', path, isRepeatable: true, purpose })
  const served = fieldsOf(await discover(`/apis/${group}`), 'versions', 'version', purpose)
  for (const one of [version, ...olderVersions].filter((candidate) => served.includes(candidate))) {
    const resources = fieldsOf(await discover(`/apis/${group}/${one}`), 'resources', 'name', purpose)
    if (resources.includes(resource)) return one
  }
  throw new StatusError(
    'KCERT_API_NOT_FOUND',
    `the API server does not serve ${kind}`,
    { next: commandLine`kubectl api-resources --api-group=${group}` },
    { status: 404, reason: 'NotFound' },
  )
}

function fieldsOf(answer: ApiObject, list: string, field: string, purpose: string): string[] {
  const items: unknown = answer[list]
  if (!Array.isArray(items)) throw new MalformedAnswer(purpose, `no ${list}`)
  return items.map((item: unknown) => {
    const value = isObject(item) ? item[field] : undefined
    if (typeof value === 'string') return value
    throw new MalformedAnswer(purpose, `one of its ${list} without a ${field}`)
  })
}
