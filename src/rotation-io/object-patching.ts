import { resources } from '../cluster/kinds.ts'
import type { ApiObject } from '../cluster/malformed.ts'
import { metadataOf } from '../cluster/objects.ts'
import type { Resource } from '../cluster/resource.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { editKubeconfig } from '../kubeconfig/edit.ts'
import { usableKubeconfig } from '../kubeconfig/open.ts'
import type { PatchObject } from '../rotation/action.ts'
import { type PhaseTable, phaseCommand } from '../rotation/phase-table.ts'
import type { ObjectReference } from '../rotation/snapshot.ts'
import { contentVersion } from '../site/object-content.ts'
import { withEncryptionAlgorithm, withExtraArgs } from './extra-args.ts'
import { restored } from './object-restoring.ts'
import type { Parts } from './parts.ts'
import { bundleOf } from './rotation-cas.ts'

const kinds: Readonly<Record<string, Pick<Resource, 'group' | 'version' | 'resource'>>> = {
  ConfigMap: resources.configMaps,
  Secret: resources.secrets,
  APIService: resources.apiServices,
  ValidatingWebhookConfiguration: resources.validating,
  MutatingWebhookConfiguration: resources.mutating,
  CustomResourceDefinition: resources.definitions,
}

type PatchingParts = Pick<Parts, 'planes' | 'copies' | 'cas' | 'table'> & {
  readonly site: Pick<Parts['site'], 'objects'>
}

type Fields = Record<string, unknown>

/** Enough retries for every known writer of cluster-info. */
const mostTries = 5

/** Changes objects of the cluster at the planned version, after copying them. */
export class ObjectPatching {
  private readonly parts: PatchingParts
  /** Versions that this run wrote, by the version that they replaced: two fields of one object are two actions of one plan. */
  private readonly successors = new Map<string, string>()

  constructor(parts: PatchingParts) {
    this.parts = parts
  }

  /** Patches an object. A status update by a controller at the same moment causes a retry; any other change is drift. */
  async patch(action: PatchObject): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.patchOnce(action)
      } catch (error) {
        const isConflict = error instanceof KcertError && error.code === 'KCERT_API_CONFLICT'
        if (!isConflict) throw error
        if (tries === mostTries) throw drift(this.parts.table, action, error)
      }
    }
  }

  private async patchOnce(action: PatchObject): Promise<void> {
    const { object, change, phase } = action
    const resource = resourceOf(object)
    const { objects } = this.parts.site
    const now = await objects.get(resource)
    if (now === undefined) {
      if (change.kind === 'delete') return
      if (change.kind !== 'copy' && change.kind !== 'token-secret') throw drift(this.parts.table, action)
    } else if (change.kind === 'token-secret') {
      // Of an earlier run. The observation shows whether it has a token. The operator must not hand over another Secret.
      if (isTokenSecret(now, change.serviceAccount)) return
      throw drift(this.parts.table, action)
    } else if (!this.isMeant(action, now)) throw drift(this.parts.table, action)
    const [first = ''] = await this.parts.planes.names()
    await this.parts.copies.keepObject(first, object, now && restorable(now), phase)
    if (change.kind === 'delete' || (change.kind === 'copy' && change.digest === undefined)) {
      if (now === undefined) return
      const { uid, resourceVersion } = metadataOf(now)
      const meant = { uid: String(uid), resourceVersion: String(resourceVersion) }
      const isGone = await objects.delete(resource, meant)
      if (!isGone && (await objects.get(resource)) !== undefined) throw drift(this.parts.table, action)
      return
    }
    const wanted = await this.changed(first, action, now)
    const { name: _, ...kind } = resource
    const written =
      now === undefined ? await objects.create(kind, wanted) : await objects.replace(resource, wanted)
    this.successors.set(`${keyOf(object)} ${action.version}`, versionOf(written))
  }

  private isMeant({ object, version }: PatchObject, now: ApiObject): boolean {
    const current = versionOf(now)
    return current === version || current === this.successors.get(`${keyOf(object)} ${version}`)
  }

  private async changed(first: string, action: PatchObject, now: ApiObject | undefined): Promise<ApiObject> {
    const { object, change } = action
    const pemOf = (trust: readonly string[]): Promise<string> => bundleOf(this.parts.cas, trust)
    if (change.kind === 'copy' && change.digest !== undefined) {
      const text = Buffer.from(await this.parts.copies.bytes(first, change.digest)).toString('utf8')
      return restored(object, now, JSON.parse(text))
    }
    if (change.kind === 'token-secret') return tokenSecret(object, change.serviceAccount)
    if (now === undefined) throw drift(this.parts.table, action)
    switch (change.kind) {
      case 'ca-bundle':
        return withField(now, change.field, Buffer.from(await pemOf(change.trust)).toString('base64'))
      case 'cluster-info':
        return editData(now, 'kubeconfig', async (text) => withCaData(text, await pemOf(change.trust)))
      case 'extra-args':
        return editData(now, 'ClusterConfiguration', (text) =>
          withExtraArgs(text, change.component, change.flags),
        )
      case 'encryption-algorithm':
        return editData(now, 'ClusterConfiguration', (text) => withEncryptionAlgorithm(text, change.keyType))
      default:
        throw new TypeError(`no object is written by ${change.kind}`)
    }
  }
}

