import { quoted } from '../csr/quoting.ts'
import { shapedRequest } from '../csr/request-shape.ts'
import type { RequestObject, RequestsApi } from '../csr/requests-api.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { noteChange } from '../system/lasting-changes.ts'
import { resources } from './kinds.ts'
import type { ApiObject } from './malformed.ts'
import { MalformedAnswer } from './malformed.ts'
import { metadataOf, type ObjectsApi } from './objects.ts'
import type { Resource } from './resource.ts'

const kind = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const

const { requests } = resources

/** Returns the CertificateSigningRequests of a cluster. */
export function requestsOf(objects: ObjectsApi): RequestsApi {
  return {
    async *list({ signerName, labelSelector, fieldSelector } = {}) {
      const fields = [...(signerName === undefined ? [] : [`spec.signerName=${signerName}`]), fieldSelector]
      const selector = fields.filter((field) => field !== undefined).join(',')
      const selection = {
        ...(labelSelector !== undefined && { labelSelector }),
        ...(selector !== '' && { fieldSelector: selector }),
      }
      for await (const object of objects.list(requests, selection)) yield asRequest(object)
    },
    async get(name) {
      const object = await objects.get({ ...requests, name })
      return object && asRequest(object)
    },
    async create(object, choice) {
      const created = asRequest(await objects.create(requests, { ...kind, ...object }, choice))
      if (!choice?.dryRun) noteChange(`csr/${created.metadata.name} is created`)
      return created
    },
    async replaceApproval(object, confirm) {
      return changed(await objects.replace(subresource(object, 'approval'), { ...kind, ...object }, confirm))
    },
    async replaceStatus(object) {
      return changed(await objects.replace(subresource(object, 'status'), { ...kind, ...object }))
    },
    async *watch(name, signal) {
      const selection = { fieldSelector: `metadata.name=${name}` }
      // After a gap, only the metadata of a deleted object is known.
      for await (const { type, object } of objects.watch(requests, selection, signal))
        yield { type, object: asRequest(type === 'DELETED' ? { spec: {}, ...object } : object) }
    },
  }
}

/**
 * The path to which a request's subresource is written. Without UID and resourceVersion the write would replace any other object
 * of this name.
 */
function subresource({ metadata }: RequestObject, name: 'approval' | 'status'): Resource {
  if (metadata.name && metadata.uid && metadata.resourceVersion)
    return { ...requests, name: metadata.name, subresource: name }
  throw new KcertError('KCERT_API_INVALID', 'kcert writes only a request that it read from the cluster', {
    why: 'its name, UID or resourceVersion is missing',
    next: 'kcert csr list',
  })
}

function changed(object: ApiObject): RequestObject {
  const request = asRequest(object)
  noteChange(`csr/${request.metadata.name} is changed`)
  return request
}

/** Throws KCERT_UNREACHABLE for an object that no API server sends. */
function asRequest(object: ApiObject): RequestObject {
  const request = shapedRequest(object)
  if (!('fault' in request)) return request
  const { name } = metadataOf(object)
  const which = typeof name === 'string' ? ` ${quoted(name)}` : ''
  throw new MalformedAnswer(
    `read CertificateSigningRequest${which}`,
    `an object that is not one: ${request.fault}`,
    'kubectl get --raw /apis/certificates.k8s.io/v1/certificatesigningrequests',
  )
}
