import { setTimeout as pauseFor } from 'node:timers/promises'
import { type ApiCall, pathWithQuery } from '../cluster/api-client.ts'
import { codeOfStatus, credentialRefusals, StatusError } from '../cluster/failures.ts'
import type { ApiObject } from '../cluster/malformed.ts'
import { MalformedAnswer, objectIn } from '../cluster/malformed.ts'
import { type ObjectsApi, objectsOf, type Selection } from '../cluster/objects.ts'
import type { Resource } from '../cluster/resource.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { kcertFolderFor, materialPaths } from '../rotation/material.ts'
import type { Generation } from '../rotation/signing.ts'
import { ControlPlanes } from '../site/control-planes.ts'
import type { Site } from '../site/site.ts'
import type { RandomBytes } from '../system/random.ts'
import { messageIn } from './kubelet-requests.ts'
import { OwnIdentity, ownSubject } from './own-identity.ts'
import { RotationCas } from './rotation-cas.ts'

// The rotation also affects the operator's kubeconfig: in phase 12 servers reject its certificate, and its CA data trusts no
// server any more. From then on, kcert uses its own certificates, through the nodes.

/**
 * Returns the site with access to objects even after the operator's kubeconfig stops working, once phase 1 is complete. `tell`
 * receives one sentence when that happens.
 */
export function withOwnAccess(site: Site, random: RandomBytes, tell: (note: string) => void): Site {
  let usesOwn = false
  // A server counts each attempt of a refused kubeconfig as a failed handshake. Phase 12 fails for those of unknown clients, and
  // behind a load balancer kcert's own have no address of their own.
  const untilRefused: ObjectsApi = {
    ...site.objects,
    async *list(resource, selection) {
      if (usesOwn) throw new KcertError('KCERT_UNREACHABLE', 'the kubeconfig is no longer accepted')
      yield* site.objects.list(resource, selection)
    },
  }
  const planes = new ControlPlanes({ ...site, objects: untilRefused })
  const identity = new OwnIdentity(site, planes, new RotationCas(site, planes, random))
  const client = (generation: Generation) => identity.client('cluster', generation, ownSubject)
  site.jobs?.lend({
    keep: async () => {
      if (!(await isLaidOut(planes))) return false
      await Promise.all([client('old'), client('new'), identity.trust()])
      return true
    },
    client,
    trust: () => identity.trust(),
  })
  const ownBy = (ask: Ask) =>
    objectsOf({ call: (call) => callAsOwn(ask, call) }, (milliseconds) => pauseFor(milliseconds))
  const own = ownBy((call) => identity.callAny(call))

  const isOver = async (error: unknown): Promise<boolean> => {
    if (!(error instanceof KcertError)) return false
    if (!credentialRefusals.has(error.code)) return false
    if (!(await isLaidOut(planes))) return false
    if (!usesOwn) tell(replaced)
    usesOwn = true
    return true
  }
  const either = async <Result>(
    act: (objects: Omit<ObjectsApi, 'watch'>) => Promise<Result>,
  ): Promise<Result> => {
    if (usesOwn) return act(own)
    try {
      return await act(site.objects)
    } catch (error) {
      if (await isOver(error)) return act(own)
      throw error
    }
  }
  async function* eitherList(
    theirs: Pick<ObjectsApi, 'list'>,
    ours: Pick<ObjectsApi, 'list'>,
    resource: Resource,
    selection?: Selection,
  ): AsyncGenerator<ApiObject> {
    let count = 0
    try {
      for await (const object of (usesOwn ? ours : theirs).list(resource, selection)) {
        count++
        yield object
      }
    } catch (error) {
      if (count > 0 || usesOwn || !(await isOver(error))) throw error
      yield* ours.list(resource, selection)
    }
  }
  const objects: ObjectsApi = {
    get: (resource) => either((api) => api.get(resource)),
    create: (resource, object, choice) => either((api) => api.create(resource, object, choice)),
    replace: (resource, object) => either((api) => api.replace(resource, object)),
    patch: (resource, patch, type) => either((api) => api.patch(resource, patch, type)),
    delete: (resource, preconditions) => either((api) => api.delete(resource, preconditions)),
    list: (resource, selection) => eitherList(site.objects, own, resource, selection),
    watch: (resource, selection, signal) => site.objects.watch(resource, selection, signal),
  }
  const listAt: Site['listAt'] = (node, resource) => {
    const theirs = { list: (asked: Resource) => site.listAt(node, asked) }
    return eitherList(
      theirs,
      ownBy((call) => identity.call(node, call)),
      resource,
    )
  }
  return { ...site, objects, listAt }
}

const replaced =
  'your kubeconfig no longer works with the API servers, as is normal once the old CA is removed. kcert continues with its own certificates. Replace the kubeconfig: with kubeadm, copy /etc/kubernetes/admin.conf of a control-plane node'

type Ask = OwnIdentity['callAny']

async function isLaidOut(planes: ControlPlanes): Promise<boolean> {
  for (const { node, flags } of await planes.apiServers()) {
    const { newKey, oldKey } = materialPaths(kcertFolderFor(flags['client-ca-file']), 'cluster')
    const files = await planes.node(node).statFiles([newKey, oldKey])
    if (files.every(({ found }) => found === 'file')) return true
  }
  return false
}

async function callAsOwn(ask: Ask, call: ApiCall): Promise<ApiObject> {
  const { method, body, contentType, purpose } = call
  const answer = await ask({
    method,
    path: pathWithQuery(call),
    ...(contentType !== undefined && { headers: { 'Content-Type': contentType } }),
    ...(body !== undefined && { body }),
  })
  if (answer.status < 300) {
    const object = objectIn(answer.body)
    if (object !== undefined) return object
    throw new MalformedAnswer(purpose, 'a response that is not a JSON object')
  }
  const { status } = answer
  const why = messageIn(answer.body) ?? `HTTP status ${status}`
  const reason = status === 404 ? 'NotFound' : status === 409 ? 'Conflict' : ''
  const what = `the API server refuses to ${purpose}`
  throw new StatusError(codeOfStatus(status), what, { why }, { status, reason })
}