const accountAnnotation = 'kubernetes.io/service-account.name'
const tokenSecretType = 'kubernetes.io/service-account-token'

/** Returns a Secret for which the controller manager signs a token of this service account, without an expiry. */
export function tokenSecret(
  { namespace, name }: { readonly namespace?: string; readonly name: string },
  serviceAccount: string,
): ApiObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: tokenSecretType,
    metadata: { namespace, name, annotations: { [accountAnnotation]: serviceAccount } },
  }
}

/** Returns true for a Secret as `tokenSecret` returns it. */
export function isTokenSecret(object: ApiObject, serviceAccount: string): boolean {
  const { annotations = {} } = metadataOf(object) as { annotations?: Readonly<Record<string, unknown>> }
  return object.type === tokenSecretType && annotations[accountAnnotation] === serviceAccount
}

function resourceOf({ kind, namespace, name }: ObjectReference): Resource {
  const known = kinds[kind]
  if (known === undefined) throw new TypeError(`objects of kind ${kind} are not changed by a rotation`)
  return { ...known, name, ...(namespace === undefined ? {} : { namespace }) }
}

function versionOf(object: ApiObject): string {
  return contentVersion({ ...object, metadata: metadataOf(object) })
}

function keyOf({ kind, namespace = '', name }: ObjectReference): string {
  return `${kind} ${namespace}/${name}`
}

/** Returns the object without the fields that the API server manages. */
function restorable(object: ApiObject): ApiObject {
  const { status: _, ...rest } = object
  const { name, namespace, labels, annotations } = metadataOf(object)
  return { ...rest, metadata: { name, namespace, labels, annotations } }
}

/** Returns the object with a field set, named as in a snapshot: "spec.caBundle", "webhooks[0].clientConfig.caBundle". */
export function withField(object: ApiObject, field: string, value: string): ApiObject {
  const path = field
    .replace(/\[(\w+)\]/g, '.$1')
    .split('.')
    .filter((part) => part !== '')
  const last = path.pop() ?? ''
  const copy: Fields = structuredClone(object)
  let at = copy
  for (const part of path) {
    const next: unknown = at[part]
    if (!isFields(next)) throw new TypeError(`the object has no field ${field}`)
    at = next
  }
  at[last] = value
  return copy
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

async function editData(
  object: ApiObject,
  key: string,
  edit: (text: string) => Promise<string>,
): Promise<ApiObject> {
  const data = (object.data ?? {}) as Readonly<Record<string, string>>
  return { ...object, data: { ...data, [key]: await edit(data[key] ?? '') } }
}

async function withCaData(text: string, pem: string): Promise<string> {
  const { kubeconfig } = await usableKubeconfig(text, 'ConfigMap kube-public/cluster-info')
  return editKubeconfig(text, {
    clusters: kubeconfig.clusters.map(({ name }) => ({
      name,
      certificateAuthority: { data: Buffer.from(pem) },
    })),
  })
}

function drift(table: PhaseTable, { object, phase }: PatchObject, cause?: unknown): KcertError {
  const what = `${keyOf(object)} changed since kcert planned`
  return new KcertError('KCERT_ROTATION_DRIFT', what, {
    why: 'another program or person changed it',
    next: phaseCommand(table, phase),
    cause,
  })
}
