import { hash } from 'node:crypto'
import type { Named } from '../cluster/kinds.ts'

/**
 * The signer of API server certificates. kube-controller-manager publishes its CAs, and deletes every other bundle of this
 * signer.
 */
export const apiServerSigner = 'kubernetes.io/kube-apiserver-serving'

/**
 * Returns a version of the fields that users and kcert write to an object. It changes when one of them changes. Fields of
 * controllers are excluded (status, managed fields, the signatures of cluster-info, which kube-controller-manager adds and
 * removes with each token): controllers change them at any moment of a rotation, and no plan depends on them.
 */
export function contentVersion({ metadata, ...fields }: { readonly metadata: object }): string {
  const { uid, labels, annotations } = metadata as Record<string, unknown>
  const { kind: _, apiVersion: __, status: ___, ...content } = fields as Record<string, unknown>
  const data = Object.entries((content.data ?? {}) as object).filter(
    ([key]) => !key.startsWith('jws-kubeconfig-'),
  )
  const counted = { uid, labels, annotations, ...content, data: Object.fromEntries(data) }
  return hash('sha256', JSON.stringify(counted, sorted), 'hex').slice(0, 32)
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Returns when the content of an object last changed, in milliseconds: from its managed fields, otherwise its creation time. */
export function contentChangedAtMs({ metadata }: Named, field: 'data' | 'spec'): number {
  const times = (metadata.managedFields ?? []).flatMap(({ time, subresource, fieldsV1 }) =>
    time !== undefined && subresource === undefined && (fieldsV1 === undefined || `f:${field}` in fieldsV1)
      ? [Date.parse(time)]
      : [],
  )
  const created = Date.parse(metadata.creationTimestamp ?? '')
  return Math.max(...times, Number.isNaN(created) ? 0 : created)
}
