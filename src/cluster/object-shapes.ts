import { fitted, metadataFields, pairs, type Shape, texts } from '../csr/json-shape.ts'
import type { ApiObject } from './malformed.ts'

// The fields that kcert reads of an API server's objects, of the kinds where it reads them as typed. What is checked here once is taken
// for granted by all that follows.

const fieldsOf = (fields: Readonly<Record<string, Shape>>, needs: readonly string[] = []): Shape => ({
  fields,
  needs,
})
const spec = (fields: Readonly<Record<string, Shape>>): Shape => fieldsOf({ spec: fieldsOf(fields) })
const each = (fields: Readonly<Record<string, Shape>>, needs: readonly string[] = []): Shape => ({
  each: fieldsOf(fields, needs),
})

const metadata = fieldsOf({
  ...metadataFields,
  namespace: 'text',
  finalizers: texts,
  ownerReferences: each({ kind: 'text', name: 'text', controller: 'boolean' }, ['kind', 'name']),
  managedFields: each({ manager: 'text', time: 'text', subresource: 'text', fieldsV1: fieldsOf({}) }),
})
const conditions = each({ type: 'text', status: 'text' }, ['type', 'status'])
const containers = each(
  {
    name: 'text',
    image: 'text',
    command: texts,
    args: texts,
    volumeMounts: each({ name: 'text' }, ['name']),
  },
  ['name'],
)
const state = fieldsOf({
  running: fieldsOf({ startedAt: 'text' }),
  terminated: fieldsOf({ startedAt: 'text' }),
})
const containerStatuses = each({ name: 'text', containerID: 'text', state, lastState: state }, ['name'])
const ports = each({ name: 'text', port: 'number' })
const clientConfig: Readonly<Record<string, Shape>> = {
  caBundle: 'text',
  url: 'text',
  service: fieldsOf({ namespace: 'text', name: 'text', port: 'number' }),
}
const webhooks = fieldsOf({
  webhooks: each({ name: 'text', clientConfig: fieldsOf(clientConfig) }, ['name']),
})
const workload = spec({
  updateStrategy: fieldsOf({ type: 'text' }),
  template: fieldsOf({
    metadata: fieldsOf({ labels: pairs, annotations: pairs }),
    spec: fieldsOf({ containers }),
  }),
})

const signerConditions = each(
  { type: 'text', status: 'text', reason: 'text', message: 'text', lastTransitionTime: 'text' },
  ['type', 'status'],
)

const shapes: Readonly<Record<string, Shape>> = {
  apiservices: fieldsOf({ spec: fieldsOf(clientConfig), status: fieldsOf({ conditions }) }),
  clustertrustbundles: spec({ signerName: 'text', trustBundle: 'text' }),
  configmaps: fieldsOf({ data: pairs, binaryData: pairs }),
  customresourcedefinitions: spec({
    conversion: fieldsOf({ webhook: fieldsOf({ clientConfig: fieldsOf(clientConfig) }) }),
  }),
  daemonsets: workload,
  deployments: workload,
  endpointslices: fieldsOf({
    addressType: 'text',
    endpoints: each({ addresses: texts, conditions: fieldsOf({ ready: 'boolean' }) }),
    ports,
  }),
  leases: spec({ holderIdentity: 'text', leaseDurationSeconds: 'number', renewTime: 'text' }),
  mutatingwebhookconfigurations: webhooks,
  nodes: fieldsOf({
    spec: fieldsOf({ providerID: 'text' }),
    status: fieldsOf({
      addresses: each({ type: 'text', address: 'text' }, ['type', 'address']),
      conditions,
      nodeInfo: fieldsOf({ kubeletVersion: 'text' }),
    }),
  }),
  podcertificaterequests: fieldsOf(
    {
      spec: fieldsOf(
        {
          signerName: 'text',
          podName: 'text',
          serviceAccountName: 'text',
          nodeName: 'text',
          maxExpirationSeconds: 'number',
        },
        ['signerName', 'podName', 'serviceAccountName', 'nodeName'],
      ),
      status: fieldsOf({
        conditions: signerConditions,
        certificateChain: 'text',
        beginRefreshAt: 'text',
      }),
    },
    ['spec'],
  ),
  pods: fieldsOf({
    spec: fieldsOf({
      nodeName: 'text',
      hostNetwork: 'boolean',
      containers,
      initContainers: containers,
      volumes: each(
        {
          name: 'text',
          secret: fieldsOf({ secretName: 'text' }),
          projected: fieldsOf({
            sources: each({
              configMap: fieldsOf({
                name: 'text',
                items: each({ key: 'text', path: 'text' }, ['key', 'path']),
              }),
              clusterTrustBundle: fieldsOf(
                { name: 'text', signerName: 'text', labelSelector: fieldsOf({}), path: 'text' },
                ['path'],
              ),
            }),
          }),
        },
        ['name'],
      ),
    }),
    status: fieldsOf({
      phase: 'text',
      podIP: 'text',
      conditions,
      containerStatuses,
      initContainerStatuses: containerStatuses,
    }),
  }),
  secrets: fieldsOf({ type: 'text', data: pairs }),
  servicecidrs: spec({ cidrs: texts }),
  services: spec({ clusterIP: 'text', selector: pairs, ports }),
  statefulsets: workload,
  validatingwebhookconfigurations: webhooks,
}

/** Returns the object with what kcert reads of it in its types, null left out; or the first field that has another. */
export function shaped(
  value: ApiObject,
  resource: string,
): { readonly object: ApiObject } | { readonly fault: string } {
  const faults: string[] = []
  const own = shapes[resource]
  const whole = own === undefined ? value : (fitted(value, own, '', faults) as ApiObject)
  const object = { ...whole, metadata: fitted(value.metadata, metadata, 'metadata', faults) }
  return faults[0] === undefined ? { object } : { fault: faults[0] }
}
